"""`ragchat ask --offline` for what is not one fact: small talk, lists, outlines, comparisons.

Covers `ragchat.offline.places` and `ragchat.turn.overviews`.
"""

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


def test_a_question_for_all_of_something_gets_the_whole_list_of_a_document(ragchat: Program) -> None:
    rows = "".join(f"| P{number} | a tent for {number} people, and its poles |\n" for number in range(1, 61))
    text = (
        f"# Tents\n\nThey are in the barn.\n\n| Tents | What it is |\n|---|---|\n{rows}\nCount them in May.\n"
    )
    (ragchat.folder / "tents.md").write_text(text, encoding="utf-8")
    assert ragchat("inject", "tents.md", "--json").json["documents"][0]["chunks"] > 1
    answered = ragchat("ask", "--offline", "--json", "How many tents are there?").json
    assert "30 of 60 rows shown; the others are in lines 37–66. The table has 60 rows." in answered["answer"]
    (citation,) = answered["citations"]
    assert (citation["quote_start_line"], citation["quote_end_line"], citation["verified"]) == (5, 36, True)
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


def test_a_question_that_compares_two_documents_gets_what_differs(ragchat: Program) -> None:
    for year, keeper in ((2021, "Ida"), (2023, "Nora")):
        text = f"# Hut rules {year}\n\nThe key is with {keeper}.\n\nWood is in the shed.\n"
        (ragchat.folder / f"hut-{year}.md").write_text(text, encoding="utf-8")
    assert ragchat("inject", ".").code == 0
    answered = ragchat("ask", "--offline", "--json", "What changed between hut-2021.md and hut-2023.md?").json
    assert [(found["quote"], found["quote_start_line"]) for found in answered["citations"]] == [
        ("The key is with Ida.", 3),
        ("The key is with Nora.", 3),
    ]
    assert answered["grounded"]
