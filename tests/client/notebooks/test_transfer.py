"""The file that a notebook is shared as: what others may have written into it."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from ragchat.errors import NotANotebook, NotebookNameRefused
from ragchat.notebooks.definitions import Notebook
from ragchat.notebooks.transfer import Shared, head, read_head
from ragchat.sessions.export import record_of
from ragchat.sessions.types import Session
from tests.support.turns import turn

THESIS = Notebook("thesis", "file:///papers/*", "Be brief.", "small")
TALK = Session("abc", "Bees?", "2026-01-01", [turn("Bees?", turn_id="1", session_id="abc")], "thesis")


def read(data: bytes, name: str = "") -> Shared:
    return read_head("t.jsonl", io.BytesIO(data), name)


def changed(line: int, **fields: Any) -> bytes:
    lines = head(THESIS, [record_of(TALK)]).splitlines()
    lines[line] = json.dumps({**json.loads(lines[line]), **fields}).encode()
    return b"\n".join(lines)


def test_a_notebook_comes_back_and_tools_know_that_others_wrote_it() -> None:
    shared = read(head(THESIS, [record_of(TALK)]))
    assert (shared.notebook, shared.lines) == (THESIS, 2)
    (session,) = shared.sessions
    assert (session.session_id, session.notebook, session.turns[0].question) == ("abc", "thesis", "Bees?")
    assert session.turns[0].answer.untrusted == ["the imported notebook thesis"]


def test_under_another_name_the_conversations_are_copies_that_stay_the_same() -> None:
    data = head(THESIS, [record_of(TALK)])
    copy = read(data, "copy").sessions[0]
    assert copy == read(data, "copy").sessions[0]
    assert copy.notebook == "copy"
    assert copy.session_id != "abc"
    assert copy.turns[0].session_id == copy.session_id
    assert copy.turns[0].turn_id != "1"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello\n",
        b"[" * 100_000,
        b'{"format":"ragchat-memory","version":1}\n',
        changed(0, version=2),
        changed(0, sessions=-1),
        changed(0, sessions=10**12),
        changed(0, instructions="x" * 8_001),
        changed(1, session_id="../../x"),
        changed(1, session_id="<b>"),
        changed(1, turns=[{}]),
        changed(1, turns=[{"turn_id": "a b", "trace": {}}]),
        changed(1, turns=[{"turn_id": "ab", "trace": None}]),
        changed(1, turns=7),
    ],
)
def test_a_file_that_is_no_notebook_is_refused_with_a_sentence(data: bytes) -> None:
    with pytest.raises(NotANotebook):
        read(data)


def test_a_file_cannot_choose_a_path_as_the_name() -> None:
    with pytest.raises(NotebookNameRefused):
        read(changed(0, name="../../evil"))
