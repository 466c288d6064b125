"""What a question asks about, and what of it a text does not hold."""

from __future__ import annotations

import time

import pytest

from ragchat.grounding.question import USUAL_WEIGHT, Question
from ragchat.grounding.words import index_terms


def terms(text: str) -> frozenset[str]:
    return frozenset(index_terms(text))


def test_a_question_has_its_content_words_with_their_weights() -> None:
    asked = Question.of("Who owns the laptop?", "Who owns the laptop?", {"owns": 0.6, "laptop": 0.8})
    assert [(word.text, word.weight) for word in asked.words] == [("owns", 0.6), ("laptop", 0.8)]


def test_a_word_that_memory_has_never_seen_weighs_most() -> None:
    assert Question.of("the zeppelin", weights={"zeppelin": 1.0}).words[0].weight == 1


def test_an_identifier_is_contained_as_a_whole_or_in_its_parts_however_it_is_capitalised() -> None:
    asked = Question.of("Which port has PostgreSQL or its retryAfter?")
    assert asked.missing(terms("port 5432 of postgresql, and retry after")) == []
    assert asked.missing(terms("the port of a table, tried afterwards")) == ["PostgreSQL", "retryAfter"]
    parted = Question.of("Is there a stand-alone port?").words[0]
    assert parted.share_in(terms("stand here")) == 0.5


def test_words_with_accents_and_codes_have_the_weights_of_their_parts() -> None:
    asked = Question.of("Höhe HS-44", weights={"hohe": 0.4, "hs": 0.9, "44": 0.3})
    assert [word.weight for word in asked.words] == [0.4, 0.9]


def test_general_words_weigh_little_and_are_never_missing() -> None:
    asked = Question.of("Does the boiler work?")
    boiler, work = asked.words
    assert work.weight < boiler.weight / 2
    assert asked.missing(terms("Tea is hot.")) == ["boiler"]
    concert, *rest = Question.of("Konzert findet statt").words
    assert all(word.weight < concert.weight / 2 for word in rest)


@pytest.mark.parametrize(
    ("text", "reference"),
    [("What does clause 4.3 say?", "clause"), ("Was regelt Abs. 4.3?", "Abs"), ("Absatz (4.3)", "Absatz")],
)
def test_what_refers_to_a_numbered_part_is_general_and_the_number_is_none_of_its_digits(
    text: str, reference: str
) -> None:
    weights = {reference.lower(): 0.9, "4": 0.1, "3": 0.2}
    found = {word.text: word for word in Question.of(text, weights=weights).words}
    assert found[reference].is_general
    assert found["4.3"].weight == USUAL_WEIGHT
    assert not Question.of(f"Which {reference} is that?").words[0].is_general


def test_words_of_earlier_questions_are_apart() -> None:
    asked = Question.of("and the pump?", "and the pump? boiler")
    assert [word.text for word in asked.words] == ["pump"]
    assert [word.text for word in asked.carried] == ["boiler"]
    assert [word.text for word in asked.judged] == ["pump"]
    assert asked.carried[0].weight < asked.words[0].weight


def test_a_question_that_says_too_little_is_judged_by_the_words_before_it_too() -> None:
    asked = Question.of("How does it work?", "How does it work? boiler")
    assert [word.text for word in asked.judged] == ["work", "boiler"]


def test_an_unspaced_word_of_one_character_is_held_where_it_occurs() -> None:
    [cat] = Question.of("猫").words
    assert cat.is_in(terms("黒猫は毎朝六時に水を飲みます。"))
    assert not cat.is_in(terms("犬は毎朝六時に水を飲みます。"))


def test_unspaced_words_are_held_in_part() -> None:
    asked = Question.of("中国首都")
    assert asked.words[0].share_in(terms("首都北京")) == pytest.approx(1 / 3)
    assert asked.missing(terms("中国的首都北京")) == []
    assert asked.missing(terms("上海")) == ["中国首都"]


