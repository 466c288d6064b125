"""Open a SQLite file for reading on a read-only or full disk, or in another user's folder.

Both programs keep their data in SQLite files in WAL mode. Reading such a file needs its -wal and -shm. Where
SQLite can neither find nor create them, it prescribes `immutable=1` or a copy
(https://www.sqlite.org/wal.html#readonly):

- `immutable` ignores a -wal and takes no locks. It is right only if no -wal with content exists, and only as
  long as nothing writes to the file. On a read-only disk nothing does. On a full disk another process may,
  once there is room; therefore `Readable.is_outdated` compares the files with what they were when opened.
- Where the -wal has content, the file and its -wal are copied to a temporary folder.

Rejected: exclusive locking with the index of the -wal in memory. It does without -shm too, but shuts out
every other process for as long as the file is open.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ragcommon.files.safe_open import NotARegularFile

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

_EMPTY = "file::memory:"
_COMPANIONS = ("-wal", "-journal")
# The copy is repeated if the file changed meanwhile.
_ATTEMPTS = 3
# With less room than this SQLite cannot create the -shm (32 KiB) and the first pages of a -wal.
_MIN_FREE_BYTES = 1 << 17

Obstacle: TypeAlias = Literal["full", "read-only"]
_FileState: TypeAlias = tuple[int, int, int] | None
# The file, its -wal, its -journal: (inode, bytes, time of the last change); None for a file without content.
State: TypeAlias = tuple[_FileState, ...]


class Readable:
    """How a file can be read now: `uri` is for `sqlite3.connect(uri, uri=True)`.

    `is_private`: `uri` is a copy, or an empty database in memory because there is no file yet; the caller may
    write it, and must, to bring its tables up to date.
    """

    def __init__(
        self, path: Path, uri: str, state: State | None = None, folder: TemporaryDirectory[str] | None = None
    ) -> None:
        self.uri = uri
        self.is_private = folder is not None or uri == _EMPTY
        self._path = path
        self._state = state
        self._folder = folder

    def is_outdated(self) -> bool:
        """Whether the file has changed since, where SQLite itself does not notice that."""
        return self._state is not None and self._state != _state_of(self._path)

    def close(self) -> None:
        """Remove the copy, if there is one. The connections to it must be closed."""
        if self._folder is not None:
            self._folder.cleanup()


def check_regular(path: Path) -> None:
    """Raise OSError if `path`, or its -wal, -shm or -journal, exists and is not a regular file.

    SQLite would block on a FIFO, uninterruptibly.
    """
    if path.exists() and not path.is_file():
        raise NotARegularFile(path)
    for companion in _companions(path):
        if companion.exists() and not companion.is_file():
            raise OSError(errno.EINVAL, f"its {companion.name} is not a regular file", str(path))


def _companions(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in (*_COMPANIONS, "-shm")]


def create_private(path: Path) -> None:
    """Create the file for its owner only, if there is none; SQLite gives -wal and -shm the same mode.

    Raises OSError, also if the file cannot be written.
    """
    check_regular(path)
    # Closing any descriptor of a file drops this process's locks on it, and another program would then remove
    # the write-ahead log that a connection of this process writes to.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    # SQLite opens a file without write permission, and fails at the first write.
    if not may_write(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def readable(path: Path, version: int) -> Readable:
    """How `path` can be read with the fewest permissions. Blocking. Raises sqlite3.Error, OSError.

    A file with a `user_version` below `version` is copied, for the caller to bring its tables up to date.
    """
    check_regular(path)
    state = _state_of(path)
    if state[0] is None:
        return Readable(path, _EMPTY, state)
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    uri = f"{path.absolute().as_uri()}?mode=ro"
    # A -wal and -shm that SQLite creates belong to this user. They would keep out the file's owner.
    if may_write(path):
        source = Readable(path, uri)
    elif path.with_name(path.name + "-wal").exists():
        source = Readable(path, f"{uri}&readonly_shm=1")
    else:
        source = Readable(path, f"{uri}&immutable=1", state)
    try:
        found = _user_version(source.uri)
    except sqlite3.OperationalError as error:
        if obstacle_of(error, path) is None:
            raise
        if any(state[1:]):
            return _copy(path)
        source = Readable(path, f"{uri}&immutable=1", state)
        found = _user_version(source.uri)
    return source if found >= version else _copy(path)


def _user_version(uri: str) -> int:
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        [(version,)] = connection.execute("PRAGMA user_version")
        return int(version)


def _copy(path: Path) -> Readable:
    # Reading a file that this process has open in SQLite would drop SQLite's POSIX locks on it when it is
    # closed here. A caller that needs a copy cannot have it open.
    import shutil
    from tempfile import TemporaryDirectory

    folder = TemporaryDirectory(prefix="ragchat-copy-", ignore_cleanup_errors=True)
    try:
        copy = Path(folder.name) / "copy.db"
        for _ in range(_ATTEMPTS):
            state = _state_of(path)
            for suffix, there in zip(("", *_COMPANIONS), state, strict=True):
                if there:
                    shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
                else:
                    Path(f"{copy}{suffix}").unlink(missing_ok=True)
            if state == _state_of(path):
                return Readable(path, copy.as_uri(), state, folder)
        raise OSError(errno.EBUSY, "another process is writing to it", str(path))
    except BaseException:
        folder.cleanup()
        raise


def _state_of(path: Path) -> State:
    return tuple(_file_state(f"{path}{suffix}") for suffix in ("", *_COMPANIONS))


def _file_state(path: str) -> _FileState:
    try:
        found = os.stat(path)  # noqa: PTH116 (a path with a suffix appended)
    except FileNotFoundError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found.st_size else None


def obstacle_of(error: Exception, path: Path) -> Obstacle | None:
    """Why `path` cannot be written, from SQLite's error or an OSError; None if that is not what it means."""
    if isinstance(error, OSError):
        return _OBSTACLES.get(error.errno or 0)
    code = getattr(error, "sqlite_errorcode", 0)
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return "full"
        case sqlite3.SQLITE_READONLY:
            return "read-only"
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR:
            # The code alone does not tell a -wal or -shm that cannot be created from a broken disk.
            if code == sqlite3.SQLITE_IOERR_SHMSIZE or is_full(_folder_of(path)):
                return "full"
            if code & 0xFF == sqlite3.SQLITE_CANTOPEN and not may_write(path):
                return "read-only"
    return None


