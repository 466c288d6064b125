"""Questions to the user, one at a time. Nothing else is drawn meanwhile."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.application import in_terminal
from prompt_toolkit.completion import Completer
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from ragchat.sanitize import sanitize
from ragchat.ui.prompt.keys import common_keys
from ragchat.ui.prompt.session import PROCESSORS, SanitizedCompleter
from ragchat.ui.prompt.type_ahead import discard_type_ahead, mark_pastes


class Read(Protocol):
    """Reads a line, with completion. None: the user cancelled, with Ctrl-C, Ctrl-D or Esc."""

    def __call__(
        self, question: str, completer: Completer | None = None, default: str = "", /
    ) -> Awaitable[str | None]: ...


class Dialog:
    """Asks one question at a time; `hold` stops other drawing while its block runs."""

    def __init__(self, hold: Callable[[], AbstractContextManager[None]]) -> None:
        self._hold = hold
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[Read]:
        """Wait until no other question is open; the block may then ask several."""
        async with self._lock:
            with self._hold():
                async with in_terminal():  # above the prompt of the chat, if that waits for a message
                    discard_type_ahead()
                    try:
                        yield _read
                    finally:
                        mark_pastes()

    async def read(self, question: str, completer: Completer | None = None) -> str | None:
        """One question."""
        async with self.exclusive() as read:
            return await read(question, completer)

    async def finished(self) -> None:
        """Wait until no question is open."""
        async with self._lock:
            pass


async def choose(read: Read, show: Callable[[str], None], question: str, choices: str) -> str | None:
    """Ask until the user chooses one of `choices` (see `chosen`); its word, None if they cancel."""
    is_wide = len(f"{question} {choices} ") >= shutil.get_terminal_size().columns
    gap = "\n" if is_wide else " "  # The terminal would break a choice within its word.
    while (reply := await read(f"{question}{gap}{choices} ")) is not None:
        if choice := chosen(reply, choices):
            return choice
        show(f"{reply.strip()!r} is none of the choices: type the letter or the whole word.")
    return None


def chosen(reply: str, choices: str) -> str:
    """The word of the choice that the user typed, as its letter or as a whole; "" for any other text.

    In `[y]es, ne[v]er, [N]o`, the letters are in brackets, and Enter alone means the one with a capital.
    """
    typed = reply.strip().lower()
    for choice in choices.split(", "):
        before, letter, after = re.split(r"[\[\]]", choice)
        word = f"{before}{letter}{after}".lower()
        if typed in (letter.lower(), word) or (not typed and letter.isupper()):
            return word
    return ""


async def _read(question: str, completer: Completer | None = None, default: str = "", /) -> str | None:
    with suppress(EOFError, KeyboardInterrupt):
        session = PromptSession[str](key_bindings=_keys(), input_processors=PROCESSORS)
        shown = SanitizedCompleter(completer) if completer else None
        return await session.prompt_async(sanitize(question), completer=shown, default=default)
    return None


def _keys() -> KeyBindings:
    keys = common_keys()

    @keys.add("escape")
    def _(event: KeyPressEvent) -> None:
        event.app.exit(exception=KeyboardInterrupt)

    return keys
