"""The commands of editors and pagers for a text at a line, and running them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ragchat.errors import CommandNotPossible
from ragchat.ui.editor import editor_command, pager_command, run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="paths and quoting of POSIX")

PATH = Path("/notes/a; rm {line} b.md")


@pytest.mark.parametrize(
    ("editor", "command"),
    [
        ("vim", ["vim", "+7", str(PATH)]),
        ("vim.basic", ["vim.basic", "+7", str(PATH)]),
        ("nvim --clean", ["nvim", "--clean", "+7", str(PATH)]),
        ("vi", ["vi", "+7", str(PATH)]),
        ("/usr/bin/nano -w", ["/usr/bin/nano", "-w", "+7", str(PATH)]),
        ("emacs -nw", ["emacs", "-nw", "+7", str(PATH)]),
        ("emacsclient -c", ["emacsclient", "-c", "+7", str(PATH)]),
        ("micro", ["micro", "+7", str(PATH)]),
        ("kak", ["kak", "+7", str(PATH)]),
        ("code --wait", ["code", "--wait", "-g", f"{PATH}:7"]),
        ("codium", ["codium", "-g", f"{PATH}:7"]),
        ("cursor", ["cursor", "-g", f"{PATH}:7"]),
        ("hx", ["hx", f"{PATH}:7"]),
        ("zed --wait", ["zed", "--wait", f"{PATH}:7"]),
        ("subl", ["subl", f"{PATH}:7"]),
        ("idea64.exe", ["idea64.exe", "--line", "7", str(PATH)]),
        ("pycharm", ["pycharm", "--line", "7", str(PATH)]),
        ("mate -w", ["mate", "-w", "--line", "7", str(PATH)]),
        ("notepad++.exe", ["notepad++.exe", "-n7", str(PATH)]),
        ("'my editor' --at {path}:{line}", ["my editor", "--at", f"{PATH}:7"]),
        ("ed --line={line}", ["ed", "--line=7", str(PATH)]),
    ],
)
def test_an_editor_gets_the_path_as_one_word_and_the_line_as_it_takes_it(
    editor: str, command: list[str]
) -> None:
    assert editor_command(PATH, 7, "", {"EDITOR": editor}) == (command, True)
    assert editor_command(PATH, 7, "", {"VISUAL": editor, "EDITOR": "ed"}) == (command, True)
    assert editor_command(PATH, 7, editor, {"VISUAL": "vim"}) == (command, True)


def test_an_unknown_editor_gets_the_path_and_no_line() -> None:
    assert editor_command(PATH, 7, "", {"EDITOR": "'my editor' -x"}) == (
        ["my editor", "-x", str(PATH)],
        False,
    )
    assert editor_command(PATH, 7, "", {}) is None


def test_a_path_with_spaces_may_be_the_whole_command(tmp_path: Path) -> None:
    program = tmp_path / "my tools" / "vim"
    program.parent.mkdir()
    program.touch()
    assert editor_command(PATH, 7, "", {"EDITOR": str(program)}) == ([str(program), "+7", str(PATH)], True)


def test_a_missing_quotation_mark_is_an_error() -> None:
    with pytest.raises(CommandNotPossible, match=r"a quotation mark is missing in the command vim 'x"):
        editor_command(PATH, 7, "", {"EDITOR": "vim 'x"})


def test_a_pager_gets_the_line_and_one_that_takes_none_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}" if name == "more" else None)
    assert pager_command(PATH, 7, {"PAGER": "less -R"}).words == ["less", "-R", "+7", str(PATH)]
    assert pager_command(PATH, 7, {"PAGER": "cat"}).words == ["more", "+7", str(PATH)]
    assert pager_command(PATH, 7, {}).words == ["more", "+7", str(PATH)]
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(CommandNotPossible, match="name no editor, and there is no pager"):
        pager_command(PATH, 7, {})


async def test_a_program_that_cannot_start_or_fails_is_named() -> None:
    with pytest.raises(CommandNotPossible, match="no-such-editor cannot be started: no such file"):
        await run(["no-such-editor", str(PATH)])
    with pytest.raises(CommandNotPossible, match="ended with the exit code 3"):
        await run([sys.executable, "-c", "raise SystemExit(3)"])
