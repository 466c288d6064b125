"""Text for the screen: made harmless, shortened, cut into blocks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragchat.formatting import counted, local, seconds
from ragchat.sanitize import neutral, one_line
from ragchat.ui.render.blocks import split_finished
from ragchat.ui.render.places import place, short_uri


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
    assert neutral(text) == shown


@given(st.text(st.characters()))
def test_whatever_comes_can_be_encoded_and_holds_no_control_character(text: str) -> None:
    shown = neutral(text)
    shown.encode("utf-8")
    assert all(character in "\n\t" or not 0 <= ord(character) - 127 < 33 for character in shown)
    assert all(character in "\n\t" or ord(character) >= 32 for character in shown)


def test_one_line_is_one_line_and_no_longer_than_asked() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("abcdef", 4) == "abc…"


def test_a_file_below_the_working_folder_is_shown_relative_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my notes" / "ä.md"
    assert short_uri(path.as_uri()) == "my notes/ä.md"
    assert place(path.as_uri(), 3, 9) == "my notes/ä.md:3–9"
    assert place(path.as_uri(), 3, 3) == "my notes/ä.md:3"


def test_a_file_below_home_begins_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert short_uri((tmp_path / "notes.md").as_uri()) == "~/notes.md"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not delete a working folder")
def test_a_working_folder_that_was_deleted_shortens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert short_uri((tmp_path / "notes.md").as_uri()) == str(tmp_path / "notes.md")


def test_other_uris_stay_as_they_are_and_a_bare_hash_goes_by_its_title() -> None:
    assert short_uri("https://example.org/a b") == "https://example.org/a b"
    assert short_uri("sha256:" + "ab" * 32, "A letter") == "A letter"
    assert short_uri("sha256:" + "ab" * 32) == "sha256:abababababab"
    assert "\x1b" not in short_uri("note:\x1b[2J")


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


def test_numbers_and_times_read_well() -> None:
    assert counted(1, "chunk") == "1 chunk"
    assert counted(1204, "chunk") == "1,204 chunks"
    assert seconds(0.0124) == "12 ms"
    assert seconds(2.06) == "2.1 s"
    assert local("yesterday") == "yesterday"
    assert local("2026-01-01T12:00:00Z").startswith("202")
