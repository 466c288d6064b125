"""What an answer is held against. Covers `runner`."""

from __future__ import annotations

import pytest

from ragchat.answer import Answer, Card
from ragchat.scripts.runner import StepResult, is_cited, text_of, unmet
from ragchat.scripts.script import Expectation

URI = "file:///notes/wei%C3%9Fer%20Tee%20%5B1%5D.md"


def card(text: str) -> Card:
    return Card(1, "heat.md:5–6", "Heat > Boiler", text, (0, 1), 1.0, 1)


def test_the_marks_of_quotations_do_not_come_between_the_words_of_an_answer() -> None:
    quoted = "[1] heat.md:5–6  Heat › Boiler\n\n> between 1.2\n> and 1.8 bar"
    answer = Answer(quoted, cards=[card("between 1.2\nand 1.8 bar")], grounded=True)
    assert text_of(answer) == "[1] heat.md:5–6  Heat › Boiler\nbetween 1.2\nand 1.8 bar"
    assert text_of(Answer("It is 1.8 bar [1].")) == "It is 1.8 bar [1]."


def test_the_text_of_an_uncertain_answer_says_so_and_what_is_missing() -> None:
    text = text_of(Answer("", cards=[card("1.8 bar")], missing=["copper"]))
    assert text.startswith("No certain answer. The nearest:\n\n[1] heat.md")
    assert text.endswith("1.8 bar\n\nNot mentioned there: copper")


@pytest.mark.parametrize(
    ("text", "part", "holds"),
    [
        ("between 1.2\n  and 1.8 BAR", "1.2 and 1.8 bar", True),
        ("between **1.2** and `1.8` _bar_", "1.2 and 1.8 bar", True),
        ("It is *never* so", "*never* so", True),
        ("call snake_case(2*3)", "snake_case(2*3)", True),
        ("2*3 is six, 4_5 is not", "23", False),
        ("gru\u0308n", "gr\u00fcn", True),
    ],
)
async def test_case_line_ends_emphasis_and_composed_letters_make_no_difference(
    text: str, part: str, holds: bool
) -> None:
    assert (await unmet(Expectation(contains=part), StepResult(text), 0) == []) is holds
    assert (await unmet(Expectation(not_contains=part), StepResult(text), 0) == []) is not holds


@pytest.mark.parametrize(
    ("wanted", "cited"),
    [
        ("weißer Tee [1].md", True),
        ("*/weißer Tee [1].md", True),
        ("wei%C3%9Fer%20Tee", True),
        ("*/wei%C3%9Fer*", True),
        ("weißer", True),
        ("weißer*", False),
        ("*/?eißer*", False),
        ("grüner", False),
    ],
)
def test_a_file_is_cited_by_its_name_with_spaces_and_umlauts(wanted: str, cited: bool) -> None:
    assert is_cited(wanted, URI) is cited
