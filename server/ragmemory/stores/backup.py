"""A consistent copy of the memory's file while it is in use."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path

from anyio import from_thread, to_thread

from ragconfig.readable import readable
from ragmemory.errors import BackupFailed, NotAMemory
from ragmemory.stores.schema import APPLICATION_ID

# Called with the pages copied and the pages in all.
OnProgress = Callable[[int, int], Awaitable[None]]

# Pages copied between two reports of the progress: some MB.
_STEP = 1_000
# The header of an SQLite file (https://www.sqlite.org/fileformat.html) up to its application id.
_MAGIC, _HEADER_BYTES = b"SQLite format 3\0", 72


async def backup(source: Path, target: Path, *, force: bool, on_progress: OnProgress) -> int:
    """Copy the memory at `source` to `target`, all of it or nothing; return its bytes.

    `force` replaces an existing memory that no program has open. Raises BackupFailed, NotAMemory,
    sqlite3.Error if the source cannot be read.
    """

    async def step(done: int, total: int) -> None:
        await on_progress(done, total)

    def report(_: int, left: int, total: int) -> None:
        from_thread.run(step, total - left, total)

    return await to_thread.run_sync(_backup, source, target, force, report)


def _backup(source: Path, target: Path, force: bool, report: Callable[[int, int, int], object]) -> int:
    from tempfile import mkstemp

    try:
        _check(source, target, force)
        handle, name = mkstemp(dir=target.parent, prefix=f".{target.name}-")
    except OSError as error:
        raise BackupFailed(str(target), error.strerror or str(error)) from error
    os.close(handle)
    temporary = Path(name)
    try:
        _copy(source, temporary, report)
        with temporary.open("r+b") as written:
            os.fsync(written.fileno())
        temporary.replace(target)
    except OSError as error:
        raise BackupFailed(str(target), error.strerror or str(error)) from error
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_FULL:
            raise
        raise BackupFailed(str(target), "its disk is full") from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
    return target.stat().st_size


def _check(source: Path, target: Path, force: bool) -> None:
    if not target.exists():
        return
    if target.samefile(source):
        raise BackupFailed(str(target), "it is the memory itself")
    if not force:
        raise BackupFailed(
            str(target), "it already exists", "Choose another name; --force replaces a memory."
        )
    with target.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header.startswith(_MAGIC) or int.from_bytes(header[-4:]) != APPLICATION_ID:
        raise NotAMemory(str(target), "only a memory is replaced")
    # SQLite would apply the write-ahead log of the replaced file to the new one.
    log = target.with_name(f"{target.name}-wal")
    if log.exists():
        raise BackupFailed(str(target), f"a program has it open, or was killed: {log.name} exists")


def _copy(source: Path, target: Path, report: Callable[[int, int, int], object]) -> None:
    found = readable(source, 0)
    try:
        with (
            closing(sqlite3.connect(found.uri, uri=True, isolation_level=None)) as memory,
            closing(sqlite3.connect(target)) as copy,
        ):
            # A snapshot: what is written meanwhile would make SQLite begin again.
            memory.execute("BEGIN")
            memory.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            memory.backup(copy, pages=_STEP, progress=report)
    finally:
        found.close()
