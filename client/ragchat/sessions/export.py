"""Exports a session: as Markdown for people, as JSON with all traces for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import structs

from ragchat.grounding.types import Citation
from ragchat.sanitize import one_line
from ragchat.sessions.types import Session
from ragchat.turn.types import Turn
from ragchat.turn.why import marks
from ragcommon.text.places import label
from ragcommon.text.rules import EXPORT_MARK, passage_names


def export_session(session: Session, kind: Literal["markdown", "json"]) -> str:
    """The whole session as text."""
    if kind == "json":
        return msgspec.json.format(msgspec.json.encode(record_of(session)), indent=2).decode() + "\n"
    return "\n".join([*_markdown(session), EXPORT_MARK, ""])


def record_of(session: Session) -> dict[str, Any]:
    """The session with all traces, as JSON has it."""
    return {**structs.asdict(session), "turns": [turn.record() for turn in session.turns]}


def _markdown(session: Session) -> Iterator[str]:
    yield f"# {one_line(session.title)}"
    yield ""
    yield f"Session {session.session_id}, {session.created_at}."
    for turn in session.turns:
        yield from ("", f"## {one_line(turn.question)}", "")
        if "\n" in turn.question:  # the heading has it on one line only
            yield from (turn.question, "")
        yield from (turn.answer.text, "")
        for mark in marks(turn):
            yield from (one_line(mark), "")
        yield from source_lines(turn)
        yield f"*{turn.answer.model}, {turn.created_at}*"
    yield ""


def source_lines(turn: Turn) -> Iterator[str]:
    """Each cited passage once, with the places of its quotations."""
    for same in turn.answer.cited:
        names = map(one_line, passage_names(same[0].title, same[0].heading))
        places = dict.fromkeys(map(_place, same))
        yield f"- [{same[0].n}] {', '.join([*names, f'<{same[0].uri}>', *places])}"
    if turn.answer.sources:
        yield ""


def _place(citation: Citation) -> str:
    start, end = citation.cited_lines
    lines = f"line {start}" if start == end else f"lines {start} to {end}"
    return one_line(label(citation.places, start, end)) or lines
