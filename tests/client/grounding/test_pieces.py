"""Passages in pieces, and prose cut into sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragchat.grounding.pieces import MAX_LINE, piece_spans, sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("One is here. Two is there! Is three?", ["One is here.", "Two is there!", "Is three?"]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("Dr. Smith met J. R. Ewing in St. Louis. They talked.", None),
        ("Das kostet z. B. 3.5 Mio. Euro. Das ist viel.", None),
        ("Am 3. Oktober begann es. Danach nicht mehr.", None),
        (
            "水是生命之源。没有水就没有生命！“真的吗？”他问。",
            ["水是生命之源。", "没有水就没有生命！", "“真的吗？”", "他问。"],
        ),
        ("no capital. here it goes on", ["no capital. here it goes on"]),
        ("A line\nthat wraps. Another one.", ["A line\nthat wraps.", "Another one."]),
        ("", []),
    ],
)
def test_prose_is_cut_at_the_end_of_sentences(text: str, cut: list[str] | None) -> None:
    found = sentences(text)
    assert len(found) == 2 if cut is None else found == cut


@given(st.text(alphabet="aB .!?\n。\"'1", max_size=80))
def test_sentences_together_are_the_text_without_the_space_between(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_lines_are_pieces_with_their_indentation_and_empty_lines_are_none() -> None:
    text = "# Ports\n\n  port = 80  \nOne. Two.\n"
    assert [text[start:end] for start, end in piece_spans(text)] == ["# Ports", "  port = 80", "One. Two."]


def test_a_long_line_is_cut_into_its_sentences() -> None:
    sentence = "The pump is in the cellar. "
    text = "Short.\n" + sentence * (MAX_LINE // len(sentence) + 1)
    assert {text[start:end] for start, end in piece_spans(text)} == {"Short.", sentence.strip()}
