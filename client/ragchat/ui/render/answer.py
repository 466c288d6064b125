"""A turn on the screen: a spinner while it runs, the answer as it streams, then its sources."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragchat.answer import Answer
from ragchat.console import is_styled
from ragchat.highlight import Highlight
from ragchat.offline.answer import notes_of
from ragchat.sanitize import one_line
from ragchat.turn import events
from ragchat.turn.events import Emit, Event
from ragchat.turn.types import Turn
from ragchat.turn.why import summary
from ragchat.ui.render.cards import show_cards
from ragchat.ui.render.sources import plain_sources, sources
from ragchat.ui.render.stream import MAX_BLOCK, STALL_SECONDS, THINKING, AnswerStream, Wait

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from ragchat.ui.render.screen import Screen

# More sources, as of the outline of a long document, would push the answer off the screen.
MAX_SOURCES = 10
# Shorter waits show no spinner.
SPINNER_SECONDS = 0.25


class AnswerView:
    """Shows the events of a turn. What is on the screen stays there if the turn is stopped.

    `reasoning` is what the model thought; with `shows_reasoning` it is shown line by line as it arrives.
    `in_chat`: slash commands are at hand.
    """

    def __init__(self, screen: Screen, *, shows_reasoning: bool = False, in_chat: bool = False) -> None:
        self.has_called_tools = False
        self.shown = 0  # cards of the answer; 0 also while its only one is cut
        self._reasoning: list[str] = []
        self._unshown_reasoning = ""  # an unfinished line of it
        self._shows_reasoning = shows_reasoning
        self._in_chat = in_chat
        self._screen = screen
        self._spinner = _Spinner(screen.err)
        self._stream = AnswerStream(screen.out, animated=screen.animated)
        # The events that arrive while the user is asked something; None otherwise.
        self._held: list[Event] | None = None
        self._released = asyncio.Event()
        self._released.set()

    @property
    def reasoning(self) -> str:
        return "".join(self._reasoning)

    async def show(self, take_turn: Callable[[Emit], Awaitable[Turn]]) -> Turn:
        """Take a turn and show its events, then its sources. Raises what the turn raises."""
        try:
            turn = await take_turn(self._show_event)
            await self._released.wait()
        finally:
            self.pause()
        self._show_end(turn)
        return turn

    def show_progress(self, text: str) -> None:
        """Show `text` as the current step, if the user is waiting."""
        self._spinner.update(text)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Draw nothing while the body runs, then the events that arrived meanwhile."""
        waited_for = self._spinner.what
        self.pause()
        self._held, self._released = [], asyncio.Event()
        try:
            yield
        finally:
            held, self._held = self._held, None
            self._released.set()
            if waited_for:
                self._spinner.wait(waited_for)
            for event in held:
                self._show_event(event)

    def pause(self) -> None:
        """Stop drawing, so that something else can write to the screen or ask the user."""
        self._spinner.stop()
        self._stream.finish()
        self._show_reasoning()

    def _show_reasoning(self) -> None:
        """Show the rest of the reasoning, below what is written of the answer."""
        if self._unshown_reasoning.strip():
            self._stream.finish()
            self._screen.note(self._unshown_reasoning.strip("\n"))
        self._unshown_reasoning = ""

    def _add_reasoning(self, text: str) -> None:
        """Keep `text`, and show the lines that it finishes, or as much of one as is drawn at once."""
        self._reasoning.append(text)
        if self._shows_reasoning:
            self._unshown_reasoning += text
            if len(self._unshown_reasoning) > MAX_BLOCK:
                self._show_reasoning()
            elif "\n" in text:
                lines, _, rest = self._unshown_reasoning.rpartition("\n")
                self._unshown_reasoning = lines
                self._show_reasoning()
                self._unshown_reasoning = rest

    def _show_event(self, event: Event) -> None:
        if self._held is not None:
            self._held.append(event)
            return
        match event:
            case events.Rephrasing():
                self._spinner.wait("Asking for other wordings")
            case events.Retrieving(query):
                self._stream.highlight = Highlight(query)
                self._spinner.wait("Searching")
            case events.Retrieved():
                self._spinner.wait(THINKING)
            case events.Reasoning(text):
                self._add_reasoning(text)
            case events.Delta(text):
                self._spinner.stop()
                self._show_reasoning()
                self._stream.feed(text)
            case events.Shown(answer):
                self._spinner.stop()
                self._show_cards(answer)
            case events.ToolStarted(name):
                self.pause()
                self._spinner.wait(f"Calling {name}")
            case events.ToolFinished(name, ok, summary):
                self.has_called_tools = True
                self.pause()
                self._screen.note(f"{name}: {one_line(summary)}", "notice" if ok else "warning")
                self._spinner.wait(THINKING)
            case events.Notice(text):
                self._stream.finish()
                self._screen.note(text)  # above the spinner, which keeps running

    def _show_cards(self, answer: Answer) -> None:
        """On a terminal as many cards as fit; a pipe gets all as Markdown."""
        if not (self._screen.out.is_terminal and answer.cards):
            self._stream.feed(answer.text)
            self.shown = len(answer.cards)
            return
        before, after = notes_of(grounded=answer.grounded, missing=answer.missing)
        if before:
            self._screen.note(before)
        count, is_cut = show_cards(self._screen, answer.cards, answer, self._stream.highlight)
        self.shown = 0 if is_cut and len(answer.cards) == 1 else count
        if after:
            self._screen.note(after)

    def _show_end(self, turn: Turn) -> None:
        if not self._screen.out.is_terminal:
            listed = [] if turn.answer.cards else plain_sources(turn)
            self._screen.show(*(["", *listed] if listed else []))
            return
        if not turn.answer.cards and (table := sources(turn)) is not None:
            if table.row_count <= MAX_SOURCES or not self._in_chat:
                self._screen.show("", table)
            else:
                self._screen.note(f"/sources lists {table.row_count} sources.")
        if not turn.answer.cards:
            self._screen.show("")
        are_hidden = self.shown < len(turn.answer.cards)
        if self._in_chat:
            more = " · /more" if are_hidden or turn.answer.further else ""
        else:
            more = " · `| cat` shows all" if are_hidden else ""
        self._screen.note(summary(turn) + more)


class _Spinner:
    """Shows on stderr what the user waits for, until `stop`: as one line where a line cannot be redrawn.

    A pipe gets nothing.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._animated = is_styled(console.file)
        self._timer: asyncio.TimerHandle | None = None
        self._status: Status | None = None
        self._wait = Wait("")

    @property
    def what(self) -> str:
        """What the user waits for now, "" for nothing."""
        return self._wait.what

    def update(self, what: str) -> None:
        """The user still waits, for `what` now."""
        if self.what:
            self._wait.what = one_line(what)

    def wait(self, what: str) -> None:
        self.stop()
        self._wait = Wait(one_line(what))
        if self._console.is_terminal:
            delay = SPINNER_SECONDS if self._animated else STALL_SECONDS
            self._timer = asyncio.get_running_loop().call_later(delay, self._start, self._wait)

    def stop(self) -> None:
        self._wait = Wait("")
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _start(self, wait: Wait) -> None:
        from rich.status import Status
        from rich.text import Text

        self._timer = None
        if not self._animated:
            self._console.print(Text(wait.what, "notice"))
            return
        self._status = Status(wait, console=self._console, spinner="dots", spinner_style="notice")
        self._status.start()
