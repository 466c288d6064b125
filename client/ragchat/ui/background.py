"""What opens behind the prompt: imports, the app with its memory server, the first look at memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from prompt_toolkit.application import get_app

if TYPE_CHECKING:
    from ragchat.app import App
    from ragchat.ui.context import ChatContext

OpenApp = Callable[[], AbstractAsyncContextManager["App"]]

log = logging.getLogger("ragchat")

# What the first answer needs, the slow ones among it.
_MODULES = (
    "ragchat.app",
    "ragchat.memory.client",
    "ragchat.ui.context",
    "ragchat.ui.messages",
    "ragchat.ui.render.screen",
    "ragchat.ui.render.answer",
)


class Past(NamedTuple):
    """The session to go on with: by its id, or the last one."""

    session_id: str | None
    last: bool


NO_PAST = Past(None, last=False)


class Background:
    """Holds the app open in one task, for as long as the chat lasts.

    What is printed inside `aside()` does not disturb the user who is typing.
    """

    def __init__(
        self,
        open_app: OpenApp,
        make_context: Callable[[App], ChatContext],
        aside: Callable[[], AbstractAsyncContextManager[None]],
        past: Past = NO_PAST,
    ) -> None:
        self.context: ChatContext | None = None
        self._open_app = open_app
        self._make_context = make_context
        self._aside = aside
        self._past = past
        self._opened = asyncio.Event()
        self._closing = asyncio.Event()
        self._looks: list[asyncio.Task[None]] = []

    async def stay_open(self) -> None:
        """Open everything, then wait for `close`. Raises what opening and closing raise."""
        try:
            # In a thread, so that every key is answered meanwhile.
            await asyncio.to_thread(_load_modules)
            if self._closing.is_set():  # no server is started only to be stopped
                return
            async with self._open_app() as app:
                self.context = await self._prepare(app)
                self._opened.set()
                self._begin(self._welcome(self.context))
                self._begin(self._load_model(self.context))
                await self._closing.wait()
                for task in self._looks:
                    task.cancel()
                await asyncio.wait(self._looks)
        finally:
            self._opened.set()

    def close(self) -> None:
        self._closing.set()

    async def wait(self) -> ChatContext | None:
        """The context as soon as it is there; None when it cannot be had."""
        await self._opened.wait()
        return self.context

    def look_again(self) -> None:
        """What was stopped half-way may have changed memory and session."""
        if self.context is not None:
            self.context.follow_session()
            self._begin(self._look_at_memory(self.context))

    def _begin(self, look: Coroutine[Any, Any, None]) -> None:
        self._looks = [task for task in self._looks if not task.done()]
        self._looks.append(asyncio.create_task(look))

    async def _prepare(self, app: App) -> ChatContext:
        from ragchat.ui.slash.sessions import resume

        context = self._make_context(app)
        if any(self._past):
            async with self._aside():
                await resume(context, self._past.session_id or "")
                context.screen.show("")
        context.follow_session()
        get_app().invalidate()
        return context

    async def _welcome(self, context: ChatContext) -> None:
        """Starts the memory server, too: the first question finds it running."""
        from ragchat.ui.welcome import EMPTY_MEMORY, readme

        await self._look_at_memory(context)
        # Who was quicker and asks already will be told by the answer.
        if context.status.documents == 0 and readme() and get_app().is_running:
            context.readme_offered = True
            async with self._aside():
                context.screen.show(EMPTY_MEMORY, "")

    async def _look_at_memory(self, context: ChatContext) -> None:
        try:
            await context.follow_memory()
        except Exception as error:
            await self._show_error(context, error)
        get_app().invalidate()

    async def _load_model(self, context: ChatContext) -> None:
        try:
            await context.app.warm_up()
        except Exception as error:
            await self._show_error(context, error)
        context.follow_session()
        get_app().invalidate()

    async def _show_error(self, context: ChatContext, error: Exception) -> None:
        log.error("opening failed", exc_info=error)
        async with self._aside():
            context.screen.error(error)
            context.screen.show("")


def _load_modules() -> None:
    for name in _MODULES:
        import_module(name)
