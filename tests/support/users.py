"""Being a user who is not root, who may search every folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def ordinary_user() -> Iterator[Path]:
    """A folder of a user who is not root; until the end, this process is that user."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        user = os.geteuid()
        if user == 0:
            os.chown(name, 65_534, -1)
            os.seteuid(65_534)
        try:
            yield Path(name).resolve()
        finally:
            os.seteuid(user)
