"""Replace a file as a whole: at any moment, other programs see the old content or the new one."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

# Of a new file: only its owner may read it.
PRIVATE = 0o600


def replace_file(path: Path, data: bytes, new_mode: int = PRIVATE) -> None:
    """Write `data` to `path`; a new file gets `new_mode`, another one keeps its mode.

    It keeps its owner and its access list too, if this process may set them. A link is followed. After a
    crash the file has its old content. Raises OSError.
    """
    path = path.resolve()
    beside = written_beside(path, data, new_mode)
    try:
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def written_beside(path: Path, data: bytes, new_mode: int = PRIVATE) -> Path:
    """A new hidden file in the same folder, synced, with the mode, owner and attributes of `path`.

    If there is no such file, it has `new_mode`. Raises OSError.
    """
    from tempfile import mkstemp

    descriptor, name = mkstemp(dir=path.parent, prefix=f".{path.name}-")
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            _make_like(beside, path)
        except FileNotFoundError:
            beside.chmod(new_mode)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return beside


def _make_like(beside: Path, path: Path) -> None:
    """Give a file the mode of another, and its owner and attributes as far as this process may set them.

    On Linux an access list is one of the attributes. Not the times: the file has changed. Raises OSError.
    """
    old, new = path.stat(), beside.stat()
    if sys.platform != "win32" and (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        # Apart: a user may give a file to a group of theirs, but not to another user.
        for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
            with suppress(OSError):
                os.chown(beside, owner, group)
    beside.chmod(stat.S_IMODE(old.st_mode))  # After chown, which clears some of its bits.
    if sys.platform == "linux":
        with suppress(OSError):
            for name in os.listxattr(path):
                with suppress(OSError):
                    os.setxattr(beside, name, os.getxattr(path, name))
