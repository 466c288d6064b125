"""Reach files without following a link, so that a path leads where it led when it was checked.

Whether a path is in a folder is decided by its resolved form, which has no links. Before the file is opened,
another process may put a link in the place of one of its folders. So each folder is opened relative to the
one above it, and a link on the way is an error. What is read, written, renamed or removed is named relative
to the last folder, which stays the same one under any name.

openat2(2) with RESOLVE_NO_SYMLINKS does the same in one call, but only on Linux: nine folders deep it saves
30 µs, of a millisecond that loading a file takes.

Windows opens nothing relative to a folder. There the open folder cannot be renamed, nor can those above it,
and the system tells where it is.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from typing import Self

# Opening a FIFO must not wait for a writer, and opening a terminal must not adopt it.
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class LinkInPath(OSError):
    """A resolved path has a link: it was put there after the path was resolved."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.ELOOP, "a link has taken its place", str(path))


class Folder:
    """An open folder. The methods take the names of its entries, and follow no link.

    They raise OSError; LinkInPath for a link, if it is to be opened.
    """

    def __init__(self, path: Path, *, listed: bool = False) -> None:
        """`path` is resolved; with `listed`, `entries` may be called.

        Raises LinkInPath, and OSError as `open` does.
        """
        if not path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{path} is not resolved")
        self.path = path
        self._handle = _reach(path, listed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it once."""
        _close(self._handle)

    if sys.platform != "win32":

        def open(self, name: str, flags: int = READ, mode: int = 0o600) -> int:
            """The descriptor of a file."""
            return _open(name, flags | os.O_NOFOLLOW, mode, self._handle, self.path, name)

        def stat(self, name: str) -> os.stat_result:
            """The state of an entry, which may be a link."""
            return os.stat(name, dir_fd=self._handle, follow_symlinks=False)

        def is_writable(self, name: str) -> bool:
            """Whether this process may write to a file."""
            return os.access(name, os.W_OK, dir_fd=self._handle)

        def entries(self) -> list[os.DirEntry[str]]:
            """Its entries, ordered by name; they can be examined until it is closed."""
            with os.scandir(self._handle) as entries:
                return sorted(entries, key=lambda entry: entry.name)

        def replace(self, name: str, by: str) -> None:
            """Rename the file `by` to `name`, which may exist."""
            os.replace(by, name, src_dir_fd=self._handle, dst_dir_fd=self._handle)

        def take(self, name: str, path: Path) -> None:
            """Move a file of another folder on the same disk to `name`, which may exist."""
            os.replace(path, name, dst_dir_fd=self._handle)

        def remove(self, name: str) -> None:
            """Remove a file, or a link."""
            os.unlink(name, dir_fd=self._handle)

    else:

        def open(self, name: str, flags: int = READ, mode: int = 0o600) -> int:
            import msvcrt

            path = self.path / name
            descriptor = os.open(path, flags, mode)
            if _place(msvcrt.get_osfhandle(descriptor)) != _plain(path):
                os.close(descriptor)
                raise LinkInPath(path)
            return descriptor

        def stat(self, name: str) -> os.stat_result:
            return (self.path / name).lstat()

        def is_writable(self, name: str) -> bool:
            return os.access(self.path / name, os.W_OK)

        def entries(self) -> list[os.DirEntry[str]]:
            with os.scandir(self.path) as entries:
                return sorted(entries, key=lambda entry: entry.name)

        def replace(self, name: str, by: str) -> None:
            (self.path / by).replace(self.path / name)

        def take(self, name: str, path: Path) -> None:
            path.replace(self.path / name)

        def remove(self, name: str) -> None:
            (self.path / name).unlink()


if sys.platform != "win32":
    _LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    # To pass through a folder, as an ordinary path does: on Linux it must be searchable, elsewhere readable.
    _PASS = getattr(os, "O_PATH", 0) | _LIST
    _close = os.close

    def _reach(path: Path, listed: bool) -> int:
        """The descriptor of a folder."""
        *above, last = path.parts[1:] or (".",)
        here = os.open(path.anchor, _PASS)
        for name in above:
            here = _step(here, name, _PASS, path)
        return _step(here, last, _LIST if listed else _PASS, path)

    def _step(here: int, name: str, flags: int, path: Path) -> int:
        """From an open folder, which is closed, to one in it."""
        try:
            return _open(name, flags, 0, here, path)
        finally:
            os.close(here)

    def _open(name: str, flags: int, mode: int, folder: int, path: Path, below: str = "") -> int:
        """An error names the path and what is `below` it: joining them takes longer than to open a file."""
        try:
            return os.open(name, flags, mode, dir_fd=folder)
        except ValueError:
            reason = "its name has a character that no file name may have"
            raise OSError(errno.EINVAL, reason, str(path / below)) from None
        except OSError as error:
            if _is_link(error, name, folder):
                raise LinkInPath(path / below) from None
            raise OSError(error.errno, error.strerror, str(path / below)) from None

    def _is_link(error: OSError, name: str, folder: int) -> bool:
        """Whether a link is why an entry could not be opened."""
        if error.errno != errno.ENOTDIR:
            return error.errno in (errno.ELOOP, errno.EMLINK)  # EMLINK: FreeBSD
        # Both a link and a file fail as a folder. If it is a folder now, it was a link.
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except OSError:
            return False
        return stat.S_ISLNK(mode) or stat.S_ISDIR(mode)

else:
    import ctypes
    from ctypes import wintypes

    _kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel.CreateFileW.restype = wintypes.HANDLE
    _LIST_FOLDER, _SHARE_READ_WRITE, _EXISTING, _FOLDERS_TOO = 1, 1 | 2, 3, 0x0200_0000
    _LONGEST = 1 << 15
    _NETWORK, _LOCAL = "\\\\?\\UNC\\", "\\\\?\\"

    def _reach(path: Path, listed: bool) -> int:
        """A handle that keeps a folder from being renamed, because others may not delete it meanwhile."""
        del listed  # POSIX has no such restriction.
        handle: int | None = _kernel.CreateFileW(
            str(path), _LIST_FOLDER, _SHARE_READ_WRITE, None, _EXISTING, _FOLDERS_TOO, None
        )
        if handle is None or handle == wintypes.HANDLE(-1).value:
            raise ctypes.WinError(ctypes.get_last_error())
        try:
            if _place(handle) != _plain(path):
                raise LinkInPath(path)
        except BaseException:
            _close(handle)
            raise
        return handle

    def _close(handle: int) -> None:
        _kernel.CloseHandle(wintypes.HANDLE(handle))

    def _place(handle: int) -> Path:
        """Where the system has the file of a handle."""
        buffer = ctypes.create_unicode_buffer(_LONGEST)
        if not _kernel.GetFinalPathNameByHandleW(wintypes.HANDLE(handle), buffer, _LONGEST, 0):
            raise ctypes.WinError(ctypes.get_last_error())
        return _plain(Path(buffer.value))

    def _plain(path: Path) -> Path:
        """A path without the prefix for long ones."""
        name = str(path)
        if name.startswith(_NETWORK):
            return Path("\\\\" + name.removeprefix(_NETWORK))
        return Path(name.removeprefix(_LOCAL))
