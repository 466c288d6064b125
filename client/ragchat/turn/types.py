"""One turn of a conversation, and its saved and printed forms. Pure."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ragchat.answer import Answer

# The fields of an answer that a record has in `trace`.
_TRACED = [
    "candidates",
    "passages_tokens",
    "dropped_turns",
    "prompt_tokens",
    "unknown_citations",
    "messages",
    "wordings",
    "foreign",
    "further",
    "judgement",
    "cut_off",
]
_PUBLIC = [
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
]


class Trace(Struct, frozen=True):
    """What /why shows about a turn besides its answer."""

    query: str = ""  # to memory; for a follow-up, more than the question
    history_turns: int = 0
    notices: list[str] = field(default_factory=list)
    images: int = 0  # attached to the question; they are not saved
    is_report: bool = False  # the answer is the report of a research


class Turn(Struct, frozen=True):
    """One question and its answer.

    `timings` are seconds: `retrieval`, `first_token` (of the model), `total`.
    """

    turn_id: str
    session_id: str
    question: str
    answer: Answer
    timings: dict[str, float]
    created_at: str  # ISO 8601, UTC
    trace: Trace
    corrections: dict[str, str] = field(default_factory=dict)  # of misspelt words of the question

    def record(self) -> dict[str, Any]:
        """The saved form, in which the fields of the answer are in the turn itself or in `trace`."""
        record = msgspec.to_builtins(self)
        answer = record.pop("answer")
        record["trace"] |= {name: answer.pop(name) for name in _TRACED}
        return {**record, "answer": answer.pop("text"), **answer}

    @classmethod
    def of_record(cls, data: bytes) -> Turn:
        """Raises one of DECODE_ERRORS for anything but the record of a turn."""
        record = msgspec.json.decode(data, type=dict[str, Any])
        trace = msgspec.convert(record.get("trace"), dict[str, Any])
        return msgspec.convert(record | {"answer": {**trace, **record, "text": record.get("answer")}}, cls)

    def without_passages(self) -> Turn:
        """A copy without passages and messages, which take most of the memory; later turns need neither."""
        return replace(self, answer=replace(self.answer, candidates=[], messages=[], further=None))

    def public(self) -> dict[str, Any]:
        """The JSON of `ragchat ask --json`."""
        record = self.record()
        unknown = record["trace"]["unknown_citations"]
        return {**{name: record[name] for name in _PUBLIC}, "unknown_citations": unknown}