def test_neighbouring_words_are_pairs() -> None:
    assert Question.of("the height of the old mill").pairs == [("height", "old"), ("old", "mill")]


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        *(
            ("How long may the dough rest?", True),
            ("rent due date, when?", True),
            ("Wie viele Kisten?", True),
        ),
        *(("Combien de temps ?", True), ("¿Cuánto cuesta?", True), ("What is the maximum speed?", True)),
        *(("Who teaches whenever it rains?", False), ("Where is the key?", False), ("Showing how", False)),
    ],
)
def test_what_asks_for_a_number_is_known_by_its_words(text: str, asks: bool) -> None:
    assert Question.of(text).asks_number is asks


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("How much oil does the Titanic hold?", ["Titanic"]),
        ("Titanic oil", []),  # any word may begin a sentence
        ("Is it true? Does Bob know?", ["Bob"]),
        ("Is Anna's dog old?", ["Anna's"]),
        ("What does “Old Man” cost?", ["Man"]),
        ("In which room are the PCs?", ["PCs"]),
        ("When does the X-200 boot?", ["X-200"]),
        ("HOW OLD IS ANNA?", []),
        ("HOW OLD IS ROOM 3?", ["3"]),
        ("how old is anna", []),
        ("Wie teuer ist die Karte für Berlin?", []),  # every German noun has a capital
        ("Welche NASA-Gruppe war in Raum 3?", ["NASA-Gruppe", "3"]),
        ("Welche Folk-Metal-Gruppe war das?", []),
        ("Quand est mort Victor Hugo ?", ["Victor", "Hugo"]),
        ("Quel est le port d'Annecy ?", ["Annecy"]),
        ("¿Cuándo nació Miguel de Cervantes?", ["Miguel", "Cervantes"]),
        ("中国2019年的GDP是多少？", ["2019", "GDP"]),
    ],
)
def test_names_numbers_and_acronyms_are_those_that_only_the_same_word_holds(
    text: str, names: list[str]
) -> None:
    assert Question.of(text).missing_names(frozenset()) == names


@pytest.mark.parametrize(
    ("question", "text", "is_missing"),
    [
        ("the chairs of room 3", "room 2", True),
        ("the chairs of room 3", "room 3", False),
        ("Which part is HS-44?", "HS-45 is a screw", True),
        ("Which part is HS-44?", "HS 44 is a screw", False),
        ("What happened on 2023-04-12?", "2023-04-13", True),
        ("Which NASA-group was it?", "NASA", False),
        ("What did the US sell?", "U.S. exports", False),
        ("What is api_host?", "api_token and db_host", True),
        ("What is api_host?", "the apiHost", False),
        ("Was steht in § 7 der Satzung?", "§ 6 Vorstand\n7. Kasse", True),
        ("Was steht in §7 der Satzung?", "§§ 7 und 8 der Satzung", False),
        ("Was steht in § 9 der Satzung?", "§ 9b der Satzung", True),
        ("What does Clause 4.3 say?", "4.3 The tenant sweeps.", False),
    ],
)
def test_a_name_is_missing_if_no_text_holds_it(question: str, text: str, *, is_missing: bool) -> None:
    assert bool(Question.of(question).missing_names(terms(text))) is is_missing


def test_a_long_word_takes_no_time() -> None:
    began = time.process_time()
    Question.of("what is " + "x" * 8_000)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "is_held"),
    [
        ("Die Ruhepausen stehen fest.", True),
        ("Die Pausenräume stehen leer.", True),
        ("Der Zwischenpausenton stört.", False),
        ("Die Maus steht fest.", False),
    ],
)
def test_a_word_of_a_german_question_is_contained_in_compounds_that_begin_or_end_with_it(
    text: str, *, is_held: bool
) -> None:
    [word] = Question.of("Wie lang ist die Pause?").words[-1:]
    assert word.text == "Pause"
    assert word.is_in(terms(text)) == is_held


def test_a_short_or_an_english_word_is_contained_in_no_compound() -> None:
    assert Question.of("Wie lang ist der Tag?").missing(terms("An jedem Werktag wird gearbeitet.")) == ["Tag"]
    assert Question.of("How long is the pause?").missing(terms("Die Ruhepausen stehen fest.")) == ["pause"]
