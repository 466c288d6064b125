"""Replace a file as a whole: at any moment, other programs see the old content or the new one."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def replace_file(path: Path, data: bytes, new_mode: int = 0o600) -> None:
    """Write `data` to `path`; a new file gets `new_mode` (owner only), another one keeps its mode.

    A link is followed. After a crash the file has its old content. Raises OSError.
    """
    path = path.resolve()
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        except FileNotFoundError:
            temporary.chmod(new_mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
