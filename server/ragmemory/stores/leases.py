"""Leases: what only one process may do at a time, until a moment by the engine's clock.

A process that dies is replaced when its lease ends. One that was frozen finds in its next transaction that
its lease has ended, and changes nothing.
"""

from __future__ import annotations

from ragmemory.stores.engine import Connection, StorePart

# Seconds that a lease lasts unless it is renewed.
SECONDS = 10.0


class LeaseStore(StorePart):
    """The leases of one memory."""

    async def acquire(self, name: str, holder: str) -> bool:
        """Acquire a lease, or renew it; False while another process holds it."""
        now = self._engine.dialect.now
        is_held = await self._engine.read(
            f"SELECT 1 FROM leases WHERE name = ? AND holder <> ? AND until > {now}", [name, holder]
        )
        if is_held:  # The usual case, which needs no lock.
            return False
        async with self._engine.transaction(ordered=False) as connection:
            cursor = await connection.execute(
                f"INSERT INTO leases(name, holder, until) VALUES(?, ?, {now} + {SECONDS})"
                " ON CONFLICT(name) DO UPDATE SET holder = excluded.holder, until = excluded.until"
                f" WHERE leases.holder = excluded.holder OR leases.until <= {now}",
                [name, holder],
            )
            return cursor.rowcount > 0

    async def release(self, name: str, holder: str) -> None:
        """End a lease, so that another process can take it at once."""
        async with self._engine.transaction(ordered=False) as connection:
            await connection.execute("DELETE FROM leases WHERE name = ? AND holder = ?", [name, holder])


async def renew(connection: Connection, name: str, holder: str) -> bool:
    """Renew a lease within a transaction; False if it has ended, and the transaction must change nothing.

    Until the commit no other process can take it.
    """
    now = connection.dialect.now
    cursor = await connection.execute(
        f"UPDATE leases SET until = {now} + {SECONDS} WHERE name = ? AND holder = ? AND until > {now}",
        [name, holder],
    )
    return cursor.rowcount > 0
