"""Replace a file as a whole: at any moment, other programs see the old content or the new one."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

# Of a new file: only its owner may read it.
PRIVATE = 0o600


def replace_file(path: Path, data: bytes, new_mode: int = PRIVATE) -> None:
    """Write `data` to `path`; a new file gets `new_mode`, another one keeps its mode.

    A link is followed. After a crash the file has its old content. Raises OSError.
    """
    path = path.resolve()
    beside = written_beside(path, data, new_mode)
    try:
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def written_beside(path: Path, data: bytes, new_mode: int = PRIVATE) -> Path:
    """A new hidden file in the same folder, synced, with the mode of `path` or else `new_mode`.

    Raises OSError.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        except FileNotFoundError:
            beside.chmod(new_mode)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return beside
