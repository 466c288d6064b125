"""Completion of slash commands and their arguments; ordinary text is never completed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
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
        from ragchat.ui.slash import table as slash

        text = document.text_before_cursor
        name, space, argument = text.partition(" ")
        command = slash.BY_NAME.get(name.removeprefix("/"))
        if not (text.startswith("/") and space and command and command.complete):
            return
        try:
            async for completion in command.complete(self._context(), argument.lstrip()):
                yield completion
        except Exception:
            # If memory is down, the menu stays closed, and the command will report the error.
            return
