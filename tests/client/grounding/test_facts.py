"""Facts of an answer that the cited passages do not contain.

Covers `ragchat.grounding.number_words`.
"""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragchat.grounding.facts import lacking, unsupported
from ragchat.grounding.types import Unsupported
from tests.support.turns import hit

BREAD = hit(
    "The loaf bakes at 220 °C for half an hour, in one of twenty-one ovens. Anna Schmidt of Munich wrote so "
    "on 3 March 2021, when flour cost 1,500 EUR and 2.5 million people ate it; 50 % of them in Germany. "
    "Set `retry_after` to 30 and meet at 14:30. It rests from 1994 to 1996.",
    title="Baking in Perugia",
    heading="Ovens > Model KX200",
)
BOARD = hit(
    "The board met on 2024-03-05 and on 12.04.2023. Room 2 is let for cinq ans: "
    "https://www.board.example/rooms?all=1, room@board.example.",
    chunk_id=2,
)
PASSAGES = {1: BREAD, 2: BOARD}


def facts(answer: str, question: str = "") -> list[str]:
    return [fact for found in unsupported(answer, PASSAGES, question) for fact in found.facts]


@pytest.mark.parametrize(
    ("answer", "lacking"),
    [
        ("It bakes for nine hours at 300 degrees [1].", ["nine hours", "300 degrees"]),
        ("It bakes at 240 °C. [1]", ["240 °C"]),
        ("It says 42% [1].", ["42%"]),
        ("It costs $42 or US$43, at most $44 a day [1].", ["42", "43", "44"]),
        ("It costs 42$ a day, from 43$ to 44$ [1].", ["42$", "43$", "44$"]),
        ("It costs 1,600 EUR [1].", ["1,600 EUR"]),
        ("It was written on March 5, 2021 [1].", ["March 5, 2021"]),
        ("The board met on 2022-03-05 [2].", ["2022-03-05"]),
        ("They meet at 15:45 [1].", ["15:45"]),
        ("It was written by Bob Carpenter, not by Anna Schmidt [1].", ["Bob Carpenter"]),
        ("Bob and Anna live in Vienna [1].", ["Vienna"]),
        (
            "Ask Dr. Vogel or Prof. Anna Schmidt, e.g. Mrs. Bird of St. Gallen [1].",
            ["Vogel", "Bird", "Gallen"],
        ),
        (
            "See https://bread.example/kx200 or write to anna@bread.example [1].",
            ["https://bread.example/kx200", "anna@bread.example"],
        ),
        ("Set `max_retries`, or useBackoff [1].", ["max_retries", "useBackoff"]),
        ("Room 7 is let [2].", ["7"]),
        ("The model is KX300 [1].", ["KX300"]),
        ("- **Time:** nine hours [1]", ["nine hours"]),
        ("| Loaf | nine hours [1] |", ["nine hours"]),
        ("水温是30度，不是99度 [1]", ["99"]),
    ],
)
def test_a_fact_that_the_passage_does_not_contain_is_named(answer: str, lacking: list[str]) -> None:
    assert facts(answer) == lacking


@pytest.mark.parametrize(
    "answer",
    [
        "It bakes at 220 degrees Celsius for 30 minutes [1].",
        "It bakes for half an hour, at 220° [1].",
        "Flour cost 1 500 €, 1500 EUR, 1.500 EUR or 1’500 EUR [1].",
        "2,500,000 people, or 2.5 million, and a German share of 0.5 or 50 percent [1].",
        "There are 21 ovens; you meet at 2:30 pm [1].",
        "Anna Schmidt's text is of March 3rd, 2021 [1].",
        "Written on 03.03.2021 or 2021-03-03 in March [1].",
        "The board met on 5 March 2024 and on April 12, 2023 [2].",
        "Der Raum ist 5 Jahre vermietet [2].",
        "It is let for five years [2].",
        "Use `retryAfter` = 30, or RETRY_AFTER [1].",
        "The oven KX-200 stands in Perugia, and so does the Loaf [1].",
        "There are three ways, 2 of them new, and the 1st is best [1].",
        "1. First the flour [1].\n2. Then the rest [1].\n\nStep 3 is eating [1].",
        "In the 1990s it rested [1].",
        "It is let for 5 years etc. Everyone leaves then [2].",
        "It is let, see http://board.example/rooms/ or www.board.example, or ask ROOM@board.example [2].",
        "As Passage 2 says, it is let [2].",
        "Das Brot ist fertig, und der Bäcker verkauft es im Laden [1].",
        "It took nine hours.",
        "It took nine hours [7].",
        'It says "the loaf bakes for nine hours" [1].',
        "```\nx = 99  # [1]\n```\nSo it is [1].",
        "**bold** and $x^2$ [1].",
        "The heat is $Q = m_1 c_{42} + 77$, or \\(99x\\) [1].",
        "The heat is [1]\n\n$$\n\\frac{99}{x_2}\n$$\n\n\\[\n77y\n\\]",
    ],
)
def test_the_same_fact_in_another_form_and_what_is_no_claim_raise_no_alarm(answer: str) -> None:
    assert facts(answer) == []


def test_a_marker_after_the_stop_belongs_to_the_sentence_before_it() -> None:
    assert unsupported("It rests for nine days. [1] So it is.", PASSAGES, "") == [
        Unsupported(["nine days"], [1])
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "It bakes at 220 °C. [1] Others rest for nine days.",
        "Others rest for nine days. It bakes at 220 °C [1].",
        "It bakes at 220 °C [1].\n\n- Others rest for nine days.",
        "It bakes at 220 °C [1]. Others rest for nine days [7].",
    ],
)
def test_a_sentence_that_cites_no_passage_is_checked_against_all_of_them(answer: str) -> None:
    assert unsupported(answer, PASSAGES, "") == [Unsupported(["nine days"], [])]


