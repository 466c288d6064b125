"""The manual pages are those of the parsers, and are installed."""

from __future__ import annotations

import shutil
import subprocess
import tomllib

import pytest

from tests.docs.manual import FOLDER, PARSERS, page
from tests.docs.pages import ROOT, read


@pytest.mark.parametrize("program", PARSERS)
def test_a_manual_page_has_the_commands_and_options_of_the_program(program: str) -> None:
    path = FOLDER / f"{program}.1"
    assert read(path) == page(program), "`python -m tests.docs.manual` writes the pages"
    if groff := shutil.which("groff"):
        done = subprocess.run([groff, "-man", "-ww", "-z", path], capture_output=True, text=True, check=True)
        assert done.stderr == ""


def test_the_wheel_installs_them_where_man_looks() -> None:
    wheel = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["shared-data"] == {FOLDER.relative_to(ROOT).as_posix(): "share/man/man1"}
