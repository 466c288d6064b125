"""The generated parts of docs/contracts.md are those that the program gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.contracts import PAGE, SCRIPTS, STATIC, documents_of, part, parts_of
from tests.docs.pages import ROOT, read

HOW = "`python -m tests.docs.contracts` writes the page"


@pytest.mark.parametrize("name", STATIC)
def test_commands_tools_prompts_errors_and_settings_are_those_of_the_program(name: str) -> None:
    assert parts_of(read(PAGE))[name] == part(STATIC[name]()), HOW


@pytest.mark.full
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_documents_of_the_commands_have_the_fields_that_the_page_shows(name: str, tmp_path: Path) -> None:
    assert parts_of(read(PAGE))[name] == documents_of(SCRIPTS[name], tmp_path), HOW


def test_each_code_with_which_a_command_fails_is_on_the_page() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "client").rglob("*.py")]
    codes = {code for source in sources for code in re.findall(r'Failure\(\s*"([A-Z_]+)"', source)}
    assert codes > {"USAGE", "INJECT_FAILED"}
    page = read(PAGE)
    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []
