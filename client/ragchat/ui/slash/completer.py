"""Completion of slash commands and their arguments, and of what a question mentions with @."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion

if TYPE_CHECKING:
    from prompt_toolkit.document import Document

    from ragchat.ui.context import ChatContext


class SlashCompleter(Completer):
    """`context` returns None while the chat is starting; only command names are completed then."""

    def __init__(self, context: Callable[[], ChatContext | None]) -> None:
        self._context = context

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterable[Completion]:
        """Complete names only: the completions of arguments may need a call to memory."""
        text = document.text_before_cursor
        if not text.startswith("/") or text.startswith("//") or " " in text:
            return
        from ragchat.ui.slash import table as slash

        for command in slash.COMMANDS:
            if command.name.startswith(text[1:]):
                # The space opens the completions of the argument.
                name = command.name + (" " if command.arguments else "")
                yield Completion(name, 1 - len(text), display=f"/{command.name}", display_meta=command.help)

    async def get_completions_async(
        self, document: Document, event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        for completion in self.get_completions(document, event):
            yield completion
        try:
            async for completion in self._slow_completions(document.text_before_cursor):
                yield completion
        except Exception:
            # If memory or a server is down, the menu stays closed, and the command will report the error.
            return

    async def _slow_completions(self, text: str) -> AsyncGenerator[Completion, None]:
        """Completions for which memory or a server may be asked."""
        from ragchat.ui import attachments
        from ragchat.ui.slash import prompts
        from ragchat.ui.slash import table as slash

        name, space, argument = text.partition(" ")
        found: AsyncIterable[Completion]
        if not text.startswith("/"):
            found = attachments.complete(self._context(), text)
        elif not space or ":" in name:
            found = prompts.complete(self._context(), text[1:], are_commands=True)
        elif (command := slash.BY_NAME.get(name[1:])) and command.complete:
            found = command.complete(self._context(), argument.lstrip())
        else:
            return
        async for completion in found:
            yield completion
