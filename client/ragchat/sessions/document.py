"""A session, or a report, as a document of memory. Pure but for the time zone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ragchat.formatting import local
from ragchat.sanitize import one_line
from ragchat.sessions.export import source_lines
from ragchat.sessions.types import Session
from ragchat.turn.past_turns import bare_answer
from ragchat.turn.types import Turn
from ragchat.turn.why import marks
from ragcommon.contract.search import Hit

_SESSION = "ragchat:session/"
_USER, _CHAT = "**You**", "**ragchat**"


def as_document(session: Session) -> tuple[str, dict[str, Any]]:
    """Text and metadata of a session: its turns, in a form that memory recognises as a conversation.

    The sources are left out: they can be found themselves. A session with a report is marked `generated`.
    """
    title = one_line(session.title)
    parts = [f"# {title}", f"Conversation with ragchat on {local(session.created_at)}"]
    for turn in session.turns:
        at = local(turn.created_at)
        answer = "\n\n".join([_without_headings(bare_answer(turn)), *marks(turn)])
        parts += [f"{_USER} ({at}):\n{_without_headings(turn.question)}", f"{_CHAT} ({at}):\n{answer}"]
    uri = f"{_SESSION}{session.session_id}"
    metadata = {"uri": uri, "title": title, "created_at": session.created_at}
    generated = {"generated": True} if any(turn.trace.is_report for turn in session.turns) else {}
    return "\n\n".join(parts) + "\n", metadata | generated


def _without_headings(text: str) -> str:
    """The text with its headings in bold: as headings, they would be those of all later turns as well."""
    from ragchat.markdown import block_parser

    lines = text.split("\n")
    for opening, inline in reversed([*pairwise(block_parser().parse(text))]):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            lines[slice(*opening.map)] = [f"**{inline.content.replace('**', '')}**"]
    return "\n".join(lines)


def is_question_of_user(hit: Hit) -> bool:
    """Whether a passage is what the user asked in a session, without the answer."""
    return hit.uri.startswith(_SESSION) and hit.text.startswith(_USER) and _CHAT not in hit.text


def report_as_document(turn: Turn) -> tuple[str, dict[str, Any]]:
    """Text and metadata of a report, with its sources. `generated` says that a model wrote it."""
    title = f"Report: {one_line(turn.question)}"
    text = "\n".join([f"# {title}", "", turn.answer.text, "", *source_lines(turn)])
    uri = f"ragchat:report/{turn.turn_id}"
    return text, {"uri": uri, "title": title, "created_at": turn.created_at, "generated": True}
