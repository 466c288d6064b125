"""The parts that all formats share."""

from __future__ import annotations

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats import file_text as module
from ragmemory.files.formats.file_text import TextBuilder, clean, fenced, table


def test_the_places_are_the_lines_on_which_their_parts_begin() -> None:
    builder = TextBuilder()
    builder.add("one\ntwo\n", "p. 1")
    builder.add("  \n", "p. 2")
    builder.add("three", "p. 3")
    builder.add_rows([["a", "b"], ["c"]], ["row 1", "row 2"])
    found = builder.build("A\n title")
    lines = found.text.split("\n")
    assert [(lines[line - 1], label) for line, label in found.places] == [
        *(("one", "p. 1"), ("three", "p. 3")),
        *(("| a | b |", "row 1"), ("| c |  |", "row 2")),
    ]
    assert found.title == "A title"


def test_a_text_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHARACTERS", 10)
    builder = TextBuilder()
    builder.add("12345")
    with pytest.raises(NotText, match="holds more than 10 characters of text"):
        builder.add("678901")


def test_control_characters_and_half_characters_are_removed() -> None:
    assert clean("a\x00b\ud800c\x0cd\r\ne\u2028f\tg") == "abc\nd\ne\nf\tg"


def test_signs_within_words_that_are_not_seen_are_removed() -> None:
    assert clean("\ufeffDie Donau\xaddampf\xadschifffahrt 20\u2060%\n") == "Die Donaudampfschifffahrt 20%\n"
    assert clean("می\u200cخواهم") == "می\u200cخواهم"  # A sign that is part of the spelling.


def test_a_fence_is_longer_than_those_in_the_code() -> None:
    assert fenced("```\nx\n```\n", "md") == "````md\n```\nx\n```\n````"


def test_rows_have_as_many_cells_as_the_widest() -> None:
    assert table([["a"], ["b|c", "d"]]) == ["| a |  |", "| --- | --- |", "| b\\|c | d |"]
    assert table([]) == []
