"""Without the folder `legacy/` the modern half works: checked on a copy of the package that lacks it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import LONGEST_SECONDS
from tests.support.without_legacy import PACKAGE, ROOT, copy_without_legacy


def test_the_modern_half_works_without_the_legacy_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.modern_only", str(tmp_path)],
        cwd=ROOT,
        env=copy_without_legacy(tmp_path),
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("folder", ["shared", "server", "client", "config"])
def test_only_the_hook_names_the_legacy_folder(folder: str) -> None:
    named = re.compile(r"(?:from|import) ragmcp\.legacy\b|[\"']ragmcp\.legacy\b")
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / folder).rglob("*.py")
        if PACKAGE / "legacy" not in path.parents and named.search(path.read_text(encoding="utf-8"))
    ]
    assert found == (["shared/ragmcp/older_revisions.py"] if folder == "shared" else [])
