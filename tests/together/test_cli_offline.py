"""`ragchat ask --offline`: cards, small talk, lists, outlines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import Program, program_in


@pytest.fixture
def ragchat(tmp_path: Path) -> Program:
    return program_in(tmp_path)


def test_small_talk_has_a_reply_in_ask_and_in_a_pipe(ragchat: Program) -> None:
    answered = ragchat("ask", "--offline", "--json", "Thanks!").json
    assert answered["answer"].startswith("You're welcome.")
    assert (answered["grounded"], answered["citations"], answered["nearest"]) == (False, [], [])
    assert ragchat(stdin="Thanks!\n").out.startswith("You're welcome.")


@pytest.mark.smoke
def test_an_answer_has_cards_with_their_places_and_what_answers_most_likely(ragchat: Program) -> None:
    text = "# Boiler\n\nThe boiler needs 1.2 bar.\nCarl services it in March.\n"
    (ragchat.folder / "boiler.md").write_text(text, encoding="utf-8")
    assert ragchat("inject", "boiler.md").code == 0
    answered = ragchat("ask", "--offline", "--json", "How many bar does the boiler need?").json
    [card] = answered["cards"]
    assert {"n", "location", "heading", "text", "best", "score"} <= card.keys()
    assert (card["n"], card["heading"]) == (1, "Boiler")
    assert card["location"].startswith("boiler.md:")
    assert card["text"] in text
    assert card["text"][slice(*card["best"])] == "The boiler needs 1.2 bar."
    assert isinstance(card["score"], float)
    [citation] = answered["citations"]
    assert (citation["n"], citation["quote"], citation["verified"]) == (1, "The boiler needs 1.2 bar.", True)
    assert "> The boiler needs 1.2 bar." in answered["answer"]
    done = ragchat("ask", "--offline", "How many bar does the boiler need?")
    assert done.out.strip() == answered["answer"]
    assert done.err.count("No language model is in use") == 1


def test_a_question_for_all_of_something_gets_the_whole_list_of_a_document(ragchat: Program) -> None:
    rows = "".join(f"| P{number} | a tent for {number} people, and its poles |\n" for number in range(1, 61))
    text = (
        f"# Tents\n\nThey are in the barn.\n\n| Tents | What it is |\n|---|---|\n{rows}\nCount them in May.\n"
    )
    (ragchat.folder / "tents.md").write_text(text, encoding="utf-8")
    assert ragchat("inject", "tents.md", "--json").json["documents"][0]["chunks"] > 1
    answered = ragchat("ask", "--offline", "--json", "List all tents").json
    assert "… 20 more" in answered["answer"]
    (citation,) = answered["citations"]
    assert (citation["quote_start_line"], citation["quote_end_line"], citation["verified"]) == (5, 46, True)
    assert citation["quote"] in text
    assert answered["grounded"]


def test_a_question_for_a_summary_gets_the_outline_of_the_document(ragchat: Program) -> None:
    text = "# The boat\n\nShe is kept on the lower lake.\n\n## Sails\n\nThe mainsail is red.\n"
    (ragchat.folder / "wren.md").write_text(text, encoding="utf-8")
    assert ragchat("inject", "wren.md").code == 0
    answered = ragchat("ask", "--offline", "--json", "Summarise wren.md").json
    assert "  - **Sails**: The mainsail is red. [2]" in answered["answer"]
    assert [(found["quote_start_line"], found["verified"]) for found in answered["citations"]] == [
        (3, True),
        (7, True),
    ]
    assert answered["grounded"]
