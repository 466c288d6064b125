"""The open conversations of the page: one for each session, as each tab may show another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from ragchat.conversation import Conversation
from ragchat.web.errors import Busy

# Idle conversations that stay open: each holds a connection to the sessions and a client of the model.
MAX_IDLE = 8


class Chats:
    """`make` makes a conversation in a new session. The least recently used idle one is closed first."""

    def __init__(self, make: Callable[[], Conversation]) -> None:
        self._make = make
        self._open: dict[str, tuple[Conversation, AsyncExitStack]] = {}
        self._busy: set[str] = set()

    async def __aenter__(self) -> Chats:
        return self

    async def __aexit__(self, *_: object) -> None:
        for session_id in [*self._open]:
            await self._close(session_id)

    async def new(self) -> Conversation:
        """A conversation in a new session, which is stored with its first turn."""
        return await self._add(self._make())

    async def get(self, session_id: str) -> Conversation:
        """The conversation of a session. Raises UnknownSession."""
        if (found := self._open.pop(session_id, None)) is not None:
            self._open[session_id] = found  # the most recently used is last
            return found[0]
        conversation = self._make()
        await conversation.resume(session_id)
        return await self._add(conversation)

    @asynccontextmanager
    async def taking_turn(self, session_id: str) -> AsyncIterator[Conversation]:
        """The conversation, for one turn at a time. Raises UnknownSession, Busy."""
        conversation = await self.get(session_id)
        if session_id in self._busy:
            raise Busy
        self._busy.add(session_id)
        try:
            yield conversation
        finally:
            self._busy.discard(session_id)

    async def forget(self, session_id: str) -> None:
        """Close the conversation of a session that is deleted or changed elsewhere. Raises Busy."""
        if session_id in self._busy:
            raise Busy
        if session_id in self._open:
            await self._close(session_id)

    async def _add(self, conversation: Conversation) -> Conversation:
        stack = AsyncExitStack()
        await stack.enter_async_context(conversation)
        self._open[conversation.session.session_id] = conversation, stack
        idle = [id for id in self._open if id not in self._busy]
        for session_id in idle[: -MAX_IDLE or None]:
            await self._close(session_id)
        return conversation

    async def _close(self, session_id: str) -> None:
        _, stack = self._open.pop(session_id)
        await stack.aclose()
