"""The flat form of a turn."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from ragchat.answer import Answer, Candidate
from ragchat.grounding.types import Citation
from ragchat.turn.types import Trace, Turn
from tests.support.turns import hit, turn

# As programs before this one saved it.
OLDER = {
    "turn_id": "t1",
    "session_id": "s1",
    "question": "How hot?",
    "answer": "Hot.",
    "grounded": True,
    "citations": [],
    "model": "gpt-x",
    "usage": {"prompt_tokens": 12},
    "timings": {"total": 0.5},
    "created_at": "2026-01-01T00:00:00.000Z",
    "trace": {
        "query": "how hot",
        "history_turns": 2,
        "dropped_turns": 1,
        "foreign": ["page"],
        "is_report": True,
    },
}


def test_the_public_form_of_a_turn_is_the_contract_of_ask_json() -> None:
    answered = turn("What?", "That [1].", cited=[Citation.of(1, hit("That.", heading="A > B"), "That.")])
    public = answered.public()
    assert list(public) == [
        "question",
        "answer",
        "grounded",
        "citations",
        "nearest",
        "missing",
        "corrections",
        "unsupported",
        "cards",
        "model",
        "usage",
        "timings",
        "session_id",
        "turn_id",
        "unknown_citations",
    ]
    assert public["citations"] == [
        {
            "n": 1,
            "chunk_id": 1,
            "document_id": "doc1",
            "uri": "file:///notes/1.md",
            "title": "Notes",
            "heading": "A > B",
            "start_line": 1,
            "end_line": 1,
            "quote": "That.",
            "verified": True,
            "quote_start_line": 1,
            "quote_end_line": 1,
            "location": "1.md:1",
            "places": [],
        }
    ]
    assert public["model"] == "offline"
    assert {"prompt_tokens", "completion_tokens"} <= public["usage"].keys()


def test_a_turn_survives_its_record() -> None:
    answer = Answer(
        "é",
        candidates=[Candidate(hit("x"), True, "relevant", 1)],
        untrusted=["page"],
        messages=[{"role": "user"}],
    )
    answered = replace(turn("What?"), answer=answer, trace=Trace("q", 3, ["Slow."], 1))
    assert Turn.of_record(msgspec.json.encode(answered.record())) == answered


def test_a_record_has_the_fields_that_older_programs_read() -> None:
    record = turn("What?").record()
    assert OLDER.keys() <= record.keys()
    assert OLDER["trace"].keys() <= record["trace"].keys()  # type: ignore[attr-defined]
    assert record["answer"] == "Yes."
    assert record["trace"].keys().isdisjoint(record.keys())


def test_an_older_record_is_read() -> None:
    read = Turn.of_record(msgspec.json.encode(OLDER))
    answer = read.answer
    assert (answer.text, answer.grounded, answer.model, answer.usage.prompt_tokens) == (
        "Hot.",
        True,
        "gpt-x",
        12,
    )
    assert (answer.dropped_turns, answer.untrusted) == (1, ["page"])
    assert read.trace == Trace("how hot", 2, is_report=True)


@pytest.mark.parametrize(
    "damaged", [b"[]", b"{", b'{"trace": 1}', msgspec.json.encode({**OLDER, "answer": 1})]
)
def test_what_is_no_record_is_refused(damaged: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        Turn.of_record(damaged)
