"""Which questions ask for more than one fact."""

from __future__ import annotations

import pytest

from ragchat.offline.requests import comparison_request, list_request, outline_request


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("Which tools are there in the shed?", "tools  in the shed?"),
        ("Please list all tools", "tools"),
        ("show me all the tools", "the tools"),
        ("What are the opening hours?", "opening hours?"),
        ("Welche Werkzeuge gibt es im Schuppen?", "Werkzeuge  im Schuppen?"),
        ("Nenne alle Werkzeuge", "Werkzeuge"),
        ("liste die Werkzeuge auf", "die Werkzeuge auf"),
    ],
)
def test_questions_for_a_list(question: str, subject: str) -> None:
    request = list_request(question)
    assert request is not None
    assert (request.subject, request.counts) == (subject, False)


@pytest.mark.parametrize(
    ("question", "head"),
    [
        ("How many garden tools are in the shed?", "garden tools"),
        ("how many tools?", "tools"),
        ("Wie viele Werkzeuge gibt es?", "Werkzeuge"),
    ],
)
def test_questions_for_a_number_of_things(question: str, head: str) -> None:
    request = list_request(question)
    assert request is not None
    assert (request.head, request.counts) == (head, True)


@pytest.mark.parametrize(
    "question",
    [
        "Which tool is the oldest?",
        "Who wrote the list of tools?",
        "What is there to see?",
        "How much does a spade cost?",
        "Where are all the tools?",
        "Which of the tools is broken?",
        "",
    ],
)
def test_questions_for_one_fact(question: str) -> None:
    assert list_request(question) is None


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Outline of notes/wren.md", "notes/wren.md"),
        ("Summarise boiler.md", "boiler.md"),
        ("please summarize the “Boiler manual”.", "Boiler manual"),
        ("Give me a short overview of my bee notes", "bee"),
        ("Fasse das Dokument Heizung kurz zusammen", "Heizung"),
        ("Eine Zusammenfassung von heizung.md", "heizung.md"),
        ("What is in the file boiler.md?", "boiler.md"),
    ],
)
def test_questions_for_an_outline(question: str, name: str) -> None:
    request = outline_request(question)
    assert request is not None
    assert (request.name, request.is_certain) == (name, True)


@pytest.mark.parametrize(
    ("question", "name"),
    [("What is in the boiler manual?", "boiler manual"), ("Worum geht es in heizung.md?", "heizung.md")],
)
def test_questions_for_what_something_says_may_ask_for_one_thing(question: str, name: str) -> None:
    request = outline_request(question)
    assert request is not None
    assert (request.name, request.is_certain) == (name, False)


@pytest.mark.parametrize(
    "question",
    ["What does the lease say about pets?", "Who wrote the summary?", "What is the boiler?", "Summarise", ""],
)
def test_other_questions_ask_for_no_outline(question: str) -> None:
    assert outline_request(question) is None


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        ("Compare the oak table and the elm table", "oak table", "elm table"),
        ("What is the difference between oak and elm?", "oak", "elm"),
        ("what changed between 2021 and 2023?", "2021", "2023"),
        ("How does oak differ from elm?", "oak", "elm"),
        ("Vergleiche Eiche mit Ulme", "Eiche", "Ulme"),
        ("Was ist der Unterschied zwischen Eiche und Ulme?", "Eiche", "Ulme"),
    ],
)
def test_questions_for_a_comparison(question: str, first: str, second: str) -> None:
    request = comparison_request(question)
    assert request is not None
    assert (request.first, request.second, request.topic) == (first, second, "")


def test_what_both_things_have_in_common_is_searched_for_with_each() -> None:
    request = comparison_request("Compare the rent in Oslo and Rome")
    assert request is not None
    assert request.sides == [("rent in Oslo", "rent Oslo"), ("Rome", "rent Rome")]
    request = comparison_request("What changed in the rent between 2021 and 2023?")
    assert request is not None
    assert request.sides == [("2021", "rent 2021"), ("2023", "rent 2023")]


@pytest.mark.parametrize(
    "question", ["Who compared them?", "Compare oak", "What changed in 2021?", "Is there a difference?", ""]
)
def test_other_questions_compare_nothing(question: str) -> None:
    assert comparison_request(question) is None
