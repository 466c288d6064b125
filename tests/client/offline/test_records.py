"""The records of CSV and TSV texts."""

from __future__ import annotations

import pytest

from ragchat.offline.records import fields, named_fields, record_spans, separator_of


def test_a_record_ends_at_a_line_end_outside_of_quotes() -> None:
    text = 'name,note\r\n"Rope, hemp","two\nlines"\n\n19" screen,new\nAsh,old'
    assert [text[start:end] for start, end in record_spans(text)] == [
        "name,note",
        '"Rope, hemp","two\nlines"',
        '19" screen,new',
        "Ash,old",
    ]


@pytest.mark.parametrize(
    ("line", "separator"),
    [("a,b;c;d", ";"), ("a\tb", "\t"), ('"a;b;c",d', ","), ("alone", ",")],
)
def test_the_most_frequent_separator_outside_of_quotes_is_used(line: str, separator: str) -> None:
    assert separator_of(line) == separator


def test_quoted_fields_lose_their_quotes_and_line_breaks() -> None:
    assert fields('"Paint ""Signal""","two\nlines",3', ",") == ['Paint "Signal"', "two lines", "3"]


def test_values_are_named_by_their_columns_and_empty_ones_are_left_out() -> None:
    assert named_fields(["name", "sign", "place"], ["Skua", "", "Oban", "new"]) == (
        "name: Skua · place: Oban · new"
    )
