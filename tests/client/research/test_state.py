"""What a later run goes on with."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from ragchat.research.state import (
    KEPT_SECONDS,
    Finding,
    ResearchState,
    StateFile,
    SubQuestion,
    last_question,
    remove_old,
)
from tests.support.turns import hit


def test_a_state_is_read_as_it_was_saved_for_the_same_question_and_documents_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "research"
    state = ResearchState(
        "Why?", "here", [SubQuestion("Why so?", findings=[Finding(hit("So."), "So.")], read=True)]
    )
    file = StateFile(folder, "Why?", "here")
    assert file.load() is None
    file.save(state)
    assert StateFile(folder, "Why?", "here").load() == state
    assert StateFile(folder, "Why?", "there").load() is None
    file.remove()
    file.remove()
    assert file.load() is None


def test_a_file_of_an_older_program_is_read(tmp_path: Path) -> None:
    file = StateFile(tmp_path, "Why?", "here")
    saved = {"question": "Why?", "place": "here", "sub_questions": [{"text": "Why so?", "foreign": ["page"]}]}
    file.path.write_bytes(msgspec.json.encode(saved))
    loaded = file.load()
    assert loaded is not None
    assert (loaded.documents, loaded.sub_questions[0].untrusted) == ("here", ["page"])


def test_the_last_question_is_that_of_the_newest_readable_file_of_the_same_documents(tmp_path: Path) -> None:
    for age, (question, documents) in enumerate(
        [("Third?", "there"), ("Second?", "here"), ("First?", "here")]
    ):
        StateFile(tmp_path, question, documents).save(ResearchState(question, documents))
        newest = max(tmp_path.iterdir(), key=lambda path: path.stat().st_ctime_ns)
        os.utime(newest, (1000 - age, 1000 - age))
    (tmp_path / "damaged.json").write_text("{")
    assert last_question(tmp_path, "here") == "Second?"
    assert last_question(tmp_path, "nowhere") == ""
    assert last_question(tmp_path / "missing", "here") == ""


def test_what_was_left_a_month_ago_is_removed(tmp_path: Path) -> None:
    remove_old(tmp_path / "missing")
    for question in ("Old?", "New?"):
        StateFile(tmp_path, question, "here").save(ResearchState(question, "here"))
    [old] = {*tmp_path.iterdir()} - {StateFile(tmp_path, "New?", "here").path}
    os.utime(old, (0, time.time() - KEPT_SECONDS - 60))
    remove_old(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [StateFile(tmp_path, "New?", "here").path.name]


def test_findings_of_all_sub_questions_take_turns() -> None:
    one, two, three = (Finding(hit(f"Text {n}.", chunk_id=n)) for n in (1, 2, 3))
    state = ResearchState(
        "Why?", "here", [SubQuestion("A", findings=[one, three]), SubQuestion("B", findings=[two])]
    )
    assert state.findings == [one, two, three]
