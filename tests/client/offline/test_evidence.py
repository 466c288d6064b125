"""What a question asks for, and how much of it a text holds."""

from __future__ import annotations

import pytest

from ragchat.offline.evidence import UNKNOWN_FACTOR, Question, share
from ragchat.offline.words import index_terms


def terms(text: str) -> frozenset[str]:
    return frozenset(index_terms(text))


def test_a_question_has_its_content_words_with_their_weights() -> None:
    asked = Question.of("Who owns the laptop?", "Who owns the laptop?", {"owns": 0.6, "laptop": 0.8})
    assert [(word.text, word.weight) for word in asked.words] == [("owns", 0.6), ("laptop", 0.8)]


def test_a_word_that_memory_has_never_seen_weighs_most() -> None:
    asked = Question.of("the zeppelin", "the zeppelin", {"zeppelin": 1.0})
    assert asked.words[0].weight == UNKNOWN_FACTOR


def test_general_words_weigh_little_and_are_never_missing() -> None:
    asked = Question.of("Does the boiler work?")
    boiler, work = asked.words
    assert work.weight < boiler.weight / 2
    assert asked.missing(terms("Tea is hot.")) == ["boiler"]


def test_words_that_ask_for_a_type_are_not_searched_in_the_answer() -> None:
    asked = Question.of("How much does the projector cost?")
    assert [word.text for word in asked.words] == ["projector"]
    assert asked.missing(terms("projector")) == []


def test_words_of_earlier_questions_are_apart() -> None:
    asked = Question.of("and the pump?", "and the pump? boiler")
    assert [word.text for word in asked.words] == ["pump"]
    assert [word.text for word in asked.carried] == ["boiler"]
    assert asked.terms == terms("pump boiler")


def test_coverage_is_the_share_by_weight() -> None:
    asked = Question.of("red boiler", "red boiler", {"red": 0.2, "boiler": 0.6})
    assert asked.coverage(terms("boilers"), is_expected=True) == pytest.approx(0.75)
    assert asked.coverage(terms("tea"), is_expected=True) == 0
    assert asked.coverage(terms("red boiler"), is_expected=True) == 1


def test_a_missing_value_of_the_expected_type_lowers_the_coverage() -> None:
    asked = Question.of("How much does the projector cost?")
    assert asked.is_expected("It was 90 euros.")
    assert not asked.is_expected("It is in room 2.")
    assert asked.coverage(terms("projector"), is_expected=False) < 0.5


def test_a_question_without_content_words_is_covered_by_a_value_of_its_type() -> None:
    assert Question.of("How much?").coverage(frozenset(), is_expected=True) == 1
    assert Question.of("How much?").coverage(frozenset(), is_expected=False) == 0


@pytest.mark.parametrize(("text", "lacks"), [("room 2", True), ("room 3", False), ("room", True)])
def test_numbers_must_match_exactly(text: str, *, lacks: bool) -> None:
    assert Question.of("the chairs of room 3").lacks_exact(terms(text)) is lacks


def test_unspaced_words_are_held_in_part() -> None:
    asked = Question.of("中国首都")
    assert share(asked.words, terms("首都北京")) == pytest.approx(1 / 3)
    assert asked.missing(terms("中国的首都北京")) == []
    assert asked.missing(terms("上海")) == ["中国首都"]
