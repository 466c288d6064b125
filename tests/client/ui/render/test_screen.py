"""Columns on a narrow screen."""

from __future__ import annotations

import io

from ragchat.ui.render.screen import Screen, make_console
from tests.support.screens import piped_screen


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


def test_the_columns_on_a_pipe_have_no_blanks_at_their_ends() -> None:
    screen, out, _ = piped_screen()
    screen.listing([("/a", "short"), ("/b", "a much longer text")])
    assert out.getvalue() == "/a  short\n/b  a much longer text\n"
