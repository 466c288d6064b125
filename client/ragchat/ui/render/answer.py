"""A turn on the screen: a spinner while it runs, the answer as it streams, then its sources."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ragchat.console import is_styled
from ragchat.formatting import seconds
from ragchat.sanitize import one_line
from ragchat.types import (
    OFFLINE,
    Delta,
    Emit,
    Event,
    Notice,
    Retrieved,
    Retrieving,
    ToolFinished,
    ToolStarted,
    Turn,
)
from ragchat.ui.render.sources import plain_sources, sources
from ragchat.ui.render.stream import AnswerStream

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from ragchat.ui.render.screen import Screen

# A shorter wait ends before the eye has found the spinner.
SPINNER_SECONDS = 0.25


class AnswerView:
    """Shows the events of a turn. What is on the screen stays there if the turn is stopped."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._spinner = _Spinner(screen.err)
        self._stream = AnswerStream(screen.out, animated=screen.animated)

    async def show(self, take_turn: Callable[[Emit], Awaitable[Turn]]) -> None:
        """Take a turn and show its events, then its sources. Raises what the turn raises."""
        try:
            turn = await take_turn(self._show_event)
        finally:
            self.pause()
        self._show_end(turn)

    def pause(self) -> None:
        """Stop drawing, so that something else can write to the screen or ask the user."""
        self._spinner.stop()
        self._stream.finish()

    def _show_event(self, event: Event) -> None:
        match event:
            case Retrieving():
                self._spinner.wait("Looking in memory")
            case Retrieved():
                self._spinner.wait("Thinking")
            case Delta(text):
                self._spinner.stop()
                self._stream.feed(text)
            case ToolStarted(name):
                self.pause()
                self._spinner.wait(f"Calling {name}")
            case ToolFinished(name, ok, summary):
                self.pause()
                self._screen.note(f"{name}: {one_line(summary)}", "notice" if ok else "warning")
                self._spinner.wait("Thinking")
            case Notice(text):
                self.pause()
                self._screen.note(text)

    def _show_end(self, turn: Turn) -> None:
        if not self._screen.out.is_terminal:
            self._screen.show(*(["", *listed] if (listed := plain_sources(turn)) else []))
            return
        if (table := sources(turn)) is not None:
            self._screen.show("", table)
        self._screen.show("")
        self._screen.note(summary(turn))


def summary(turn: Turn) -> str:
    """`offline · 0.1 s`, or `gpt-5-mini · 1,204 + 210 tokens · 2.1 s`; "about" before our own estimate."""
    parts = [turn.model]
    if turn.model != OFFLINE:
        prompt, completion = turn.usage.best
        about = "" if turn.usage.is_reported else "about "
        parts.append(f"{about}{prompt:,} + {completion:,} tokens")
    if "total" in turn.timings:
        parts.append(seconds(turn.timings["total"]))
    return " · ".join(parts)


class _Spinner:
    """Shows on stderr what the user waits for, until `stop`. Silent unless stderr can be redrawn."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._animated = is_styled(console.file)
        self._timer: asyncio.TimerHandle | None = None
        self._status: Status | None = None

    def wait(self, what: str) -> None:
        self.stop()
        if self._animated:
            self._timer = asyncio.get_running_loop().call_later(SPINNER_SECONDS, self._start, one_line(what))

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _start(self, what: str) -> None:
        from rich.status import Status
        from rich.text import Text

        self._timer = None
        self._status = Status(Text(what, "notice"), console=self._console, spinner="dots")
        self._status.start()
