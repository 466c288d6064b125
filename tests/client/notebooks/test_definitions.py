"""Definitions of notebooks: their names, and their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ragchat.errors import NotebookExists, NotebookNameRefused, NotebookUnusable, UnknownNotebook
from ragchat.notebooks.definitions import (
    MAX_INSTRUCTIONS,
    Notebook,
    checked_name,
    create,
    listed,
    load,
    remove,
    save,
)

THESIS = Notebook("thesis", "/papers", 'Be brief.\nUse "metric" units \\n, {x}\x7f.', "small")


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_comes_back_from_the_file(tmp_path: Path, text: str) -> None:
    notebook = Notebook("thesis", text, text, text)
    save(tmp_path, notebook)
    assert load(tmp_path, "thesis") == notebook


def test_a_notebook_is_found_in_any_case_and_gone_when_it_is_removed(tmp_path: Path) -> None:
    create(tmp_path / "new", THESIS)
    assert load(tmp_path / "new", "Thesis") == THESIS
    with pytest.raises(NotebookExists):
        create(tmp_path / "new", THESIS)
    with pytest.raises(UnknownNotebook) as found:
        load(tmp_path / "new", "thesos")
    assert found.value.near == ["thesis"]
    remove(tmp_path / "new", "THESIS")
    with pytest.raises(UnknownNotebook):
        remove(tmp_path / "new", "thesis")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\\b", "a.b", "-x", "con", "LPT1", "a b", "a\n", "a\0", "x" * 49]
)
def test_a_name_that_is_no_plain_file_name_is_refused(name: str) -> None:
    with pytest.raises(NotebookNameRefused):
        checked_name(name)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('modle = "x"', "there is no key modle; the nearest known one is model"),
        ("in = 7", "in takes text, not 7"),
        ("in = ", "it is not valid TOML"),
        (f'instructions = "{"x" * (MAX_INSTRUCTIONS + 1)}"', "8,001 characters"),
    ],
)
def test_a_file_is_read_strictly(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "bad.toml").write_text(content, encoding="utf-8")
    with pytest.raises(NotebookUnusable, match=reason):
        load(tmp_path, "bad")
    save(tmp_path, THESIS)
    (error, found) = listed(tmp_path)
    assert isinstance(error, NotebookUnusable)
    assert found == THESIS
