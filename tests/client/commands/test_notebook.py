"""`ragchat notebook` as a user runs it: made, asked in, carried to another memory.

Covers `ragchat.arguments.notebooks`.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from ragchat.arguments.parser import make_parser
from ragchat.commands import notebook
from ragchat.commands.invocation import Invocation
from ragchat.console import Console
from ragchat.notebooks.definitions import Notebook
from ragchat.notebooks.transfer import Shared
from tests.support.program import program_in


def run_of(*words: str, err: io.StringIO | None = None) -> Invocation:
    arguments = make_parser(words).parse_args(words)
    return Invocation(arguments, Console(stdout=io.StringIO(), stderr=err or io.StringIO()))


def test_hidden_characters_of_a_shared_notebook_are_shown_before_it_is_used() -> None:
    run = run_of("notebook", "import", "shared.jsonl", "--yes", err=(err := io.StringIO()))
    notebook._confirm(run, Shared(Notebook("tea", instructions="Be brief.\u200b\U000e0041"), [], 1))
    assert r"Be brief.\u200b\U000e0041" in err.getvalue()


@pytest.mark.full
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
