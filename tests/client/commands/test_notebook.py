"""`ragchat notebook` as a user runs it: made, asked in, carried to another memory.

Covers `ragchat.arguments.notebooks`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import program_in

pytestmark = pytest.mark.full


def test_a_notebook_is_made_asked_in_and_carried_to_another_memory(tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    mine, theirs = program_in(tmp_path / "mine"), program_in(tmp_path / "theirs")
    for name, text in {
        "papers/bees.md": "Bees dance at noon.",
        "tea.md": "Tea is brewed at 75 degrees.",
    }.items():
        path = mine.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Notes\n\n{text}\n", encoding="utf-8")
    made = mine("notebook", "new", "thesis", "--in", "papers", "--instructions", "Be brief.")
    assert "No document in memory matches" in made.err
    mine("inject", ".")
    inside = mine("ask", "--notebook", "thesis", "How hot is tea brewed?", "--json").json
    assert not inside["grounded"]
    exported = tmp_path / "thesis.jsonl"
    assert mine("notebook", "export", "thesis", "-o", str(exported)).code == 0
    unasked = theirs("notebook", "import", str(exported))
    assert "Be brief." in unasked.err
    assert "--yes" in unasked.err
    first, second = (theirs("notebook", "import", str(exported), "--yes", "--json").json for _ in range(2))
    assert (first["added"], first["unchanged"], first["added_turns"]) == (1, 0, 1)
    assert (second["added"], second["unchanged"], second["added_turns"]) == (0, 1, 0)
