"""An answer as it comes in: finished Markdown blocks are printed for good, the last one is redrawn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rich.live import Live

from ragchat.sanitize import neutral
from ragchat.ui.render.blocks import split_finished
from ragchat.ui.render.markdown import Markdown

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

# Deltas are gathered this long before anything is drawn: models send single words, eyes read lines.
GATHER_SECONDS = 0.05
# The live part must fit on the screen with the line below it, else the terminal scrolls it out of reach.
_ROWS_KEPT_FREE = 2


class AnswerStream:
    """Feed it text, then `finish` it; in between it draws itself on the running event loop.

    `animated` false: a block is printed when it is finished, and nothing is ever drawn twice. A pipe gets the
    text as the model wrote it, for that is what other programs can use.
    """

    def __init__(self, console: Console, *, animated: bool) -> None:
        self._console = console
        self._rest = ""
        self._printed = False
        self._live = _make_live(self, console) if animated else None
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, text: str) -> None:
        """Take `text`, and draw it soon, with what else comes until then."""
        self.take(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_SECONDS, self.draw)

    def take(self, text: str) -> None:
        self._rest += neutral(text)

    def finish(self) -> None:
        """Print what is left, whether or not the answer is complete. The stream can be fed again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        rest, self._rest = self._rest, ""
        if self._live is not None and self._live.is_started:
            self._live.stop()
        self._print(rest)

    def draw(self) -> None:
        """Print what has been finished, and the rest as it is now."""
        self._timer = None
        finished, self._rest = split_finished(self._rest)
        if self._live is not None:
            self._live.start()
        self._print(finished)
        if self._live is not None:
            self._live.refresh()

    def _print(self, text: str) -> None:
        if not text.strip():
            return
        if self._printed:
            self._console.print()
        text = text.strip("\n")
        self._console.print(Markdown(text) if self._console.is_terminal else text)
        self._printed = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The unfinished block, or as many of its last lines as the screen can hold."""
        from rich.segment import Segment

        if not self._rest.strip():
            return
        lines = console.render_lines(Markdown(self._rest.strip("\n")), options, pad=False)
        if self._printed:
            lines.insert(0, [])
        for line in lines[-max(1, console.height - _ROWS_KEPT_FREE) :]:
            yield from line
            yield Segment.line()


def _make_live(answer: AnswerStream, console: Console) -> Live:
    return Live(
        answer,
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
