"""SQLite files in WAL mode that several processes open: connections, transactions, migrations (aiosqlite).

`readable` opens them where they cannot be written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

if TYPE_CHECKING:
    import aiosqlite

# Seconds between attempts if SQLite answers "locked" without calling its own busy handler.
_RETRY_SECONDS = 0.02
# Seconds that a writer waits for the lock inside SQLite, where it cannot be cancelled.
_UNCANCELLABLE_SECONDS = 0.25

Identity: TypeAlias = tuple[int, int]


class _Cursor(sqlite3.Cursor):
    """Ends its statement if a row cannot be decoded.

    sqlite3 leaves it open, and with it a snapshot: as long as anything refers to the error's traceback, later
    reads through the connection do not see later writes.
    """

    def fetchall(self) -> list[Any]:
        try:
            return super().fetchall()
        except Exception:
            self.close()
            raise


class _Connection(sqlite3.Connection):
    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return self.cursor(_Cursor).execute(sql, parameters)


async def connect(place: Path | str, busy_seconds: float, *, read_only: bool = False) -> aiosqlite.Connection:
    """Open a path or a `file:` URI. Raises sqlite3.Error."""
    import aiosqlite

    # isolation_level None: sqlite3 begins no transactions by itself.
    opening = aiosqlite.connect(
        place,
        uri=isinstance(place, str),
        timeout=busy_seconds,
        isolation_level=None,
        factory=_Connection,
    )
    # A program that does not close its memory, such as a notebook, ends all the same: what was answered is on
    # the disk. Before aiosqlite 0.22 a connection is its own thread.
    thread: Any = getattr(opening, "_thread", opening)
    thread.daemon = True
    connection = await opening
    try:
        await connection.execute("PRAGMA foreign_keys = ON")
        await connection.execute("PRAGMA synchronous = FULL")
        await connection.execute("PRAGMA secure_delete = ON")  # Not the default of every build of SQLite.
        if read_only:
            await connection.execute("PRAGMA query_only = ON")
    except BaseException:
        await close(connection)
        raise
    return connection


async def close(connection: aiosqlite.Connection) -> None:
    """Close it even if the caller is cancelled: its thread would keep the program from exiting."""
    with anyio.CancelScope(shield=True):
        await connection.close()


@asynccontextmanager
async def transaction(connection: aiosqlite.Connection, busy_seconds: float) -> AsyncIterator[None]:
    """Take the write lock at once (upgrading a read lock would fail); commit at the end or roll back.

    It can be cancelled until it has begun.
    """
    await _retry_while_locked(connection, "BEGIN IMMEDIATE", busy_seconds)
    with anyio.CancelScope(shield=True):
        try:
            yield
            await connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                await connection.execute("ROLLBACK")
            raise


async def prepare(
    connection: aiosqlite.Connection, migrations: Sequence[Sequence[str]], busy_seconds: float
) -> None:
    """Switch the file to WAL and migrate its tables, for a writer. Raises sqlite3.Error."""
    # The switch needs the file alone for a moment, and SQLite itself does not wait for that.
    await _retry_while_locked(connection, "PRAGMA journal_mode = WAL", busy_seconds)
    await migrate(connection, migrations, busy_seconds)
    await connection.execute(f"PRAGMA busy_timeout = {min(busy_seconds, _UNCANCELLABLE_SECONDS) * 1000:.0f}")


async def migrate(
    connection: aiosqlite.Connection, migrations: Sequence[Sequence[str]], busy_seconds: float
) -> None:
    """Execute the migrations that the file lacks, each in a transaction; `user_version` counts them."""
    for number in range(await pragma(connection, "user_version"), len(migrations)):
        async with transaction(connection, busy_seconds):
            # Another process may have migrated it first.
            if await pragma(connection, "user_version") > number:
                continue
            for statement in migrations[number]:
                await connection.execute(statement)
            await connection.execute(f"PRAGMA user_version = {number + 1}")
    # SQLite keeps the schema that it has read. Without this, a connection that was opened while another
    # process migrated the file would compile its statements for the old tables.
    await connection.execute_fetchall("SELECT count(*) FROM sqlite_schema")


async def pragma(connection: aiosqlite.Connection, name: str) -> int:
    """The value of an integer pragma."""
    [row] = await connection.execute_fetchall(f"PRAGMA {name}")
    return int(row[0])


async def _retry_while_locked(connection: aiosqlite.Connection, statement: str, seconds: float) -> None:
    """Execute a statement; try again for `seconds` while another process holds the lock that it needs."""
    deadline = anyio.current_time() + seconds
    while True:
        # An attempt that succeeds must not be cancelled before its result is known: it may hold the lock.
        with anyio.CancelScope(shield=True):
            try:
                await connection.execute_fetchall(statement)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or anyio.current_time() >= deadline:
                    raise
        await anyio.sleep(_RETRY_SECONDS)


def identity(path: Path) -> Identity | None:
    """Device and inode: they differ for another file at the same path. None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def companions(path: Path) -> dict[Path, Identity | None]:
    """The write-ahead log and its index, which SQLite finds by their names alone, and their identities."""
    names = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    return {companion: identity(companion) for companion in names}


def remove_companions(known: dict[Path, Identity | None]) -> None:
    """Remove those of a replaced file that are still the same: SQLite would apply them to the new file."""
    for companion, before in known.items():
        if before is not None and before == identity(companion):
            with suppress(OSError):
                companion.unlink()
