"""Completion of slash commands and their arguments.

Covers `command` and `completions`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from ragchat.ui.prompt.session import SanitizedCompleter
from ragchat.ui.slash import table as slash
from ragchat.ui.slash.completer import SlashCompleter


async def completed(text: str) -> list[str]:
    completer = SlashCompleter(lambda: None)
    event = CompleteEvent()
    return [c.text async for c in completer.get_completions_async(Document(text), event)]


async def test_every_command_completes_by_its_first_letters() -> None:
    assert await completed("/") == [c.name + " " * bool(c.arguments) for c in slash.COMMANDS]
    assert await completed("/fo") == ["forget "]
    assert await completed("/retry") == ["retry"]


@pytest.mark.parametrize("text", ["", "hello", "what /me", "//me", "/nothing", "/why x"])
async def test_ordinary_text_is_never_completed(text: str) -> None:
    assert await completed(text) == []


async def test_arguments_complete_paths_with_spaces_and_the_last_of_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "My notes").mkdir()
    (tmp_path / "My notes" / "tea.md").touch()
    (tmp_path / "other.md").touch()
    assert await completed("/inject My") == [" notes"]
    assert await completed(f"/inject My notes{os.sep}te") == ["a.md"]
    assert await completed("/inject some.md oth") == ["er.md"]


async def test_the_menu_shows_no_control_characters_of_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a\u202etxt.md").touch()
    completer = SanitizedCompleter(SlashCompleter(lambda: None))
    found = [c async for c in completer.get_completions_async(Document("/inject a"), CompleteEvent())]
    assert [(one.text, one.display_text) for one in found] == [("\u202etxt.md", "a\ufffdtxt.md")]


async def test_completions_that_need_the_conversation_are_empty_while_it_starts() -> None:
    assert await completed("/forget te") == []
    assert await completed("/model gp") == []
    assert await completed("/resume ") == []
