"""`ragchat notebook` as a user runs it: made, asked in, carried to another memory.

Covers `ragchat.arguments.notebooks`.
"""

from __future__ import annotations

import io
from contextlib import nullcontext
from pathlib import Path

import pytest

from ragchat.arguments.parser import make_parser
from ragchat.commands import notebook
from ragchat.commands.invocation import Invocation
from ragchat.console import Console
from ragchat.errors import SessionsUnavailable, SeveralDocumentsMatch
from ragchat.notebooks.definitions import Notebook, folder_of, load
from ragchat.notebooks.transfer import Shared
from ragchat.sessions.store import SessionStore
from tests.support.memory import memory_in
from tests.support.program import program_in


def run_of(*words: str, err: io.StringIO | None = None) -> Invocation:
    arguments = make_parser(words).parse_args(words)
    return Invocation(arguments, Console(stdout=io.StringIO(), stderr=err or io.StringIO()))


def test_hidden_characters_of_a_shared_notebook_are_shown_before_it_is_used() -> None:
    run = run_of("notebook", "import", "shared.jsonl", "--yes", err=(err := io.StringIO()))
    notebook._confirm(run, Shared(Notebook("tea", instructions="Be brief.\u200b\U000e0041"), [], 1))
    assert r"Be brief.\u200b\U000e0041" in err.getvalue()


async def test_a_scope_that_cannot_be_used_creates_and_changes_no_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGCHAT_HOME", str(tmp_path))
    async with memory_in(tmp_path) as memory:
        for text in ("Green tea.", "Black tea."):
            await memory.inject(text, {"title": "Tea"})
        monkeypatch.setattr(Invocation, "memory", lambda _: nullcontext(memory))
        with pytest.raises(SeveralDocumentsMatch):
            await notebook.new(run_of("notebook", "new", "mine", "--in", "tea"))
        await notebook.new(run := run_of("notebook", "new", "mine"))
        with pytest.raises(SeveralDocumentsMatch):
            await notebook.edit(run_of("notebook", "edit", "mine", "--in", "tea"))
    assert load(folder_of(run.settings), "mine") == Notebook("mine")


async def test_an_empty_model_takes_that_of_a_notebook_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGCHAT_HOME", str(tmp_path))
    await notebook.new(run := run_of("notebook", "new", "mine", "--model", "qwen3:8b"))
    assert load(folder_of(run.settings), "mine").model == "qwen3:8b"
    await notebook.edit(run_of("notebook", "edit", "mine", "--model", ""))
    assert load(folder_of(run.settings), "mine").model == ""


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


async def test_a_notebook_whose_conversations_cannot_be_released_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def release(*_: object) -> int:
        raise SessionsUnavailable("sessions.db", "the disk is full")

    monkeypatch.setenv("RAGCHAT_HOME", str(tmp_path))
    await notebook.new(run := run_of("notebook", "new", "mine", "--instructions", "Be brief."))
    with monkeypatch.context() as patched:
        patched.setattr(SessionStore, "release", release)
        with pytest.raises(SessionsUnavailable):
            await notebook.rm(run_of("notebook", "rm", "mine"))
    assert load(folder_of(run.settings), "mine").instructions == "Be brief."
    assert await notebook.rm(run_of("notebook", "rm", "mine")) == 0
    assert await notebook.rm(run_of("notebook", "rm", "mine")) == 1


def test_a_list_with_a_notebook_that_cannot_be_used_has_the_error(tmp_path: Path) -> None:
    ragchat = program_in(tmp_path)
    ragchat("notebook", "new", "mine")
    (ragchat.home / "config" / "notebooks" / "broken.toml").write_text("[", "utf-8")
    done = ragchat("notebook", "ls", "--json")
    assert (done.code, done.json["error"]["code"]) == (1, "NOTEBOOK_UNUSABLE")
    assert [one["name"] for one in done.json["notebooks"]] == ["mine"]
