"""Columns and texts on narrow screens, pipes and dumb terminals."""

from __future__ import annotations

import io
import os

import pytest
from rich.markdown import Markdown

from ragchat.ui.render.screen import Screen, make_console
from tests.support.screens import PyteFile, piped_screen, terminal


def test_a_short_name_is_not_broken_and_a_long_one_is_shown_whole() -> None:
    out = make_console(io.StringIO())
    out.width = 40
    screen = Screen(out, out, animated=False)
    name = "a-notebook-with-a-name-that-is-wider-than-the-screen"
    assert screen.listing([("8d47015ded65*", "2026-11-26 18:00", "How high is the deposit of the flat?")])
    assert screen.listing([(name, "3 documents", "in ~/papers")])
    assert isinstance(out.file, io.StringIO)
    first, *others = out.file.getvalue().splitlines()
    assert first.startswith("8d47015ded65*  2026")
    assert "".join(line.split(" ")[0] for line in others if line[0] != " ") == name


def test_on_a_very_narrow_screen_a_text_is_below_its_name() -> None:
    out = make_console(io.StringIO())
    out.width = 20
    assert Screen(out, out, animated=False).listing(
        [("/sessions [WORDS]", "list or search them"), ("/q", "leave")]
    )
    assert isinstance(out.file, io.StringIO)
    lines = [line.rstrip() for line in out.file.getvalue().splitlines()]
    assert lines == ["/sessions [WORDS]", "  list or search", "  them", "/q", "  leave"]


def test_the_columns_on_a_pipe_have_no_blanks_at_their_ends() -> None:
    screen, out, _ = piped_screen()
    screen.listing([("/a", "short"), ("/b", "a much longer text")])
    assert out.getvalue() == "/a  short\n/b  a much longer text\n"


def test_a_quotation_on_a_pipe_is_not_padded() -> None:
    screen, out, _ = piped_screen()
    screen.show(Markdown("> Cut the roses in March.\n\n[1] garden.md"))
    assert out.getvalue() == "\n▌ Cut the roses in March.\n\n[1] garden.md\n"


@pytest.mark.parametrize("kind", ["dumb", "unknown"])
def test_a_dumb_terminal_has_its_own_width(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((50, 12)))
    console = make_console(PyteFile(50, 12))
    assert console.is_dumb_terminal
    assert (console.width, console.height) == (50, 12)


def test_the_columns_on_a_terminal_have_no_blanks_at_their_ends() -> None:
    out, file = terminal(40)
    Screen(out, out, animated=True).listing([("/a", "short"), ("/b", "a text that takes two lines here")])
    assert [line for line in file.getvalue().splitlines() if line.endswith(" ")] == []


def test_a_spinner_leaves_the_cursor_visible_for_the_shell_to_which_it_is_suspended() -> None:
    out, file = terminal()
    with out.status("Thinking"):
        pass
    assert "\x1b[?25l" not in file.getvalue()
