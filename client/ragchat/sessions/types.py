"""A past conversation, and how it is listed and found. Pure."""

from __future__ import annotations

from msgspec import Struct, field

from ragchat.turn.types import Turn


class SessionInfo(Struct, frozen=True):
    """One line of the list of sessions. Times are ISO 8601, UTC."""

    session_id: str
    title: str  # the first question, shortened
    created_at: str
    updated_at: str
    turns: int
    notebook: str = ""


class Session(Struct):
    """A conversation. It is stored with its first turn."""

    session_id: str
    title: str = ""
    created_at: str = ""
    turns: list[Turn] = field(default_factory=list)
    notebook: str = ""  # that it belongs to; "": none


class SessionMatch(Struct, frozen=True):
    """One turn found by a full-text search over past sessions."""

    session_id: str
    turn_id: str
    title: str
    question: str
    snippet: str
    created_at: str
