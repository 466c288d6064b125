"""The engine of a memory in one SQLite file: its connections, access to them, and locating damage.

Two connections: a long write never keeps a query waiting (WAL: readers see the last commit). Any number of
processes may have the same file open.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
from anyio import to_thread

from ragcommon.contract.maintenance import Verified
from ragcommon.files.folder import Folder
from ragcommon.sqlite import wal
from ragcommon.sqlite.readonly import Readable, readable
from ragmemory.errors import (
    CLOSED,
    OF_READ_ONLY,
    CopyFailed,
    MemoryDamaged,
    MemoryFull,
    MemoryReadOnly,
    MemoryUnusable,
    NotStored,
)
from ragmemory.stores.engine import EXISTS, Engine, OnCopied, OnProgress
from ragmemory.stores.sqlite import backup
from ragmemory.stores.sqlite import connection as connections
from ragmemory.stores.sqlite.connection import SqliteConnection
from ragmemory.stores.sqlite.dialect import SqliteDialect
from ragmemory.stores.sqlite.schema import MIGRATIONS
from ragmemory.stores.sqlite.verifying import place_of_damage, verify

if TYPE_CHECKING:
    import aiosqlite

logger = logging.getLogger(__name__)


class ReadersWriterLock:
    """A waiting writer blocks new readers. Not reentrant."""

    def __init__(self) -> None:
        self._writer = anyio.Lock()
        self._written = anyio.Event()  # Set, unless a writer has begun.
        self._written.set()
        self._readers = 0
        self._released = anyio.Event()

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Hold the lock together with other readers. Never yields to the event loop without a writer."""
        # Not by taking the lock: two waiting readers would hand it to each other forever.
        while self._writer.locked():
            await self._written.wait()
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1
            self._released.set()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Hold the lock alone."""
        async with self._writer:
            self._written = anyio.Event()
            try:
                while self._readers:
                    self._released = anyio.Event()
                    await self._released.wait()
                yield
            finally:
                self._written.set()


class SqliteEngine(Engine):
    """Opens at the first use, and again when the file was replaced.

    Every method raises MemoryUnusable, MemoryBusy, MemoryDamaged, NotAMemory or MemoryTooNew if the file does
    not work.

    If the disk is full or read-only, the file is opened for reading only. A write then tries to open it
    again, and raises MemoryFull or MemoryReadOnly. `read_only`: nothing is ever written.

    A file that does not exist is an empty memory until the first write, which calls `make` before it creates
    the file; what `make` raises ends that write. `saved_index`: exists if an index of the file was saved.
    """

    dialect = SqliteDialect()
    is_file = True

    def __init__(
        self,
        path: Path,
        busy_seconds: float,
        *,
        read_only: bool = False,
        make: Callable[[], object] = lambda: None,
        saved_index: Path | None = None,
    ) -> None:
        super().__init__(path, str(path))
        self._make = make
        self._saved_index = saved_index
        self._busy_seconds = busy_seconds
        self._read_only = read_only
        self._is_open = self._is_closed = False
        self._opening = anyio.Lock()
        # Shared by every use of the connections; held alone to close or reopen them.
        self._use = ReadersWriterLock()
        self._identity: wal.Identity | None = None
        self._companions: dict[Path, wal.Identity | None] = {}
        # Without a writer the file is open for reading only, as `_readable` describes.
        self._writer: aiosqlite.Connection | None = None
        self._reader: aiosqlite.Connection
        self._readable: Readable | None = None
        self._write_lock = anyio.Lock()
        self._damaged_place: str | None = None  # None: not searched yet

    async def ensure_open(self) -> None:
        if not self.is_replaced():
            return
        async with self._opening:
            if self._is_closed:
                raise MemoryUnusable(str(self.path), CLOSED, hint="")
            if not self.openings:
                self.on_opening()
                await self._open()
                await self.on_open()
            elif self.is_replaced():
                await self._reopen()

    async def _open(self) -> None:
        # A connection whose opening is cancelled half-way leaves its thread behind.
        with anyio.CancelScope(shield=True):
            try:
                await self._open_now()
            except MemoryDamaged as error:
                raise await self._located(error) from error

    def _check_not_emptied(self) -> None:
        """Raise MemoryUnusable instead of showing that nothing was ever stored."""
        with suppress(OSError):  # Opening the file reports it.
            # The size first: a process that creates the file removes the saved index before that. `exists`
            # would raise if this user may not look into the folder of the index.
            if self.path.stat().st_size == 0 and self._saved_index and os.access(self._saved_index, os.F_OK):
                folder = self._saved_index.parent
                reason = f"it has been emptied, though {folder} still has its index"
                hint = f"Put a backup in its place, or delete {folder} to start with an empty memory."
                raise MemoryUnusable(str(self.path), reason, hint)

    async def _open_now(self) -> None:
        self._check_not_emptied()
        if self._read_only or wal.identity(self.path) is None:
            await self._open_to_read()
            return
        try:
            await self._open_to_write()
        except (MemoryFull, MemoryReadOnly) as error:
            await self._open_to_read()
            logger.warning("%s It is opened for reading only.", error)

    async def _open_to_write(self) -> None:
        with self._mapped():
            await to_thread.run_sync(self._make)
            if self._saved_index and not self.path.exists():
                # It belongs to a deleted file, and would make the new one look emptied until it has tables.
                with suppress(OSError):
                    self._saved_index.unlink()
            connections.create_file(self.path)
            identity = wal.identity(self.path)
            async with AsyncExitStack() as undo:
                writer = await wal.connect(self.path, self._busy_seconds)
                undo.push_async_callback(writer.close)
                await connections.prepare(writer, self.path, self._busy_seconds)
                reader = await wal.connect(self.path, self._busy_seconds, read_only=True)
                undo.pop_all()
        self._opened(identity, reader, writer)

    async def _open_to_read(self) -> None:
        identity = wal.identity(self.path)  # before reading: a file that appears meanwhile is another one
        async with AsyncExitStack() as undo:
            with self._mapped():
                source = await to_thread.run_sync(readable, self.path, len(MIGRATIONS))
                undo.callback(source.close)
                reader = await wal.connect(source.uri, self._busy_seconds)
                undo.push_async_callback(reader.close)
                if source.is_private:
                    await connections.prepare(reader, self.path, self._busy_seconds)
                else:
                    await connections.check(reader, self.path)
                await reader.execute("PRAGMA query_only = ON")
            undo.pop_all()
        self._opened(identity, reader, None, source)

    def _opened(
        self,
        identity: wal.Identity | None,
        reader: aiosqlite.Connection,
        writer: aiosqlite.Connection | None,
        source: Readable | None = None,
    ) -> None:
        self._identity = identity
        self._reader, self._writer, self._readable = reader, writer, source
        companions = wal.companions(self.path)
        # Those of a file that has replaced it since are in use by others.
        self._companions = companions if identity and identity == wal.identity(self.path) else {}
        self.openings += 1
        self._is_open = True

    async def close(self) -> None:
        async with self._opening, self._use.exclusive():
            self._is_closed = True
            if self._is_open:
                await self._close()

    async def _close(self) -> None:
        self._is_open = False
        try:
            await wal.close(self._reader)
        finally:
            if self._writer is not None:
                await wal.close(self._writer)
            if self._readable is not None:
                self._readable.close()

    @property
    def is_open(self) -> bool:
        # An empty memory without a file stays the same when another process creates the file.
        return self._is_open and self._identity in (None, wal.identity(self.path))

    @property
    def is_writable(self) -> bool:
        return self._writer is not None

    def is_replaced(self) -> bool:
        """Whether it is not open, or another file is at its path, or SQLite has missed a change of it."""
        if not self._is_open or self._identity != wal.identity(self.path):
            return True
        return self._readable is not None and self._readable.is_outdated()

    async def _reopen(self) -> None:
        async with self._use.exclusive():
            is_another = self._identity != wal.identity(self.path)
            if self._is_open:
                await self._close()
            if is_another:
                wal.remove_companions(self._companions)
            await self._open()

    async def _ensure_writer(self) -> None:
        """Open the file for writing if it was opened for reading only. Raises MemoryFull, MemoryReadOnly."""
        if self._writer is not None or not self._is_open:
            return
        if self._read_only:
            raise MemoryReadOnly(str(self.path), "memory.read_only is set", OF_READ_ONLY)
        async with self._use.exclusive():
            if self._is_open and self._writer is None:
                reader, source = self._reader, self._readable
                with anyio.CancelScope(shield=True):
                    await self._open_to_write()
                    await wal.close(reader)
                    if source is not None:
                        source.close()

    def _mapped(self) -> AbstractContextManager[None]:
        return connections.mapped_errors(self.path, self._busy_seconds)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[SqliteConnection]:
        """A statement that is open while others use the connection keeps its snapshot.

        They would not see what was committed since: hence `execute_fetchall` only.
        """
        async with self._using():
            yield SqliteConnection(self._reader)

    @asynccontextmanager
    async def transaction(self, *, ordered: bool = True) -> AsyncIterator[SqliteConnection]:  # noqa: ARG002
        started = monotonic()
        async with (
            self._using_writer() as connection,
            wal.transaction(connection, self._busy_seconds),
        ):
            self.lock_seconds += monotonic() - started
            yield SqliteConnection(connection)
        self.on_commit()

    async def version(self) -> tuple[int, int]:
        async with self._using():
            return self.openings, await wal.pragma(self._reader, "data_version")

    async def size(self) -> int:
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    async def backup(self, target: Path, *, force: bool, on_progress: OnCopied) -> int:
        async with self._using():
            return await backup.backup(self.path, target, force=force, on_progress=on_progress)

    async def verify(self, on_progress: OnProgress) -> Verified:
        self._check_not_emptied()
        return await verify(self.path, self._busy_seconds, on_progress)

    async def exists(self) -> bool:
        return self.path.exists()

    def unfinished(self) -> SqliteEngine:
        return SqliteEngine(self.path.with_name(f"{self.path.name}.copying"), self._busy_seconds)

    async def take(self, copy: SqliteEngine) -> None:
        await copy.close()
        with self._mapped(), Folder(self.path.parent) as folder:
            if self.path.exists():
                raise CopyFailed(self.place, EXISTS)
            folder.replace(self.path.name, by=copy.path.name)

    def concerns_all(self, error: Exception) -> bool:
        return connections.concerns_the_file(error)

    def error_of_write(self, error: Exception, uri: str) -> Exception:
        if isinstance(error, sqlite3.Error):
            return connections.undecodable(error, self.path) or NotStored(uri, str(error))
        return error

    @asynccontextmanager
    async def _using_writer(self) -> AsyncIterator[aiosqlite.Connection]:
        await self.ensure_open()
        await self._ensure_writer()
        async with self._using(), self._write_lock:
            if self._writer is None:  # reopened meanwhile
                raise MemoryUnusable(str(self.path), "it was reopened for reading only")
            yield self._writer

    @asynccontextmanager
    async def _using(self) -> AsyncIterator[None]:
        """One use of the file, during which it is neither closed nor reopened."""
        await self.ensure_open()
        async with self._use.shared():
            if not self._is_open:  # closed, or not opened again, since then
                if self._is_closed:
                    raise MemoryUnusable(str(self.path), CLOSED, hint="")
                raise MemoryUnusable(str(self.path), "the file that is there now could not be opened")
            try:
                with self._mapped():
                    yield
            except MemoryDamaged as error:
                raise await self._located(error) from error
            # A memory that did not exist was rightly read as empty.
            if self._identity is not None and self._readable is not None and self._readable.is_outdated():
                reason = "another process wrote to it while it was read"
                raise MemoryUnusable(str(self.path), reason, "Try again.")

    async def _located(self, error: MemoryDamaged) -> MemoryDamaged:
        """The error with the place of the damage, if that is found within a second."""
        if error.place:
            return error
        if self._damaged_place is None:
            self._damaged_place = await place_of_damage(self.path)
        return MemoryDamaged(error.path, error.reason, self._damaged_place)
