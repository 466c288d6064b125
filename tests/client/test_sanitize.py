"""Text from documents and models, made harmless for a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragchat.sanitize import one_line, sanitize, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 日本", "plain ä 日本"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[2J\x1b]52;c;eA==\x07", "␛[2J␛]52;c;eA==␇"),
        ("safe\rEVIL", "safeEVIL"),
        ("line\r\nend", "line\nend"),
        ("\x9b31m", "\ufffd31m"),
        ("abc\u202edef\u2066", "abc\ufffddef\ufffd"),
        ("\ud800", "\ufffd"),
        ("\x7f", "␡"),
    ],
)
def test_nothing_that_a_terminal_obeys_is_left_in_a_text(text: str, shown: str) -> None:
    assert sanitize(text) == shown


@given(st.text(st.characters()))
def test_whatever_comes_can_be_encoded_and_holds_no_control_character(text: str) -> None:
    shown = sanitize(text)
    shown.encode("utf-8")
    assert all(character in "\n\t" or not 0 <= ord(character) - 127 < 33 for character in shown)
    assert all(character in "\n\t" or ord(character) >= 32 for character in shown)


def test_one_line_is_one_line_and_no_longer_than_asked() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("abcdef", 4) == "abc…"


@given(st.text(st.characters()))
def test_what_the_user_decides_on_has_no_character_that_does_not_show(text: str) -> None:
    shown = visible(text)
    assert all(character == "\n" or character.isprintable() for character in shown)
    assert len(shown) >= len(text)
