"""The open conversations of the page: one for each session, as each tab may show another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Self

import anyio
from anyio import AsyncContextManagerMixin
from anyio.abc import TaskGroup

from ragchat.conversation import Conversation
from ragchat.notebooks.definitions import Notebook
from ragchat.sessions.types import Session
from ragchat.web.errors import Busy, Outdated
from ragchat.web.streaming import Run
from ragmcp.concurrency import background_task

# A turn that was stopped takes a moment to end.
BUSY_SECONDS = 2.0
# Idle conversations that stay open: each holds a connection to the sessions and a client of the model.
MAX_IDLE = 8


class Chats(AsyncContextManagerMixin):
    """`make` makes a conversation in a new session. The least recently used idle one is closed first.

    `runs` are the answers that are being made, and those that failed while no page followed them, by
    session. They are made in `tasks`, and go on until the page is stopped.
    """

    def __init__(self, make: Callable[[], Conversation]) -> None:
        self.runs: dict[str, Run] = {}
        self.tasks: TaskGroup
        self._make = make
        self._open: dict[str, tuple[Conversation, AsyncExitStack]] = {}
        self._busy: dict[str, anyio.Event] = {}

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncIterator[Self]:
        try:
            async with background_task() as self.tasks:
                yield self
        finally:
            for session_id in [*self._open]:
                await self._close(session_id)

    def session(self, session_id: str) -> Session | None:
        """The session, if it is open; it need not be stored yet."""
        found = self._open.get(session_id)
        return found[0].session if found else None

    def begin(self, session_id: str, question: str) -> Run:
        """A run for a question. It can be followed and stopped at once, unless another one goes on."""
        run = Run(question)
        if (last := self.runs.get(session_id)) is None or last.end is not None:
            self.runs[session_id] = run
        return run

    def stop(self, session_id: str) -> None:
        """Stop the answer that is being made; what a model has written of it is kept."""
        if (run := self.runs.get(session_id)) is None:
            return
        found = self._open.get(session_id)
        if found is None or not found[0].stop():
            run.scope.cancel()

    async def new(self, notebook: Notebook | None = None) -> Conversation:
        """A conversation in a new session, which is stored with its first turn."""
        return await self._add(notebook=notebook)

    @asynccontextmanager
    async def taking_turn(self, session_id: str, last: str | None = None) -> AsyncIterator[Conversation]:
        """The conversation, for one turn at a time. Raises UnknownSession, Busy.

        `last` is the id of the last turn that the page shows, "" if it shows none: raises Outdated if there
        is another one.
        """
        with anyio.move_on_after(BUSY_SECONDS):
            while (busy := self._busy.get(session_id)) is not None:
                await busy.wait()
        if session_id in self._busy:
            raise Busy
        self._busy[session_id] = anyio.Event()
        try:
            conversation = await self._newest(session_id)
            if last is not None and last != getattr(conversation.last_turn, "turn_id", ""):
                raise Outdated
            yield conversation
        finally:
            self._busy.pop(session_id).set()

    async def _newest(self, session_id: str) -> Conversation:
        """The conversation of a session, with the turns that another program has added."""
        if (found := self._open.pop(session_id, None)) is None:
            return await self._add(session_id)
        self._open[session_id] = found  # the most recently used is last
        conversation = found[0]
        for stored in await conversation.sessions.turns(session_id, 1):
            if all(stored.turn_id != turn.turn_id for turn in conversation.session.turns):
                await conversation.resume(session_id)
        return conversation

    async def forget(self, session_id: str) -> None:
        """Close the conversation of a session that is deleted or changed elsewhere. Raises Busy."""
        if session_id in self._busy:
            raise Busy
        if session_id in self._open:
            await self._close(session_id)

    async def _add(self, session_id: str | None = None, notebook: Notebook | None = None) -> Conversation:
        """Open a conversation, in a new session without `session_id`. Raises UnknownSession."""
        async with AsyncExitStack() as stack:
            conversation = await stack.enter_async_context(self._make())
            if session_id is not None:
                await conversation.sessions.info(session_id)  # `resume` would take a prefix of an id, too.
                await conversation.resume(session_id)
            elif notebook is not None:
                await conversation.use_notebook(notebook)
                conversation.new_session()
            self._open[conversation.session.session_id] = conversation, stack.pop_all()
        idle = [id for id in self._open if id not in self._busy]
        for id in idle[: -MAX_IDLE or None]:
            await self._close(id)
        return conversation

    async def _close(self, session_id: str) -> None:
        self.runs.pop(session_id, None)
        _, stack = self._open.pop(session_id)
        await stack.aclose()
