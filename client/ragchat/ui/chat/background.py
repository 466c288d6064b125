"""Starts while the user types: imports, the conversation, its memory server and its model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import get_app

if TYPE_CHECKING:
    from ragchat.conversation import Conversation
    from ragchat.ui.context import ChatContext

OpenConversation = Callable[[], AbstractAsyncContextManager["Conversation"]]

log = logging.getLogger("ragchat")

# What the first answer needs, including the slow imports.
_MODULES = (
    "ragchat.conversation",
    "ragchat.memory.client",
    "ragchat.ui.context",
    "ragchat.ui.chat.messages",
    "ragchat.ui.render.screen",
    "ragchat.ui.render.answer",
)


class Background:
    """Holds the conversation open in one task, as long as the chat lasts.

    `above_prompt` lets it print meanwhile.
    """

    def __init__(
        self,
        open_conversation: OpenConversation,
        make_context: Callable[[Conversation], ChatContext],
        above_prompt: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        self.context: ChatContext | None = None
        self._open_conversation = open_conversation
        self._make_context = make_context
        self._above_prompt = above_prompt
        self._opened = asyncio.Event()
        self._closing = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def stay_open(self) -> None:
        """Open everything, then wait for `close`. Raises what opening and closing the conversation raise."""
        try:
            # In a thread, so that the prompt reacts to keys.
            await asyncio.to_thread(_load_modules)
            if self._closing.is_set():  # do not start a server only to stop it
                return
            async with self._open_conversation() as conversation:
                self.context = await self._prepare(conversation)
                self._opened.set()
                self.start(self._welcome(self.context))
                self.start(self._load_model(self.context))
                await self._closing.wait()
                for task in self._tasks:
                    task.cancel()
                await asyncio.wait(self._tasks)
        finally:
            self._opened.set()

    def close(self) -> None:
        self._closing.set()

    async def handle(self, text: str) -> None:
        """Handle a message once everything is open; not if opening failed or the chat was closed first."""
        await self._opened.wait()
        if self.context is not None:
            from ragchat.ui.chat.messages import handle

            await handle(self.context, text)

    def refresh(self) -> None:
        """Update the toolbar: work may have changed memory and the session."""
        if self.context is not None:
            self.context.update_session_status()
            self.start(self._update_memory_status(self.context))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` until it ends or the chat does. It must raise nothing."""
        self._tasks = [task for task in self._tasks if not task.done()]
        self._tasks.append(asyncio.create_task(work))

    async def _prepare(self, conversation: Conversation) -> ChatContext:
        from ragchat.ui.slash.sessions import show_resumed

        context = self._make_context(conversation)
        if conversation.last_turn is not None:
            async with self._above_prompt():
                show_resumed(context)
                context.screen.show("")
        context.update_session_status()
        get_app().invalidate()
        return context

    async def _welcome(self, context: ChatContext) -> None:
        """Start the memory server before the first question, and offer the README if memory is empty."""
        from ragchat.ui.welcome import FIND_A_MODEL, README_OFFER, has_no_model, memory_line, readme

        await self._show_line(context, memory_line(context))
        await self._update_memory_status(context)
        # If the user has already asked something, the answer says that memory is empty.
        if context.status.documents == 0 and readme() and get_app().is_running:
            context.readme_offered = True
            async with self._above_prompt():
                context.screen.show(README_OFFER, "")
            if await has_no_model(context):
                await self._show_line(context, FIND_A_MODEL)

    async def _update_memory_status(self, context: ChatContext) -> None:
        try:
            await context.update_memory_status()
        except Exception as error:
            await self._show_error(context, error)
        get_app().invalidate()

    async def _load_model(self, context: ChatContext) -> None:
        try:
            await context.conversation.warm_up()
        except Exception as error:
            await self._show_error(context, error)
        context.update_session_status()
        get_app().invalidate()
        await self._show_servers(context)

    async def _show_servers(self, context: ChatContext) -> None:
        """Say which servers cannot be used, those that wait for the user first."""
        from ragchat.ui.welcome import failed_line, servers_line

        await self._show_line(context, servers_line(context))
        await context.conversation.servers.ready()
        await self._show_line(context, early := failed_line(context))
        await context.conversation.servers.wait_started()
        if (line := failed_line(context)) != early:
            await self._show_line(context, line)

    async def _show_line(self, context: ChatContext, line: str) -> None:
        if line:
            async with self._above_prompt():
                context.screen.note(line)
                context.screen.show("")

    async def _show_error(self, context: ChatContext, error: Exception) -> None:
        log.error("opening failed", exc_info=error)
        async with self._above_prompt():
            context.screen.error(error)
            context.screen.show("")


def _load_modules() -> None:
    for name in _MODULES:
        import_module(name)
