"""Corrections of misspelt words by the words of a memory."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ragmemory.search.spelling import MAX_LETTERS, candidates, edits, is_correctable

KNOWN = {"non": 9, "skylark": 3, "skylarks": 1, "port": 8, "part": 2, "default": 5}


def frequencies(words: Sequence[str]) -> list[int]:
    return [KNOWN.get(word, 0) for word in words]


@pytest.mark.parametrize("typed", ["skylrk", "skyllark", "skylerk", "skyalrk"])
def test_one_edit_is_corrected(typed: str) -> None:
    assert candidates(typed, frequencies)[0] == "skylark"


def test_the_most_frequent_word_comes_first() -> None:
    assert candidates("poart", frequencies) == ["port", "part"]


@pytest.mark.parametrize("typed", ["skyrk", "zylark", "kylark"])
def test_two_edits_and_another_first_letter_are_not_corrected(typed: str) -> None:
    assert candidates(typed, frequencies) == []


@pytest.mark.parametrize("other", ["pert", "por", "ports", "pork"])
def test_another_letter_or_ending_makes_another_word_of_a_short_one(other: str) -> None:
    assert "port" not in candidates(other, frequencies)


def test_a_short_word_is_no_correction() -> None:
    assert candidates("noon", frequencies) == []


def test_edits_are_one_step_away_and_keep_the_first_letter() -> None:
    found = edits("abcdefg")
    assert {"acdefg", "abcdef", "abcdefgh", "abdcefg", "abxdefg"} <= found
    assert "abcdefg" not in found
    assert all(word[0] == "a" for word in found)


@pytest.mark.parametrize(
    ("word", "correctable"),
    [
        ("port", True),
        ("car", False),
        ("E5", False),
        ("8080", False),
        ("naïve", False),
        ("x" * MAX_LETTERS, True),
        ("x" * (MAX_LETTERS + 1), False),
    ],
)
def test_only_words_of_enough_plain_letters_are_corrected(word: str, *, correctable: bool) -> None:
    assert is_correctable(word) is correctable
