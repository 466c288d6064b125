"""A copy of ragmcp that has no legacy folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import ragmcp

PACKAGE = Path(ragmcp.__file__).parent
ROOT = Path(__file__).resolve().parent.parent.parent


def copy_without_legacy(folder: Path) -> dict[str, str]:
    """Make the copy in `folder`; the environment in which programs import it."""
    shutil.copytree(PACKAGE, folder / "ragmcp", ignore=shutil.ignore_patterns("legacy", "__pycache__"))
    paths = [folder, ROOT, ROOT / "server", ROOT / "config"]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
