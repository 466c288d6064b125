"""Replace a file as a whole: other programs see either the old content or the new one."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ragcommon.files.folder import CREATE, Folder

# The mode of a new file: only its owner may read it.
PRIVATE = 0o600


def private_folder(folder: Path) -> Path:
    """Make `folder` and those above it, if they are missing; only their owner may read those made.

    That is so where the platform has file modes.
    """
    if not folder.parent.exists():  # `parents=True` would leave its mode to the umask.
        private_folder(folder.parent)
    folder.mkdir(exist_ok=True, mode=0o700 if sys.platform != "win32" else 0o777)
    return folder


def replace_file(path: Path, data: bytes, new_mode: int = PRIVATE) -> None:
    """Write `data` to `path`; a new file gets `new_mode`, another one keeps its mode.

    It keeps its owner and its access list too, if this process may set them. A link is followed. A missing
    folder is made, see `private_folder`. After a crash the file has its old content. Raises OSError.
    """
    private_folder(path.parent)
    path = path.resolve()
    with Folder(path.parent) as folder:
        replace_in(folder, path.name, data, new_mode)


def replace_in(folder: Folder, name: str, data: bytes, new_mode: int = PRIVATE) -> None:
    """`replace_file` for a file in an open folder; a link in its place is replaced."""
    temporary = write_temporary(folder, name, data, new_mode)
    with _removed_on_error(folder, temporary):
        folder.replace(name, by=temporary)


@contextmanager
def appearing(folder: Folder, name: str) -> Iterator[IO[bytes]]:
    """A file that takes the place of `name`, synced, when the block ends without an error; it is private.

    On an error it is removed. Raises OSError.
    """
    temporary, descriptor = _new_temporary(folder, name)
    with _removed_on_error(folder, temporary):
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        folder.replace(name, by=temporary)


def write_temporary(folder: Folder, name: str, data: bytes, new_mode: int = PRIVATE) -> str:
    """The name of a new hidden file in the folder, synced, with the mode, owner and attributes of `name`.

    If there is no such file, it has `new_mode`. Raises OSError.
    """
    temporary, descriptor = _new_temporary(folder, name)
    removed, named = _removed_on_error(folder, temporary), _naming(folder.path / name)
    with removed, named, os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
        try:
            _make_like(folder, name, temporary, descriptor)
        except FileNotFoundError:
            _set_mode(folder, temporary, descriptor, new_mode)
    return temporary


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """An error of a descriptor, such as a full disk, names no file: it gets `path`."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def _removed_on_error(folder: Folder, temporary: str) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):
            folder.remove(temporary)
        raise


def _new_temporary(folder: Folder, name: str) -> tuple[str, int]:
    """The name and descriptor of a new hidden file; only its owner may read it."""
    temporary = f".{name}-{os.urandom(8).hex()}"
    try:
        return temporary, folder.open(temporary, CREATE, PRIVATE)
    except OSError as error:
        error.filename = str(folder.path)  # The error must name the file that the user knows.
        raise


def _make_like(folder: Folder, name: str, temporary: str, descriptor: int) -> None:
    """Give the open file `temporary` the mode of `name`, and its owner and attributes if this process may.

    On Linux an access list is one of the attributes. Not the times: the file has changed. Raises OSError.
    """
    old, new = folder.stat(name), os.fstat(descriptor)
    if sys.platform != "win32" and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        # Separately: a user may change a file's group to one of their own, but not its owner.
        for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
            with suppress(OSError):
                os.fchown(descriptor, owner, group)
    # After chown, which clears some of its bits.
    _set_mode(folder, temporary, descriptor, stat.S_IMODE(old.st_mode))
    if sys.platform == "linux":
        with suppress(OSError):
            _copy_attributes(folder, name, descriptor)


def _set_mode(folder: Folder, name: str, descriptor: int, mode: int) -> None:
    if sys.platform == "win32":
        (folder.path / name).chmod(mode)
    else:
        os.fchmod(descriptor, mode)


if sys.platform == "linux":

    def _copy_attributes(folder: Folder, name: str, descriptor: int) -> None:
        old = folder.open(name)
        try:
            for attribute in os.listxattr(old):
                with suppress(OSError):
                    os.setxattr(descriptor, attribute, os.getxattr(old, attribute))
        finally:
            os.close(old)
