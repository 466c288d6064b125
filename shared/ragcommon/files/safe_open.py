"""Read files from untrusted folders: regular files only, up to a size limit.

Both programs read files that a user names or that are in a folder. Few imports: the settings need it.
"""

from __future__ import annotations

import errno
import math
import os
import stat
import sys
from collections.abc import Container
from pathlib import Path

from ragcommon.files.folder import READ, Folder


class NotARegularFile(OSError):
    """A folder, FIFO, socket or device."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", str(path))


class FileTooLarge(OSError):
    """A file of `size` bytes; None if that is not known, because the file has no size or is growing."""

    def __init__(self, path: Path, size: int | None, most: int) -> None:
        super().__init__(errno.EFBIG, too_large(size, most), str(path))


class KeptOpen(OSError):
    """A file that this process must not close, so it was left open."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EBUSY, "it is in use", str(path))


class ReadableByOthers(OSError):
    """A private file that other users of this machine may read or write; `mode` are its permission bits."""

    def __init__(self, path: Path, mode: int) -> None:
        super().__init__(errno.EACCES, f"other users have access to it (mode {mode:03o})", str(path))


def read_regular(
    path: Path,
    most: int,
    *,
    private: bool = False,
    links: bool = True,
    kept_open: Container[tuple[int, int] | None] = (),
) -> bytes:
    """The content of a regular file of at most `most` bytes; links are followed.

    Without `links`, `path` is resolved, and one that has changed since is an error: see `Folder`. With
    `private`, only the owner may have access to the file (not checked on Windows, which has no file modes).
    The files with the identities `kept_open` (device and inode) are opened and not closed. Raises
    NotARegularFile, FileTooLarge, ReadableByOthers, KeptOpen, LinkInPath, and OSError as `open` does; the
    `strerror` of each ends a sentence such as "… cannot be read: …".
    """
    if not links:
        with Folder(path.parent) as folder:
            return read_in(folder, path.name, most)
    try:
        descriptor = os.open(path, READ)
    except ValueError:
        raise OSError(
            errno.EINVAL, "its name has a character that no file name may have", str(path)
        ) from None
    status = os.fstat(descriptor)
    if (status.st_dev, status.st_ino) in kept_open:
        raise KeptOpen(path)
    try:
        return _read(descriptor, path, most, private=private)
    finally:
        os.close(descriptor)


def read_in(folder: Folder, name: str, most: int) -> bytes:
    """The content of a file in an open folder, as `read_regular` reads it."""
    descriptor = folder.open(name)
    try:
        return _read(descriptor, folder.path / name, most)
    finally:
        os.close(descriptor)


def _read(descriptor: int, path: Path, most: int, *, private: bool = False) -> bytes:
    # Check the open file, not its name: the name may refer to another file a moment later.
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise NotARegularFile(path)
    if private and sys.platform != "win32" and (mode := stat.S_IMODE(status.st_mode)) & 0o077:
        raise ReadableByOthers(path, mode)
    if status.st_size > most:
        raise FileTooLarge(path, status.st_size, most)
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        data = file.read(status.st_size + 1)
        if len(data) > status.st_size:  # it is growing, or has no size, like the files in /proc
            data += file.read(most + 1 - len(data))
    if len(data) > most:
        raise FileTooLarge(path, None, most)
    return data


def too_large(size: int | None, most: int) -> str:
    """Why a file of `size` bytes is not read, as the end of a sentence about it."""
    return f"it is larger than {readable_size(most)}" + (
        f" ({readable_size(size)})" if size is not None else ""
    )


def readable_size(size: int) -> str:
    """`1,000 bytes`; from a mebibyte on `128 MiB`, rounded up to a tenth."""
    return f"{size:,} bytes" if size < 2**20 else f"{math.ceil(size * 10 / 2**20) / 10:,.10g} MiB"
