"""Past answers whose quotations no longer stand in the documents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from ragchat.errors import DocumentUnknown, SessionDamaged
from ragchat.grounding.quotes import quoted_span
from ragchat.uris import passage_location

if TYPE_CHECKING:
    from ragchat.grounding.types import Citation
    from ragchat.memory.client import MemoryClient
    from ragchat.sessions.store import SessionStore
    from ragchat.turn.types import Turn

NONE_STALE = "Every quotation of a past answer still stands in its document."
# Enough to get the head of a document.
HEAD_TOKENS = 100


class StaleTurn(Struct, frozen=True):
    """`places` are those of the answer's sources that have changed, as they are shown."""

    session_id: str
    turn_id: str
    question: str
    created_at: str
    places: list[str]


class Staleness:
    """Compares what turns quote with the documents of memory, each of which is read at most once.

    A citation without a quotation stands as long as its passage does. Documents that memory never had, such
    as those of another memory and attached files, are not judged. Raises what memory raises.
    """

    def __init__(self, memory: MemoryClient) -> None:
        self._memory = memory
        self._written: dict[str, str | None] = {}
        self._texts: dict[str, str] = {}

    async def places(self, turn: Turn) -> list[str]:
        """The places of the sources that have changed since a turn."""
        texts = {one.hit.chunk_id: one.hit.text for one in turn.answer.candidates}
        changed = [
            passage_location(one)
            for one in turn.answer.sources
            if await self._has_changed(one, texts.get(one.chunk_id, ""), turn.created_at)
        ]
        return list(dict.fromkeys(changed))

    async def _has_changed(self, citation: Citation, passage: str, at: str) -> bool:
        id = citation.document_id
        if id not in self._written:
            self._written[id] = await self._last_write(id)
        written = self._written[id]
        if written is None or written <= at:
            return False
        if id not in self._texts:
            self._texts[id] = await self._text(id)
        text, quote = self._texts[id], citation.quote if citation.verified else ""
        if _squeezed(quote or passage) in _squeezed(text):
            return False
        return not quote or quoted_span(quote, text) is None

    async def _last_write(self, document_id: str) -> str | None:
        """When a document was written or removed last (ISO 8601); None if memory does not know it."""
        with suppress(DocumentUnknown):
            return (await self._memory.part(document_id, 1, 1, "", HEAD_TOKENS)).updated_at
        with suppress(DocumentUnknown):
            return (await self._memory.versions(document_id, 1)).versions[0].at
        return None

    async def _text(self, document_id: str) -> str:
        """The text of a document; "" if it is removed."""
        with suppress(DocumentUnknown):
            return (await self._memory.show(document_id)).text
        return ""


async def stale_turns(sessions: SessionStore, memory: MemoryClient) -> AsyncIterator[StaleTurn]:
    """The turns of all sessions whose quotations have changed, of the session used last first."""
    staleness = Staleness(memory)
    for info in await sessions.list():
        try:
            session = await sessions.load(info.session_id)
        except SessionDamaged:  # `ragchat session show` says so.
            continue
        for turn in session.turns:
            if places := await staleness.places(turn):
                yield StaleTurn(turn.session_id, turn.turn_id, turn.question, turn.created_at, places)


def _squeezed(text: str) -> str:
    return " ".join(text.split())
