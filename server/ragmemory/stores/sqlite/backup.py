"""A consistent copy of the memory's file while it is in use."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from anyio import from_thread, to_thread

from ragcommon.errors import os_reason
from ragcommon.files.folder import Folder
from ragcommon.files.writing import PRIVATE, appearing
from ragcommon.sqlite.readonly import readable
from ragmemory.errors import BackupFailed, MemoryUnusable, NotAMemory
from ragmemory.stores.engine import EXISTS, OnCopied
from ragmemory.stores.sqlite.schema import APPLICATION_ID

# Pages copied between two reports of the progress: some MB.
_STEP = 1_000
# The header of an SQLite file (https://www.sqlite.org/fileformat.html) up to its application id.
_MAGIC, _HEADER_BYTES = b"SQLite format 3\0", 72


async def backup(source: Path, target: Path, *, force: bool, on_progress: OnCopied) -> int:
    """Copy the memory at `source` to `target`, which is resolved, all of it or nothing; return its bytes.

    `force` replaces an existing memory that no program has open. Raises BackupFailed, NotAMemory,
    MemoryUnusable without a source, sqlite3.Error if it cannot be read.
    """

    async def step(done: int, total: int) -> None:
        await on_progress(done, total)

    def report(_: int, left: int, total: int) -> None:
        from_thread.run(step, total - left, total)

    return await to_thread.run_sync(_backup, source, target, force, report)


def _backup(source: Path, target: Path, force: bool, report: Callable[[int, int, int], object]) -> int:
    from tempfile import TemporaryDirectory, gettempdir

    if not source.exists():
        raise MemoryUnusable(str(source), "it does not exist yet")
    # SQLite opens the copy by its name. Others may rename the folders above the target meanwhile.
    place = str(source.parent) if os.access(source.parent, os.W_OK) else gettempdir()
    try:
        with Folder(target.parent) as folder, TemporaryDirectory(prefix=".backup-", dir=place) as staging:
            _check(source, folder, target.name, force)
            copy = Path(staging, target.name)
            copy.touch(PRIVATE)
            _copy(source, copy, report)
            with copy.open("r+b") as written:
                os.fsync(written.fileno())
                size = os.fstat(written.fileno()).st_size
            _move(copy, folder, target.name)
    except OSError as error:
        raise BackupFailed(str(target), os_reason(error)) from error
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_FULL:
            raise
        reason = f"the disk of {place}, where the copy is made, is full"
        raise BackupFailed(str(target), reason, "Free some space there.") from error
    return size


def _move(copy: Path, folder: Folder, name: str) -> None:
    """Move the copy to its place, also on another disk: there it appears whole, too."""
    try:
        folder.take(name, copy)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with appearing(folder, name) as written, copy.open("rb") as file:
            shutil.copyfileobj(file, written)


def _check(source: Path, folder: Folder, name: str, force: bool) -> None:
    target = str(folder.path / name)
    try:
        there = folder.stat(name)
    except FileNotFoundError:
        return
    if os.path.samestat(there, source.stat()):
        raise BackupFailed(target, "it is the memory itself")
    if not force:
        raise BackupFailed(target, EXISTS, "Choose another name; --force replaces a memory.")
    with os.fdopen(folder.open(name), "rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header.startswith(_MAGIC) or int.from_bytes(header[-4:]) != APPLICATION_ID:
        raise NotAMemory(target, "only a memory is replaced")
    # SQLite would apply the write-ahead log of the replaced file to the new one.
    log = f"{name}-wal"
    with suppress(FileNotFoundError):
        folder.stat(log)
        raise BackupFailed(target, f"a program has it open, or was killed: {log} exists")


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
