"""What a question asks to explain, and where a text defines it."""

from __future__ import annotations

import time

import pytest

from ragchat.grounding.definitions import asked_term, definitions


@pytest.mark.parametrize(
    ("question", "term"),
    [
        ("What is a covered work?", "covered work"),
        ("what's a covered work exactly", "covered work"),
        ("What does covered work mean?", "covered work"),
        ("define covered work", "covered work"),
        ("What is the meaning of a covered work?", "covered work"),
        ("What is a covered work in the licence?", "covered work"),
        ("covered work", "covered work"),
        ("What counts as a covered work?", "covered work"),
        ("Was ist eine Ruhezeit?", "Ruhezeit"),
        ("Was versteht man unter der Ruhezeit?", "Ruhezeit"),
        ("Qu'est-ce qu'un ballast ?", "ballast"),
        ("¿Qué es la Corona?", "Corona"),
        ("Che cos'è un archivio?", "archivio"),
        ("什么是活字？", "活字"),
        ("活字是什么？", "活字"),
    ],
)
def test_a_question_asks_to_explain_a_term_in_many_forms(question: str, term: str) -> None:
    assert asked_term(question) == asked_term(term) != ()


@pytest.mark.parametrize(
    "question", ["What is it?", "Who was that?", "How long is the lease of the shop?", "When does it close?"]
)
def test_other_questions_ask_to_explain_nothing(question: str) -> None:
    assert asked_term(question) == ()


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is a hunk?", "Nothing here.\nA hunk is a group of lines that differ."),
        ("What is a hunk?", 'It is said often. A "hunk" means a group of lines.'),
        ("What is a hunk?", "1.4. **Hunk**: a group of lines"),
        ("What is a hunk?", "**Hunk.** A group of lines."),
        ("What is a hunk?", "HUNK, n. A group of lines."),
        ("What is a hunk?", "hunk - a group of lines"),
        ("What is a hunk?", "# `hunk` is the number of lines."),
        ("What is a hunk?", "Such groups of lines are called [hunks](#h)."),
        ("What is a hunk?", "A hunk (or part) of a file means the lines that differ."),
        ("What is a hunk?", "The hunk is the part that differs."),
        ("What are hunks?", "Hunks are groups\nof lines."),
        ("What is a large hunk?", "A large\nhunk is one of many lines."),
        ("What is the index?", "The index is where changes wait."),
        ("Was ist eine Ruhezeit?", "Ruhezeit im Sinne dieses Gesetzes ist die Zeit zwischen den Schichten."),
        ("什么是活字？", "历史很长。活字是单个的字。"),
    ],
)
def test_a_text_defines_a_term(question: str, text: str) -> None:
    assert len(definitions(text, asked_term(question))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "If a hunk is moved, the patch fails.",
        "The hunk is moved.",
        "A hunk is not applied twice.",
        "- via [[hunk]]\n- the next item",
        "- Hunk\n\t- an item of it",
        "A hunk is rejected if it does not fit.",
        "A large hunk is split.",
        "A hunk is very often rejected.",
        "A hunk is very fragmented.",
        "A hunk is set aside until then.",
        "the end of the\nhunk is missing",
        "[hunk]: https://example.org/hunk",
    ],
)
def test_a_text_that_only_mentions_a_term_does_not_define_it(text: str) -> None:
    assert definitions(text, asked_term("What is a hunk?")) == []


def test_long_strange_questions_are_examined_in_little_time() -> None:
    start = time.perf_counter()
    for part in ("- ", "a ", "what ", "the "):
        assert asked_term(f"what is the {part * 5_000} x y") == ()
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    "part", ["\n", ". ", "a of ", "-", "_", "1.", ". a of b\n", "called a ", "a (", "the "]
)
def test_long_strange_texts_are_searched_in_little_time(part: str) -> None:
    start = time.perf_counter()
    assert definitions(part * (20_000 // len(part)), asked_term("What is a hunk?")) == []
    assert time.perf_counter() - start < 2
