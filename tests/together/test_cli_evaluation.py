"""`ragchat eval`, `case`, `replay` and `session stale` as processes.

Covers `ragchat.commands.eval`, `ragchat.commands.replay` and `ragchat.arguments.evaluation`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import program_in

pytestmark = pytest.mark.full


def test_a_changed_document_is_a_step_back_and_marks_the_answer(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    tea = ragchat.folder / "tea.md"
    tea.write_text("# Tea\n\nGreen tea is steeped at 75 degrees.\n", "utf-8")
    (ragchat.folder / "cup.md").write_text("# Cup\n\nA cup of green tea costs 3 euros.\n", "utf-8")
    ragchat("inject", "tea.md", "cup.md")
    ragchat("notebook", "new", "teas", "--in", "tea.md")
    chat = ragchat("--notebook", "teas", stdin="How is green tea steeped?\n/good\n")
    assert "Saved: the answer is in tea.md:3." in chat.err
    first = ragchat("eval", "--json")
    assert (first.code, first.json["right"], first.json["worse"]) == (0, 1, [])

    tea.write_text("# Tea\n\nBlack tea is boiled.\n", "utf-8")
    ragchat("inject", "tea.md")
    second = ragchat("eval", "-k", "12")
    assert second.code == 1
    assert "worse: How is green tea steeped?: no longer right" in second.out
    assert "retrieval.top_k: 30 → 12" in second.out
    assert "1 document changed: tea.md" in second.out
    (stale,) = ragchat("session", "stale", "--json").json["turns"]
    assert stale["places"] == ["tea.md:3"]
    assert "! Changed since: tea.md:3" in ragchat("session", "show", stale["session_id"]).out
    replayed = ragchat("replay", stale["turn_id"][:5]).out
    assert "facts that are gone: 75 degrees" in replayed
    assert "3 euros" not in replayed  # it is not in the notebook

    ragchat(stdin="What does a cup of green tea cost?\n/good\n")
    ragchat("notebook", "rm", "teas")
    third = ragchat("eval", "--json")
    assert (third.code, third.json["failed"], third.json["right"]) == (1, 1, 1)
    assert third.json["error"]["code"] == "CASES_NOT_ASKED"
