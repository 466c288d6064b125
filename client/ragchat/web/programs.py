"""The conversations of other programs, which use `/v1`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from ragchat.conversation import Conversation
from ragchat.llm.discovery import AUTO
from ragchat.llm.selection import ModelSelection
from ragchat.llm.types import OFFLINE
from ragchat.web.errors import NoSuchModel, TooManyTurns
from ragchat.web.protocol import OWN_MODEL

# Turns at once. A local model answers one after the other anyway.
MAX_TURNS = 8


class Programs:
    """The conversations of other programs: one for each request, kept for later ones of the same model.

    A conversation knows its model and has a connection to it; its turns are replaced with each request.
    `make` makes one without other servers.
    """

    def __init__(self, make: Callable[[], Conversation]) -> None:
        self.make = make
        self._idle: list[tuple[str, Conversation, AsyncExitStack]] = []
        self._running = 0

    async def __aenter__(self) -> Programs:
        return self

    async def __aexit__(self, *_: object) -> None:
        for found in self._idle:
            await found[2].aclose()

    @asynccontextmanager
    async def conversation(self, model: str) -> AsyncIterator[Conversation]:
        """A conversation for one turn. Raises TooManyTurns, NoSuchModel, ModelError."""
        if self._running >= MAX_TURNS:
            raise TooManyTurns(MAX_TURNS)
        self._running += 1
        try:
            found = next((one for one in self._idle if one[0] == model), None)
            if found is None:
                found = await self._open(model)
            else:
                self._idle.remove(found)
            try:
                yield found[1]
            finally:
                self._idle.append(found)
        finally:
            self._running -= 1

    async def _open(self, model: str) -> tuple[str, Conversation, AsyncExitStack]:
        while len(self._idle) >= MAX_TURNS:
            await self._idle.pop(0)[2].aclose()
        async with AsyncExitStack() as stack:
            chat = await stack.enter_async_context(self.make())
            if model != OWN_MODEL:
                if model not in await listed_models(chat.model):
                    raise NoSuchModel(model)
                await chat.model.select(model)
            return model, chat, stack.pop_all()


async def listed_models(selection: ModelSelection) -> list[str]:
    """The models of the configured endpoint; none offline. Raises ModelError."""
    return [name for name in await selection.choices() if name not in (AUTO, OFFLINE)]
