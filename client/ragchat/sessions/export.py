"""Exports a session: as Markdown for people, as JSON with all traces for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from ragchat.sanitize import one_line
from ragchat.types import Citation, Session, Turn
from ragconfig.places import label
from ragconfig.text_rules import passage_names

ExportKind: TypeAlias = Literal["markdown", "json"]


def export(session: Session, kind: ExportKind) -> str:
    """The whole session as text."""
    if kind == "json":
        return msgspec.json.format(msgspec.json.encode(session), indent=2).decode() + "\n"
    return "\n".join(_markdown(session))


def _markdown(session: Session) -> Iterator[str]:
    yield f"# {one_line(session.title)}"
    yield ""
    yield f"Session {session.session_id}, {session.created_at}."
    for turn in session.turns:
        yield from ("", f"## {one_line(turn.question)}", "")
        if "\n" in turn.question:  # the heading has it on one line only
            yield from (turn.question, "")
        yield from (turn.answer, "")
        yield from _sources(turn)
        yield f"*{turn.model}, {turn.created_at}*"
    yield ""


def _sources(turn: Turn) -> Iterator[str]:
    """Each cited passage once."""
    cited = {citation.n: citation for citation in reversed(turn.sources)}
    for n, citation in sorted(cited.items()):
        yield f"- [{n}] {_place(citation)}"
    if cited:
        yield ""


def _place(citation: Citation) -> str:
    names = map(one_line, passage_names(citation.title, citation.heading))
    lines = f"lines {citation.start_line} to {citation.end_line}"
    place = label(citation.places, citation.start_line, citation.end_line)
    return ", ".join([*names, f"<{citation.uri}>, {one_line(place) or lines}"])
