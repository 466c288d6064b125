"""A file in the user's editor at a line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragchat.errors import CommandNotPossible
from ragchat.ui.editor import editor_command

PATH = Path("/notes/a; rm b.md")


@pytest.mark.skipif(os.name == "nt", reason="paths and quoting of POSIX")
@pytest.mark.parametrize(
    ("editor", "command"),
    [
        ("vim", ["vim", "+7", str(PATH)]),
        ("/usr/bin/nano -w", ["/usr/bin/nano", "-w", "+7", str(PATH)]),
        ("code --wait", ["code", "--wait", "-g", f"{PATH}:7"]),
        ("hx", ["hx", f"{PATH}:7"]),
        ("'my editor'", ["my editor", str(PATH)]),
    ],
)
def test_an_editor_gets_the_path_as_one_word_and_the_line_as_it_takes_it(
    editor: str, command: list[str]
) -> None:
    assert editor_command(PATH, 7, {"EDITOR": editor}) == command
    assert editor_command(PATH, 7, {"VISUAL": editor, "EDITOR": "ed"}) == command


def test_without_an_editor_nothing_can_be_opened() -> None:
    with pytest.raises(CommandNotPossible, match="neither"):
        editor_command(PATH, 7, {})
