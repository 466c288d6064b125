"""Where the finished blocks of Markdown end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragchat.markdown import split_finished


@pytest.mark.parametrize(
    ("text", "finished", "rest"),
    [
        ("", "", ""),
        ("One line", "", "One line"),
        ("One line\n\n", "", "One line\n\n"),
        ("One\n\nTwo", "", "One\n\nTwo"),  # "Two" is no whole line yet
        ("One\n\nTwo\n", "One\n\n", "Two\n"),
        ("- a\n- b\n\n- c\n", "", "- a\n- b\n\n- c\n"),
        ("1. a\n\n2", "", "1. a\n\n2"),
        ("Text\n\n```\nx\n\ny\n", "Text\n\n", "```\nx\n\ny\n"),
        ("| a |\n|---|\n| 1 |\n", "", "| a |\n|---|\n| 1 |\n"),
        ("| a |\n|---|\n| 1 |\n\nafter\n", "| a |\n|---|\n| 1 |\n\n", "after\n"),
        ("# One\nTwo\n", "# One\n", "Two\n"),
        ("[1]: notes.md\n\nend\n", "[1]: notes.md\n\n", "end\n"),
    ],
)
def test_a_block_is_finished_when_the_next_one_has_begun(text: str, finished: str, rest: str) -> None:
    assert split_finished(text) == (finished, rest)


@given(st.text(alphabet="ab \n#-|`>1.*\t", max_size=80))
def test_cutting_loses_nothing(text: str) -> None:
    finished, rest = split_finished(text)
    assert finished + rest == text