@pytest.mark.parametrize(
    "sentence",
    [
        "It rests until 1996, and the board met in 2024.",
        "Here are 3 steps:",
        "These are all 15 examples:",
        "1. Bake it.\n2. Eat it.",
        "## Opening Hours Of 2019",
        "**Opening Hours of 2019**",
        "| Loaf | Opening Hours |\n|---|---|",
        "Room 7 is known from elsewhere.",
    ],
)
def test_a_sentence_about_the_answer_or_of_known_facts_needs_no_citation(sentence: str) -> None:
    assert unsupported(f"{sentence}\n\nIt bakes at 220 °C [1].", PASSAGES, "", "room 7") == []


def test_a_fact_may_be_in_any_of_the_passages_that_its_sentence_cites() -> None:
    assert facts("It rested until 1996, and the board met in 2024 [1][2].") == []
    assert unsupported("It was in 1998 [1][2], or 1999 [2].", PASSAGES, "") == [
        Unsupported(["1998", "1999"], [1, 2])
    ]


def test_a_few_words_have_the_language_of_the_question() -> None:
    assert facts("| Loaf | in April [1] |", "When is it to be baked?") == ["April"]
    assert facts("| Laib | in April [1] |", "Wann wird er gebacken?") == []


def test_accents_may_be_composed_or_not() -> None:
    decomposed = {1: hit(unicodedata.normalize("NFD", "Anne Müller kam am 3. März 2021."))}
    assert not unsupported("Anne Müller came on 3 March 2021 [1].", decomposed, "")


@pytest.mark.parametrize(
    ("answer", "passage", "missing"),
    [
        ("The bus leaves at 14:00.", "The bus leaves at 2 pm.", []),
        ("The bus leaves at 2 p.m.", "Abfahrt: 14 Uhr", []),
        ("The bus leaves at 9 am.", "Bus 09:00", []),
        ("The bus leaves at 3 pm.", "The bus leaves at 2 pm.", ["3 pm"]),
        ("The gap is 0.5 mm.", "gap: .5 mm", []),
        ("The gap is .5 mm.", "gap: 0.6 mm", [".5 mm"]),
        ("It is version 2.1.", "v2.1 runs", []),
        ("It is version 2.2.", "v2.1 runs", ["2.2"]),
        ("It gave off CO2, not CO3.", "CO₂ was given off", ["CO3"]),
    ],
)
def test_a_time_or_a_fraction_may_be_written_in_another_way(
    answer: str, passage: str, missing: list[str]
) -> None:
    assert lacking(answer, passage) == missing


@pytest.mark.parametrize("number", ["1998", "0.06", "340"])
def test_a_number_before_the_stop_and_the_marker_is_no_ordinal(number: str) -> None:
    assert facts(f"It was {number}. [1]") == [number]
    assert facts(f"It was {number}. [1] Then it rested. [1]") == [number]
    assert facts("Am 25. Tag kam er. [1]", "Wann kam er?") == []


@pytest.mark.parametrize("unit", ["h", "min", "ml", "nm", "µm", "V", "Hz", "mbar", "mmol", "ppm"])
def test_a_small_number_with_a_short_unit_is_a_claim(unit: str) -> None:
    assert lacking(f"It takes 7 {unit} each time.", "It rests.") == [f"7 {unit}"]
    assert lacking(f"It takes 7 {unit}.", f"It takes 7{unit}.") == []


def test_neighbouring_cells_of_a_csv_file_are_separate_numbers() -> None:
    rows = replace(hit("sample,celsius,minutes,loss,by\nA12,410,9,3.2,Mira\n"), uri="file:///samples.csv")
    answer = "Sample A12 lost 3.2 % at 410 °C in 9 minutes [1], not 4.1 % at 420 °C [1]."
    assert unsupported(answer, {1: rows}, "") == [Unsupported(["4.1 %", "420 °C"], [1])]


def test_what_the_question_names_is_known() -> None:
    assert facts("Room 7 of the Albertina is not mentioned [2].", "Is room 7 of the Albertina let?") == []


@given(st.text("0123456789.,:'’% \n", max_size=30))
@example("0.0.0.0:6266")
def test_whatever_looks_like_a_number_is_checked(number: str) -> None:
    passage = {1: hit(f"It listens at {number} here.")}
    assert unsupported(f"It listens at {number} here [1].", passage, "") == []


def test_the_port_of_an_address_is_a_number() -> None:
    passage = {1: hit("It listens at 0.0.0.0:6266 here.")}
    assert unsupported("It listens at port 6266 [1].", passage, "") == []
    assert unsupported("It listens at port 6267 [1].", passage, "") == [Unsupported(["6267"], [1])]


def test_the_time_for_a_sentence_grows_with_its_length_alone() -> None:
    words = hit(" ".join(f"{word:x}" for word in range(100_000, 102_000)))
    sentence = "".join(f"so Xa{number}bc and {number} km " for number in range(1_000))
    sentence += "".join(f"to Bq{letter}{other}zzz " for letter in "aeiou" for other in "abcdefghij" * 20)
    began = time.process_time()
    assert unsupported(f"{sentence} [1].", {1: words}, "")
    assert time.process_time() - began < 3
