"""Whole lists and tables: when one is quoted, how much of it, and when its items are counted."""

from __future__ import annotations

import pytest

from ragchat.offline.evidence import Question
from ragchat.offline.lists import MOST_ITEMS, WholeList, find_list, says_it_directly
from ragchat.offline.requests import list_request
from ragchat.offline.windows import best_windows
from tests.support.turns import hit

SHED = """# Allotment

## Tools

In the shed there are:

- a spade
- two rakes
- a wheelbarrow

The key is with Tom.
"""
BEDS = """# Beds

| Bed | Crop |
|---|---|
| North | beans |
| South | leeks |

All beds are dug in autumn.
"""


def found(question: str, text: str, document: str = "") -> WholeList | None:
    """The list that is found in a passage `text`, from the whole `document`."""
    request = list_request(question)
    assert request is not None
    subject = Question.named(request.subject)
    passage = hit(text)
    if says_it_directly(request, subject, best_windows(Question.of(question), [passage])):
        return None
    place = find_list(request, subject, [passage])
    return place.whole(document or text) if place else None


def test_a_list_is_quoted_with_the_line_that_introduces_it() -> None:
    tools = found("Which tools are in the shed?", SHED)
    assert tools is not None
    assert tools.quote == "In the shed there are:\n\n- a spade\n- two rakes\n- a wheelbarrow"
    assert tools.markdown(1).endswith("> - two rakes\n> - a wheelbarrow [1]")
    assert (tools.passage.start_line, tools.passage.end_line) == (5, 9)
    assert tools.quote in tools.passage.text


def test_a_table_is_quoted_with_its_header() -> None:
    beds = found("Which beds are there?", BEDS)
    assert beds is not None
    assert beds.markdown(1) == "| Bed | Crop |\n|---|---|\n| North | beans |\n| South | leeks |\n\n[1]"


def test_lines_of_a_form_are_a_list() -> None:
    hours = found("What are the opening hours?", "## Opening hours\n\nMonday: 9 to 5\nTuesday: closed\n")
    assert hours is not None
    assert hours.markdown(1) == "> Monday: 9 to 5  \n> Tuesday: closed [1]"
    assert hours.count is None


def test_a_list_goes_on_beyond_its_passage() -> None:
    items = [f"- plum number {number}\n" for number in range(20)]
    begin, rest = "# Plums\n\nWe grow these plums:\n\n", "".join(items[10:])
    plums = found("List all plums", begin + "".join(items[:10]), begin + "".join(items[:10]) + rest)
    assert plums is not None
    assert len(plums.items) == 20
    assert plums.notes(counts=False) == ""


def test_a_long_list_is_cut_and_says_where_the_rest_is() -> None:
    lines = "".join(f"- plum number {number}\n" for number in range(MOST_ITEMS + 2))
    plums = found("How many plums are there?", f"# Plums\n\nOur plums:\n\n{lines}")
    assert plums is not None
    assert len(plums.quote.splitlines()) == MOST_ITEMS + 2
    assert plums.notes(counts=True) == (
        "30 of 32 items shown; the others are in lines 35–36. The list has 32 items."
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Our plums:\n\n- red\n- blue\n", 2),
        ("Our plums:\n\n- red\n  - early\n  - late\n- blue\n", None),
        ("Our plums:\n\n1. red\n2. blue\n\n- Ask Tom first.\n", None),
        ("## Plums\n\n| plums | kg |\n|---|---|\n| red | 2 |\n| Total | 2 |\n", None),
    ],
)
def test_items_are_counted_only_where_that_is_certain(text: str, count: int | None) -> None:
    plums = found("How many plums are there?", text)
    assert plums is not None
    assert plums.count == count


def test_rows_are_not_counted_for_what_a_column_says() -> None:
    request = list_request("How many beds have leeks as their crop?")
    assert request is not None
    place = find_list(request, Question.named("beds crop"), [hit(BEDS)])
    assert place is not None
    assert not place.is_certain


@pytest.mark.parametrize(
    "sentence", ["There are 7 tools.", "Tools in the shed: seven.", "We have seven good tools."]
)
def test_a_sentence_that_tells_the_number_is_the_answer(sentence: str) -> None:
    assert found("How many tools are there?", SHED.replace("The key is with Tom.", sentence)) is None


def test_a_year_is_no_number_of_things() -> None:
    assert found("How many tools are there?", SHED.replace("The key is with Tom.", "The tools are of 1987."))


def test_a_sentence_that_is_a_list_is_the_answer() -> None:
    text = BEDS.replace("All beds are dug in autumn.", "The beds are called north, south, east and west.")
    assert found("Which beds are there?", text) is None


@pytest.mark.parametrize(
    "question", ["Which tools are in the attic?", "How many spades are there?", "List all chairs", "list all"]
)
def test_a_list_that_the_question_does_not_name_is_not_quoted(question: str) -> None:
    assert found(question, SHED) is None


def test_messages_of_a_chat_are_no_list() -> None:
    assert found("List all tools", "## Tools\n\n10:02 Ann: a spade\n10:03 Bob: a rake\n") is None
