"""Rules of the project that no linter checks: early imports, sleeping tests, registry addresses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

HEAVY = (
    "openai",
    "httpx2",
    "numpy",
    "wordllama",
    "tokenizers",
    "starlette",
    "uvicorn",
    "rich.markdown",
    "aiosqlite",
)
# `sleep_forever` is no waiting: the test ends it. A reason is a comment that begins with "sleep:".
SLEEP = re.compile(r"\bsleep\((?!.*# sleep: \w)")
ADDRESSES = re.compile(r"(?:index-url|extra-index|pypi\.org/simple|files\.pythonhosted|registry\.npmjs)")


def tracked_files() -> list[Path]:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")
    files = [ROOT / name for name in names if name and (ROOT / name).is_file()]
    if not files:
        pytest.skip("not a git checkout: there is no list of the project's own files")
    return files


@pytest.mark.parametrize(
    "module", ["ragchat.cli", "ragmemory.cli", "ragmcp.server.server", "ragmcp.client.client"]
)
def test_importing_a_front_door_imports_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_no_test_sleeps() -> None:
    """Time passes too slowly on a busy machine, and too fast on an idle one: tests wait for events."""
    sleeping = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked_files()
        if path.suffix == ".py" and path.is_relative_to(ROOT / "tests") and path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if SLEEP.search(line)
    ]
    assert sleeping == []


def test_no_file_records_the_address_of_a_package_registry() -> None:
    guilty = [
        path.relative_to(ROOT)
        for path in tracked_files()
        if path != Path(__file__).resolve()
        and ADDRESSES.search(path.read_text(encoding="utf-8", errors="ignore"))
    ]
    assert guilty == []
