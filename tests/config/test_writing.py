"""Single values are changed in the user's settings file, and nothing else in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragchat.commands.config import template
from ragconfig.errors import NotWritten
from ragconfig.settings import load_settings
from ragconfig.writing import Value, write_settings

CHOSEN: dict[str, Value] = {"model.name": 'a "b" \\c', "model.base_url": "http://127.0.0.1:1/v1"}


def test_a_value_goes_below_its_commented_default_and_is_taken_back_without_a_trace(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(template(), encoding="utf-8")
    previous = write_settings(file, CHOSEN)
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[lines.index('#name = "auto"') + 1] == 'name = "a \\"b\\" \\\\c"'
    assert load_settings(file, environ={}).tables["model"]["name"] == CHOSEN["model.name"]
    assert write_settings(file, previous) == CHOSEN
    assert file.read_text(encoding="utf-8") == template()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[model]\nname = "new"\n'),
        ("# mine", '# mine\n[model]\nname = "new"\n'),
        ("[model] # mine\r\nname = 'a # b' # keep\r\n", '[model] # mine\r\nname = "new" # keep\r\n'),
        ('[retrieval]\nname2 = 1\n[model]\n\n[web]\nname = "x"\n', None),
    ],
)
def test_other_lines_and_comments_stay(before: str, after: str | None, tmp_path: Path) -> None:
    file = tmp_path / "folder" / "config.toml"
    file.parent.mkdir()
    file.write_bytes(before.encode())
    write_settings(file, {"model.name": "new"})
    expected = before.replace("[model]\n", '[model]\nname = "new"\n') if after is None else after
    assert file.read_bytes().decode() == expected


@pytest.mark.parametrize(
    "text",
    [
        'model.name = "a"\n',
        'model = { name = "a" }\n',
        'model = "a"\n',
        '[model]\nname = """\na"""\n',
        '["model"]\nname = "a"\n',
        'x = """\n[model]\n"""\n[model]\n',
    ],
)
def test_a_file_that_is_written_in_an_unusual_way_is_left_as_it_is(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(NotWritten) as raised:
        write_settings(file, {"model.name": "new"})
    assert raised.value.hint == 'Change it yourself: model.name = "new".'
    assert file.read_text() == text
