"""An answer as it streams in: finished Markdown blocks are printed once, the last one is redrawn."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from itertools import takewhile
from operator import eq

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from ragchat.highlight import Highlight
from ragchat.markdown import block_parser, split_finished
from ragchat.sanitize import sanitize
from ragchat.ui.render.markdown import Markdown, is_written_plain
from ragchat.ui.render.screen import lines_of, write_lines

# Deltas are collected for this long before they are drawn, because models send single words.
DRAW_DELAY_SECONDS = 0.05
# An unfinished block of more characters is printed in parts: each drawing takes time in proportion to it.
MAX_BLOCK = 8_000
# The lines that open a block: repeated when a long block is split, so that the rest keeps its kind.
_OPENING_LINES = {"fence": 1, "table_open": 2}
# The redrawn part must fit on the screen with the line below it: what scrolls away cannot be redrawn.
_RESERVED_ROWS = 2
THINKING = "Thinking"
# A model that sends nothing for so long in the middle of an answer is waited for visibly.
STALL_SECONDS = 3


@dataclass
class Wait:
    """`Thinking 12 s`, with the seconds since `started` whenever it is drawn."""

    what: str
    started: float = field(default_factory=lambda: time.monotonic())

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text(f"{self.what} {self.seconds} s" if self.seconds else self.what, "notice")

    @property
    def seconds(self) -> int:
        return int(time.monotonic() - self.started)


class AnswerStream:
    """`feed` takes text, which is drawn from the event loop; `finish` prints the rest.

    If `animated` is false, a block is printed when it is finished and nothing is redrawn. A pipe gets the
    text as the model wrote it, and so does a dumb terminal: see `is_written_plain`. What `highlight` finds
    in quotations stands out on others. A pause of the model is shown below the text.
    """

    def __init__(self, console: Console, *, animated: bool) -> None:
        self._console = console
        self._is_plain = is_written_plain(console)
        self.highlight = Highlight("")
        self._rest = ""
        self._printed = False
        self._within = False  # the last output ended within a block
        self._animated = animated
        self._drawn: list[list[Segment]] = []  # the lines above the cursor that may be redrawn
        self._timer: asyncio.TimerHandle | None = None
        self._wait: Wait | None = None  # since the last piece
        self._clock: asyncio.TimerHandle | None = None  # draws the seconds of a pause

    def feed(self, text: str) -> None:
        """Take `text` and draw it within DRAW_DELAY_SECONDS.

        A large text is drawn at once, so that text cannot arrive faster than the terminal shows it.
        """
        self.take(text)
        self._wait = Wait(THINKING)
        if self._animated and self._clock is None:
            self._clock = asyncio.get_running_loop().call_later(1.0, self._draw_seconds)
        if len(self._rest) > MAX_BLOCK:
            self.draw()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(DRAW_DELAY_SECONDS, self.draw)

    def take(self, text: str) -> None:
        self._rest += sanitize(text)

    def finish(self) -> None:
        """Print the rest, even if the answer is incomplete. The stream can be fed again."""
        self._stop_timer()
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        self._wait = None
        rest, self._rest = self._rest, ""
        self._print(rest)
        self._replace([])

    def draw(self) -> None:
        """Print the finished blocks and redraw the last one."""
        self._stop_timer()
        finished, self._rest = split_finished(self._rest)
        self._print(finished)
        while len(self._rest) > MAX_BLOCK:
            part, self._rest = split_block(self._rest, repeats_opening=not self._is_plain)
            self._print(part, within=True)
        if self._animated:
            self._drawn = self._replace(self._unfinished())

    def _draw_seconds(self) -> None:
        self._clock = asyncio.get_running_loop().call_later(1.0, self._draw_seconds)
        if self._wait is not None and self._wait.seconds >= STALL_SECONDS:
            self.draw()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _print(self, text: str, *, within: bool = False) -> None:
        """Print blocks. `within`: the text ends within a block, which the next text continues."""
        if not text.strip():
            return
        if not self._within:
            text = text.lstrip("\n")
        if not within:
            text = text.rstrip("\n")
        if self._console.is_terminal:
            self._replace(self._lines(text))
        else:
            if self._printed and not self._within:
                self._console.print()
            self._console.out(text, end="" if within else "\n", highlight=False)
        self._printed, self._within = True, within

    def _lines(self, text: str) -> list[list[Segment]]:
        """The lines of a text on a terminal, below an empty one if it begins a further block."""
        # A part of a long block ends with a line break, which would be an empty line.
        part = text.removesuffix("\n") if self._is_plain else Markdown(text, self.highlight)
        lines = lines_of(self._console, part)
        return [[], *lines] if self._printed and not self._within else lines

    def _unfinished(self) -> list[list[Segment]]:
        """The unfinished block, or as many of its last lines as fit on the screen, and a pause."""
        lines = self._lines(self._rest.strip("\n")) if self._rest.strip() else []
        if self._wait is not None and self._wait.seconds >= STALL_SECONDS:
            lines += lines_of(self._console, self._wait)
        return lines[-max(1, self._console.height - _RESERVED_ROWS) :]

    def _replace(self, lines: list[list[Segment]]) -> list[list[Segment]]:
        """Write lines in place of those drawn before, from the first on that differs: a link may be slow."""
        same = sum(1 for _ in takewhile(bool, map(eq, self._drawn, lines)))
        if same < max(len(self._drawn), len(lines)):
            above = len(self._drawn) - same if self._drawn else None
            write_lines(self._console, lines[same:], instead_of=above)
        self._drawn = []
        return lines


def split_block(text: str, *, repeats_opening: bool) -> tuple[str, str]:
    """`text`, an unfinished block, as (its first MAX_BLOCK characters at most, the rest).

    With `repeats_opening`, the rest of a fence or a table begins with the line or the head that makes it one.
    """
    first = next(iter(block_parser().parse(text[:MAX_BLOCK])), None)
    lines = _OPENING_LINES.get(first.type, 0) if first is not None and repeats_opening else 0
    opening = "".join(text[:MAX_BLOCK].splitlines(keepends=True)[:lines])
    if len(opening) > MAX_BLOCK // 2:
        opening = ""
    ends = (text.rfind(mark, len(opening), MAX_BLOCK) + 1 for mark in "\n ")
    cut = next((end for end in ends if end), MAX_BLOCK)
    return text[:cut], opening + text[cut:]
