"""An answer as it streams in: finished Markdown blocks are printed once, the last one is redrawn."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING

from rich.live import Live

from ragchat.sanitize import sanitize
from ragchat.ui.render.highlight import Highlight
from ragchat.ui.render.markdown import Markdown, markdown_parser

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from rich.console import Console, ConsoleOptions, RenderResult

# Deltas are collected for this long before they are drawn: models send single words, eyes read lines.
GATHER_SECONDS = 0.05
# The redrawn part must fit on the screen with the line below it: what scrolls away cannot be redrawn.
_ROWS_KEPT_FREE = 2


class AnswerStream:
    """`feed` takes text, which is drawn from the event loop; `finish` prints the rest.

    If `animated` is false, a block is printed when it is finished and nothing is redrawn. A pipe gets the
    text as the model wrote it, which is what other programs can use. What `highlight` finds in quotations
    stands out on a terminal.
    """

    def __init__(self, console: Console, *, animated: bool) -> None:
        self._console = console
        self.highlight = Highlight("")
        self._rest = ""
        self._printed = False
        self._live = _make_live(self, console) if animated else None
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, text: str) -> None:
        """Take `text` and draw it within GATHER_SECONDS."""
        self.take(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_SECONDS, self.draw)

    def take(self, text: str) -> None:
        self._rest += sanitize(text)

    def finish(self) -> None:
        """Print the rest, even if the answer is incomplete. The stream can be fed again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        rest, self._rest = self._rest, ""
        if self._live is not None and self._live.is_started:
            self._live.stop()
        self._print(rest)

    def draw(self) -> None:
        """Print the finished blocks and redraw the last one."""
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
        self._console.print(Markdown(text, self.highlight) if self._console.is_terminal else text)
        self._printed = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The unfinished block, or as many of its last lines as fit on the screen."""
        from rich.segment import Segment

        if not self._rest.strip():
            return
        lines = console.render_lines(Markdown(self._rest.strip("\n"), self.highlight), options, pad=False)
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


def split_finished(text: str) -> tuple[str, str]:
    """`text` as (finished blocks, the rest).

    All top-level blocks but the last are finished: a list, a table or a paragraph may still grow, and an open
    fence reaches to the end of the text. Only whole lines count, because the start of a line ("2" of
    "2. two") may look like another kind of block.
    """
    lines_end = text.rfind("\n") + 1
    starts = [
        token.map[0]
        for token in _block_parser().parse(text[:lines_end])
        if token.level == 0 and token.map and token.nesting >= 0
    ]
    if len(starts) < 2:
        return "", text
    cut = _offset_of_line(text, starts[-1])
    return text[:cut], text[cut:]


def _offset_of_line(text: str, line: int) -> int:
    offset = 0
    for _ in range(line):
        offset = text.index("\n", offset) + 1
    return offset


@cache
def _block_parser() -> MarkdownIt:
    parser = markdown_parser()
    # Parsing spans inside a line takes time and does not change the blocks.
    parser.disable(["inline", "text_join"])
    return parser
