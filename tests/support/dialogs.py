"""A user at the terminal, played by a list of replies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext

from prompt_toolkit.completion import Completer

from ragchat.ui.dialog import Dialog, Read


class ScriptedDialog(Dialog):
    """Replies in turn (None: the user cancels), and records what is asked and shown."""

    def __init__(self, replies: Iterable[str | None] = ()) -> None:
        super().__init__(nullcontext)
        self._replies = iter(replies)
        self.asked: list[str] = []
        self.defaults: list[str] = []
        self.shown: list[str] = []

    def show(self, text: str, _: str = "") -> None:
        self.shown.append(text)

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[Read]:
        yield self._reply

    async def _reply(self, question: str, _: Completer | None = None, default: str = "", /) -> str | None:
        self.asked.append(question)
        self.defaults.append(default)
        return next(self._replies)
