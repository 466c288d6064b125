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
    assert asked.missing(terms("projector"), is_expected=False) == ["cost"]


def test_the_value_of_a_row_or_a_setting_may_have_no_unit() -> None:
    asked = Question.of("How much does the projector cost?")
    assert not asked.is_expected("| projector | 90 |")
    assert asked.is_expected("| projector | 90 |", is_bare=True)
    assert not asked.is_expected("| projector | grey |", is_bare=True)


@pytest.mark.parametrize(
    ("text", "another"),
    [("The lamp of room 2.", ["3"]), ("Rooms 2 and 3, room 3.", []), ("3 rooms.", []), ("Room 3.", [])],
)
def test_a_thing_with_another_number_is_another_thing(text: str, another: list[str]) -> None:
    assert Question.of("What is in room 3?").names_another(text) == another


def test_words_with_accents_and_codes_have_the_weights_of_their_parts() -> None:
    weights = {"hohe": 0.4, "hs": 0.9, "44": 0.3}
    asked = Question.of("Höhe HS-44", "Höhe HS-44", weights)
    assert [word.weight for word in asked.words] == [0.4, 0.9]


def test_words_of_earlier_questions_are_apart() -> None:
    asked = Question.of("and the pump?", "and the pump? boiler")
    assert [word.text for word in asked.words] == ["pump"]
    assert [word.text for word in asked.carried] == ["boiler"]
    assert asked.terms == terms("pump boiler")


def test_a_question_that_says_too_little_is_judged_by_the_words_before_it_too() -> None:
    asked = Question.of("How does it work?", "How does it work? boiler")
    assert asked.coverage(terms("work in the garden"), is_expected=True) < 0.5
    assert asked.coverage(terms("the boiler"), is_expected=True) > 0.5
    assert [word.text for word in Question.of("and the pump?", "and the pump? boiler").judged] == ["pump"]


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


def test_the_language_of_a_question_is_known_by_all_its_words() -> None:
    asked = Question.of("Wo liegen die Ruder?")
    assert [word.text for word in asked.words] == ["liegen", "Ruder"]


def test_a_name_of_the_question_is_not_the_name_that_is_asked_for() -> None:
    asked = Question.of("What is Ida's dog called?")
    assert not asked.is_expected("The dog of Ida barks.")
    assert asked.is_expected("The dog of Ida is Rex.")
    assert asked.missing(terms("dog Ida"), is_expected=False) == ["called"]


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("What is the name of the bank?", ["name"]),
        ("Since when does she teach?", ["Since"]),
        ("How old is the dog?", ["old"]),
    ],
)
def test_the_word_that_asks_is_known(question: str, asks: list[str]) -> None:
    assert Question.of(question).asks == asks
