"""Corrections of misspelt words by the words of a memory."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ragmemory.search.spelling import MAX_LETTERS, candidates, edits, is_correctable
from tests.support.memories import LOCAL

KNOWN = {
    **{"non": 9, "port": 8, "connection": 7, "contention": 2, "nightingale": 3, "nightingales": 1},
    **{"combine": 9, "cure": 9, "chamber": 9, "later": 9},
}


@pytest.fixture(autouse=True, scope="module")
def vocabulary() -> None:
    LOCAL.warm_up()


def frequencies(words: Sequence[str]) -> list[int]:
    return [KNOWN.get(word, 0) for word in words]


@pytest.mark.parametrize("typed", ["nightngale", "nighttingale", "nightengale", "nihgtingale"])
def test_one_edit_is_corrected(typed: str) -> None:
    assert candidates(typed, frequencies, LOCAL.pieces)[0] == "nightingale"


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        ("licence", "license"),
        ("defense", "defence"),
        ("colour", "color"),
        ("neighbor", "neighbour"),
        ("centres", "centers"),
        ("organise", "organize"),
        ("organization", "organisation"),
        ("analyse", "analyze"),
        ("cancelled", "canceled"),
        ("modeling", "modelling"),
        ("catalogue", "catalog"),
    ],
)
def test_british_and_american_spellings_are_the_same_word(typed: str, known: str) -> None:
    """Though each is a correct word of the vocabulary."""
    assert is_correctable(typed, LOCAL.pieces)
    assert candidates(typed, lambda words: [int(word == known) for word in words], LOCAL.pieces) == [known]


def test_other_correct_words_are_not_corrected() -> None:
    others = {"tor": 9, "later": 9, "or": 9, "filing": 9, "rise": 9}
    for word in ("tour", "four", "filling", "raise", "water"):
        assert candidates(word, lambda words: [others.get(one, 0) for one in words], LOCAL.pieces) == []


def test_the_most_frequent_word_comes_first() -> None:
    assert candidates("contection", frequencies, LOCAL.pieces) == ["connection", "contention"]


@pytest.mark.parametrize("typed", ["nightgale", "mightingale", "ightingale"])
def test_two_edits_and_another_first_letter_are_not_corrected(typed: str) -> None:
    assert candidates(typed, frequencies, LOCAL.pieces) == []


@pytest.mark.parametrize("other", ["pert", "por", "ports", "pork"])
def test_another_letter_or_ending_makes_another_word_of_a_short_one(other: str) -> None:
    assert "port" not in candidates(other, frequencies, LOCAL.pieces)


@pytest.mark.parametrize("word", ["combien", "cuire", "chambre", "lather"])
def test_a_correct_word_that_memory_has_not_is_not_taken_for_a_similar_one(word: str) -> None:
    assert candidates(word, frequencies, LOCAL.pieces) == []


def test_a_short_word_is_no_correction() -> None:
    assert candidates("noon", frequencies, LOCAL.pieces) == []


def test_edits_are_one_step_away_and_keep_the_first_letter() -> None:
    found = edits("abcdefg")
    assert {"acdefg", "abcdefxg", "abdcefg", "abcdegf", "abxdefg"} <= found
    assert "abcdefg" not in found
    assert all(word[0] == "a" for word in found)
    assert not {"abcdef", "abcdefgh", "abcdefx"} & found


@pytest.mark.parametrize(
    ("word", "correctable"),
    [
        ("nightengale", True),
        ("port", False),
        ("car", False),
        ("E5", False),
        ("8080", False),
        ("naïve", False),
        ("x" * MAX_LETTERS, True),
        ("x" * (MAX_LETTERS + 1), False),
    ],
)
def test_only_unusual_words_of_enough_plain_letters_are_corrected(word: str, *, correctable: bool) -> None:
    assert is_correctable(word, LOCAL.pieces) is correctable
