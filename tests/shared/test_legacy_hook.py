"""Without the folder `legacy/` the modern half works: checked on a copy of the package that lacks it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ragmcp
from tests.support.processes import LONGEST_SECONDS

PACKAGE = Path(ragmcp.__file__).parent
ROOT = Path(__file__).resolve().parent.parent.parent


def without_legacy(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A module run with a copy of ragmcp that has no legacy folder."""
    shutil.copytree(PACKAGE, folder / "ragmcp", ignore=shutil.ignore_patterns("legacy", "__pycache__"))
    paths = [str(folder), str(ROOT), *(str(ROOT / name) for name in ("server", "config"))]
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )


def test_the_modern_half_works_without_the_legacy_folder(tmp_path: Path) -> None:
    done = without_legacy(tmp_path, "tests.support.modern_only", str(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("folder", ["shared", "server", "client", "config"])
def test_only_the_hook_names_the_legacy_folder(folder: str) -> None:
    named = re.compile(r"(?:from|import) ragmcp\.legacy\b|[\"']ragmcp\.legacy\b")
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / folder).rglob("*.py")
        if PACKAGE / "legacy" not in path.parents and named.search(path.read_text(encoding="utf-8"))
    ]
    assert found == (["shared/ragmcp/legacy_hook.py"] if folder == "shared" else [])
