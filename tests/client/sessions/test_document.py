"""Sessions as documents of memory."""

from __future__ import annotations

from ragchat.offline.answer import NO_MODEL
from ragchat.sessions.document import as_document
from ragchat.types import NOT_GROUNDED, Session
from tests.support.turns import turn


def test_a_document_holds_the_title_the_date_and_what_was_said() -> None:
    turns = [
        turn("What is\ntea?", f"> Tea is a drink. [1]\n\n{NO_MODEL}"),
        turn("And coffee?", f"I do not know.\n\n{NOT_GROUNDED}", turn_id="t2"),
    ]
    text, metadata = as_document(Session("abc", "What is\ntea?", "not a time", turns))
    at = "2026-01-01"
    said = [line for line in text.splitlines() if line and at not in line]
    assert said == [
        *("# What is tea?", "Conversation with ragchat on not a time", "What is", "tea?"),
        *("> Tea is a drink.", "And coffee?", "I do not know."),
    ]
    assert [line.partition(" (")[0] for line in text.splitlines() if at in line] == [
        "**You**",
        "**ragchat**",
    ] * 2
    assert metadata == {"uri": "ragchat:session/abc", "title": "What is tea?", "created_at": "not a time"}