def obstacle_in_words(obstacle: Obstacle, path: Path) -> str:
    """The obstacle in words, for the end of a sentence."""
    if obstacle == "full":
        return "the disk is full"
    if sys.platform != "win32" and os.statvfs(_folder_of(path)).f_flag & os.ST_RDONLY:
        return "it is on a read-only disk"
    verb, file = ("read", _unreadable(path)) if not may_read(path) else ("write", _unwritable(path))
    if file in (None, path):
        return "your user may not read it" if verb == "read" else "your user may not write there"
    return f"your user may not {verb} {file}"


_OBSTACLES: dict[int, Obstacle] = {
    errno.ENOSPC: "full",
    getattr(errno, "EDQUOT", errno.ENOSPC): "full",
    errno.EROFS: "read-only",
    errno.EACCES: "read-only",
    errno.EPERM: "read-only",
}


def may_read(path: Path) -> bool:
    """Whether this user may read the file and its -wal, or see that there is none."""
    return os.access(_folder_of(path), os.X_OK) and _unreadable(path) is None


def may_write(path: Path) -> bool:
    """Whether this user may write the file, its -wal and -shm, and create those that do not exist."""
    return os.access(_folder_of(path), os.W_OK) and _unwritable(path) is None


def _unreadable(path: Path) -> Path | None:
    """The file, or one next to it whose content belongs to it, if this user may not read it."""
    logs = (f"{path}{suffix}" for suffix in _COMPANIONS)
    files = (path, *(Path(log) for log in logs if os.access(log, os.F_OK) and _file_state(log)))
    return next((file for file in files if os.access(file, os.F_OK) and not os.access(file, os.R_OK)), None)


def _unwritable(path: Path) -> Path | None:
    """The file, or one that SQLite keeps next to it, if this user may not write it."""
    files = (path, *_companions(path))
    return next((file for file in files if os.access(file, os.F_OK) and not os.access(file, os.W_OK)), None)


def _folder_of(path: Path) -> Path:
    """The folder of `path`, or the nearest parent that exists."""
    return next(folder for folder in path.absolute().parents if os.access(folder, os.F_OK))


def is_full(folder: Path) -> bool:
    """Whether the disk is too full for the files that SQLite must create."""
    import shutil

    try:
        return shutil.disk_usage(folder).free < _MIN_FREE_BYTES
    except OSError:
        return False
