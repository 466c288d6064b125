from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmemory.search.queries import parse
from ragmemory.text.analysis import query_stems, stems, terms


@given(st.text())
def test_any_text_is_a_query(text: str) -> None:
    assert terms(query_stems(parse(text).text)) == terms(query_stems(text))


@pytest.mark.parametrize(
    ("text", "phrases", "prefixes"),
    [
        ("plain words", [], []),
        ('the "red fox" runs', ["red fox"], []),
        ("das „rote Pferd“ und «la mer» und 「東京」", ["rote Pferd", "la mer", "東京"], []),
        ('an open " quote', [], []),
        ('empty "" and " "', [], []),
        ("walk* and a* and 2 * 3", [], ["walk"]),
        ('NEAR("a b", 3) title:x -not ^caret', ["a b"], []),
    ],
)
def test_phrases_and_prefixes_are_the_only_syntax(text: str, phrases: list[str], prefixes: list[str]) -> None:
    parsed = parse(text)
    assert (parsed.phrases, parsed.prefixes) == (phrases, prefixes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Walking walked WALKS", ["walk", "walk", "walk"]),
        ("Müller MULLER mu\u0308ller", ["muller", "muller", "muller"]),
        ("Straße STRASSE", ["strass", "strass"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("don't foo_bar x2", ["don", "t", "foo", "bar", "x2"]),
        ("ﬁne ½", ["fine", "1", "2"]),
        ("", []),
    ],
)
def test_words_are_folded_and_stemmed(text: str, expected: list[str]) -> None:
    assert stems(text) == expected


def test_scripts_without_spaces_give_characters_and_overlapping_pairs() -> None:
    assert terms(stems("黑豹队 a")) == ["黑", "豹", "队", "黑豹", "豹队", "a"]
    assert terms(stems("แมว")) == ["แ", "ม", "ว", "แม", "มว"]


def test_stop_words_are_dropped_from_a_question_but_not_from_one_that_has_nothing_else() -> None:
    assert query_stems("Where is the cat?") == ["cat"]
    assert query_stems("Wo ist die Katze?") == ["die", "katz"]
    assert query_stems("to be or not to be") == ["to", "be", "or", "not", "to", "be"]


def test_words_asked_twice_count_twice() -> None:
    assert query_stems("cat and cats") == ["cat", "cat"]


@pytest.mark.parametrize("text", ["x" * 1_000_000, "„" * 100_000, "«" * 100_000 + '"', "x*" * 100_000])
def test_long_questions_are_parsed_in_linear_time(text: str) -> None:
    began = time.process_time()
    parse(text)
    assert time.process_time() - began < 1


def test_an_emoji_is_a_word() -> None:
    assert terms(stems("Party 😀tonight")) == ["parti", "😀", "tonight"]
