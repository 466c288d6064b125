from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ragconfig.settings import load_settings
from ragmemory.search.ranking import (
    balance,
    focus,
    fuse,
    normalised,
    pair_scores,
    relevance,
    without_copies,
)
from ragmemory.settings import RankingSettings


def floats(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32)


NOBODY = np.zeros(3, np.bool_)


def test_both_halves_are_normalised_over_the_candidates() -> None:
    assert fuse(floats(0.2, 0.4, 0.6), floats(8, 0, 4), 0.5).tolist() == pytest.approx([0.5, 0.25, 0.75])


@pytest.mark.parametrize(("equal", "expected"), [(0.0, 0.0), (0.7, 1.0)])
def test_scores_that_are_all_equal_are_all_or_nothing(equal: float, expected: float) -> None:
    assert normalised(floats(equal, equal)).tolist() == [expected, expected]


def test_a_pair_that_few_candidates_have_counts_more() -> None:
    rare, common = pair_scores(np.array([[1, 0], [0, 1], [0, 1]], np.float32), floats(1, 1, 1), 0.9)[:2]
    assert rare > common > 0


def test_meaning_counts_more_where_no_passage_has_the_words() -> None:
    settings = load_settings(environ={}).table("ranking", RankingSettings)
    usual = balance(settings, 1.0, 0.75)
    assert usual == balance(settings, 0.0, 0.0) == settings.alpha
    assert (
        balance(settings, 1.0, 1.0) < usual < balance(settings, 0.5, 0.0) < balance(settings, 1.0, 0.0) <= 0.8
    )


def test_a_short_question_is_in_focus() -> None:
    assert focus([]) == focus(["tea"]) == focus(["tea"] * 6) == 1
    assert focus(["tea"] * 60) == 0.1


def test_scores_stay_within_bounds() -> None:
    scores = relevance(floats(1, 0, 1), floats(1, -1, 1), 0.0, NOBODY).tolist()
    assert 1 >= scores[0] == scores[2] > 0.9
    assert scores[1] == pytest.approx(0, abs=0.01)


def test_no_common_word_and_no_meaning_is_not_relevant() -> None:
    assert relevance(floats(0, 0, 0), floats(0.3, 0.2, 0.1), 0.1, NOBODY).max() < 0.1


def test_meaning_alone_is_enough_when_it_stands_out() -> None:
    assert relevance(floats(0, 0, 0), floats(0.7, 0, 0), 0.1, NOBODY)[0] > 0.5


def test_words_alone_are_judged_by_how_much_of_the_question_they_cover() -> None:
    scores = relevance(floats(1, 0.4, 0.1), None, 0.0, NOBODY).tolist()
    assert scores[0] > 0.9
    assert 0.5 < scores[1] < 0.9
    assert scores[2] < 0.1


def test_what_holds_the_quoted_words_is_relevant() -> None:
    assert relevance(floats(0, 0, 0), None, 0.0, np.array([True, False, False])).tolist()[0] >= 0.5


def pairs(*hashes: int) -> NDArray[np.uint32]:
    return np.array(hashes, np.uint32)


def test_copies_leave_the_better_one_and_versions_at_most_three() -> None:
    text = pairs(*range(100))
    versions = [(number, pairs(*range(99), 100 + number)) for number in range(10, 15)]
    passages = [(7, text), (3, text), *versions, (8, text[:50]), (9, pairs())]
    assert without_copies(passages, 10) == [7, 10, 11, 8, 9]


def test_texts_too_short_for_pairs_are_never_copies() -> None:
    assert without_copies([(1, pairs()), (2, pairs())], 10) == [1, 2]


def test_no_more_passages_are_looked_at_than_wanted() -> None:
    passages = iter([(1, pairs(1)), (2, pairs(2)), (3, pairs(3))])
    assert without_copies(passages, 2) == [1, 2]
