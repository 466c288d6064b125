"""The files and folders that memory is kept in step with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from ragcommon.contract.files import Source, SyncOutcome
from ragmemory.stores.documents import UNDER, range_under
from ragmemory.stores.engine import StorePart
from ragmemory.stores.journal import iso


class SourceStore(StorePart):
    """The sources of one memory."""

    async def listed(self) -> list[Source]:
        """All sources by uri and machine, with the numbers of their documents."""
        sources = []
        async with self._engine.reading() as connection:
            rows = await connection.execute_fetchall(
                "SELECT uri, added_at, synced_at, outcome, machine FROM sources ORDER BY uri, machine"
            )
            for uri, added_at, synced_at, outcome, machine in rows:
                [(documents,)] = await connection.execute_fetchall(
                    f"SELECT count(*) FROM documents WHERE {UNDER} AND machine = ?",
                    [*range_under(uri), machine],
                )
                last = msgspec.json.decode(outcome, type=SyncOutcome | None)
                sources.append(Source(uri, added_at, synced_at, documents, last, machine=machine))
        return sources

    async def change(self, added: str | None, removed: Sequence[Source]) -> None:
        """Add a source of this machine, unless it is one already, and remove others. Their documents stay."""
        async with self._engine.transaction() as connection:
            if added is not None:
                await connection.execute(
                    "INSERT INTO sources(uri, added_at, machine) VALUES(?, ?, ?)"
                    " ON CONFLICT(uri, machine) DO NOTHING",
                    [added, iso(datetime.now(UTC)), self._engine.machine],
                )
            await connection.executemany(
                "DELETE FROM sources WHERE uri = ? AND machine = ?",
                ([one.uri, one.machine] for one in removed),
            )

    async def note_sync(self, outcomes: Mapping[str, SyncOutcome]) -> None:
        """Record the outcomes of a sync, by uri, of those that are sources of this machine."""
        at = iso(datetime.now(UTC))
        machine = self._engine.machine
        rows = (
            (at, msgspec.json.encode(outcome).decode(), uri, machine) for uri, outcome in outcomes.items()
        )
        async with self._engine.transaction() as connection:
            await connection.executemany(
                "UPDATE sources SET synced_at = ?, outcome = ? WHERE uri = ? AND machine IN (?, '')", rows
            )
