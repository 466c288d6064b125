"""The SQLite file of past sessions: opened at first use, for reading only if it cannot be written.

Several programs may use the file at once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from ragchat.errors import SessionsUnavailable
from ragcommon.errors import os_reason
from ragcommon.files.writing import private_folder
from ragcommon.migrations import migrations
from ragcommon.sqlite import wal
from ragcommon.sqlite.readonly import (
    Readable,
    create_private,
    obstacle_in_words,
    obstacle_of,
    readable,
)

if TYPE_CHECKING:
    import aiosqlite

BUSY_SECONDS = 10.0
# What helps with a damaged file.
DAMAGED_HINT = "Restore it from a backup, or try `sqlite3 FILE .recover`."
TOO_NEW_HINT = "Update ragchat, or name another file with the setting sessions.path."

MIGRATIONS = migrations(Path(__file__).with_name("schema.sql"))


class Database:
    """Every method raises SessionsUnavailable if the file cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: aiosqlite.Connection | None = None
        self._source: Readable | None = None  # what the connection reads, if the file cannot be written
        # The files as a connection that can write has found them.
        self._identity: wal.Identity | None = None
        self._companions: dict[Path, wal.Identity | None] = {}
        self._lock = anyio.Lock()

    async def rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        async with self._opened(to_write=False) as db:
            return [tuple(row) for row in await db.execute_fetchall(sql, values)]

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[aiosqlite.Connection]:
        """A transaction that writes: one at a time in this process, and it waits for other processes."""
        async with self._opened(to_write=True) as db, wal.transaction(db, BUSY_SECONDS):
            yield db

    async def aclose(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        if self._source is not None:
            self._source.close()
        self._connection = self._source = None

    @asynccontextmanager
    async def _opened(self, *, to_write: bool) -> AsyncIterator[aiosqlite.Connection]:
        """The connection, for one use at a time.

        Unless `to_write`, one for reading will do if the disk is full or read-only.
        """
        with _mapped(self.path):
            async with self._lock:
                if self._source is not None and (to_write or self._source.is_outdated()):
                    await self.aclose()
                elif self._source is None and self._connection is not None:
                    await self._close_replaced()
                if self._connection is None:
                    self._connection = await self._connect(to_write=to_write)
                yield self._connection

    async def _close_replaced(self) -> None:
        """Close the connection if its file or write-ahead log is no longer the one at the path.

        What it wrote would be lost without an error when its files, which have no name any more, are closed.
        """
        is_another = self._identity != wal.identity(self.path)
        if is_another or self._companions != wal.companions(self.path):
            await self.aclose()
        if is_another:
            wal.remove_companions(self._companions)

    async def _connect(self, *, to_write: bool) -> aiosqlite.Connection:
        try:
            connection = await _connect(self.path)
        except (sqlite3.Error, OSError) as error:
            if to_write or obstacle_of(error, self.path) is None:
                raise
            connection, self._source = await _connect_to_read(self.path)
        else:
            self._identity, self._companions = wal.identity(self.path), wal.companions(self.path)
        return connection


@contextmanager
def _mapped(path: Path) -> Iterator[None]:
    """Map the errors of SQLite to ours."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise SessionsUnavailable(str(path), str(error), DAMAGED_HINT) from error
        obstacle = obstacle_of(error, path)
        reason = obstacle_in_words(obstacle, path) if obstacle else os_reason(error)
        raise SessionsUnavailable(str(path), reason) from error


async def _connect(path: Path) -> aiosqlite.Connection:
    await anyio.to_thread.run_sync(_create, path)
    db = await wal.connect(path, BUSY_SECONDS)
    try:
        await _check(db, path)
        await wal.prepare(db, MIGRATIONS, BUSY_SECONDS)
    except BaseException:
        await wal.close(db)
        raise
    return db


async def _check(db: aiosqlite.Connection, path: Path) -> None:
    """Raises SessionsUnavailable if a later release wrote the file."""
    if reason := too_new(await wal.pragma(db, "user_version")):
        raise SessionsUnavailable(str(path), reason, TOO_NEW_HINT)


def too_new(version: int) -> str:
    """Why a file with this `user_version` cannot be used: this release does not know its tables. Else ""."""
    known = len(MIGRATIONS)
    return f"the file has version {version}; this release supports up to {known}" if version > known else ""


async def _connect_to_read(path: Path) -> tuple[aiosqlite.Connection, Readable]:
    source = await anyio.to_thread.run_sync(readable, path, len(MIGRATIONS))
    db: aiosqlite.Connection | None = None
    try:
        db = await wal.connect(source.uri, BUSY_SECONDS)
        await _check(db, path)
        if source.is_private:
            await wal.migrate(db, MIGRATIONS, BUSY_SECONDS)
    except BaseException:
        if db is not None:
            await wal.close(db)
        source.close()
        raise
    return db, source


def _create(path: Path) -> None:
    """Create the file for its owner only, before SQLite does: its -wal and -shm get the same mode."""
    import aiosqlite  # noqa: F401 (here in a thread, not in the event loop)

    private_folder(path.parent)
    create_private(path)
