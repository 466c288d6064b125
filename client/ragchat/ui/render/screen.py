"""stdout and stderr as rich consoles. Imported after the prompt is drawn: it loads rich."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, TextIO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.segment import ControlType, Segment, Segments
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from ragchat.console import describe, is_dumb, is_styled
from ragchat.sanitize import sanitize
from ragchat.ui.render.style import OUTPUT

# Lines on a pipe are not wrapped: other programs read them.
_PIPE_WIDTH = 10_000
# Names of at most this width, such as the ids of sessions, are not broken on a narrow screen.
_UNBROKEN = 16
# On a narrower screen the cells of a row are printed below each other.
_COLUMNS_WIDTH = 32


@dataclass
class Screen:
    """`out` carries answers and results, `err` everything else.

    `animated`: lines may be redrawn. A dumb terminal, a screen reader or a pipe gets every line once.
    """

    out: Console
    err: Console
    animated: bool

    @classmethod
    def open(cls, stdout: TextIO | None = None, stderr: TextIO | None = None) -> Screen:
        stdout, stderr = stdout or sys.stdout, stderr or sys.stderr
        return cls(make_console(stdout), make_console(stderr), is_styled(stdout))

    def show(self, *parts: RenderableType) -> None:
        """Print a result. Strings are sanitized and have no markup."""
        for part in parts:
            write_lines(self.out, lines_of(self.out, sanitize(part) if isinstance(part, str) else part))

    def listing(self, rows: Iterable[tuple[str, RenderableType, *tuple[RenderableType, ...]]]) -> bool:
        """Print columns, the first in the style of a name. Returns whether there was a row."""
        named = [(Text(sanitize(row[0]), "name"), row[1:]) for row in rows]
        if self.out.width < _COLUMNS_WIDTH:
            for name, cells in named:
                self.show(name, *(Padding(cell, (0, 0, 0, 2)) for cell in cells if cell))
            return bool(named)
        width = max((name.cell_len for name, _ in named), default=0)
        table = Table.grid(padding=(0, 2))
        # A name must be readable on a narrow screen, too.
        table.add_column(overflow="fold", min_width=min(width, _UNBROKEN))
        for name, cells in named:
            table.add_row(name, *cells)
        if table.row_count:
            self.show(table)
        return bool(table.row_count)

    def note(self, text: str, style: str = "notice") -> None:
        """Print a sentence that is not a result."""
        self.err.print(Text(sanitize(text), style))

    def error(self, error: BaseException) -> None:
        """Print a failure and its hint."""
        failure = describe(error)
        self.err.print(Text(sanitize(failure.message), "error"))
        if failure.hint:
            self.err.print(Text(sanitize(failure.hint), "hint"))


def lines_of(console: Console, part: RenderableType) -> list[list[Segment]]:
    """The lines of a part without the blanks that fill them.

    These would be copied with the text, and be wrapped when the terminal becomes narrower.
    """
    return [_without_blanks(line) for line in console.render_lines(part, pad=False)]


def _without_blanks(line: list[Segment]) -> list[Segment]:
    while line and not line[-1].text.strip(" "):
        line.pop()
    return [*line[:-1], line[-1]._replace(text=line[-1].text.rstrip(" "))] if line else []


def write_lines(console: Console, lines: Iterable[list[Segment]], *, instead_of: int | None = None) -> None:
    """Write lines, on a terminal instead of so many lines above the cursor."""
    parts = [segment for line in lines for segment in (*line, Segment.line())]
    if instead_of is not None:
        # To the first column, as a terminal may have echoed ^C. Line by line: of a screen that is erased as a
        # whole, tmux keeps a copy.
        code = "\r\x1b[2K" + "\x1b[1A\x1b[2K" * instead_of
        parts.insert(0, Segment(code, None, [(ControlType.CARRIAGE_RETURN,)]))
    console.print(Segments(parts), crop=False)


class _Console(Console):
    def show_cursor(self, _show: bool = True) -> bool:
        """Leave the cursor visible: a spinner that is suspended would leave the shell without one."""
        return False


def make_console(stream: IO[str]) -> Console:
    """A console that prints text as it is: no markup, no emoji codes, no highlighting."""
    width, height = _size_of(stream)
    return _Console(
        file=stream,
        theme=Theme(OUTPUT),
        # is_styled decides about colours, not rich with FORCE_COLOR and the like.
        force_terminal=stream.isatty(),
        color_system="auto" if is_styled(stream) else None,
        width=width,
        height=height,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )


def _size_of(stream: IO[str]) -> tuple[int | None, int | None]:
    """The columns and lines of a pipe and of a dumb terminal; None where rich finds them itself.

    rich takes every dumb terminal for one of 80 columns.
    """
    if not stream.isatty():
        return _PIPE_WIDTH, None
    return shutil.get_terminal_size() if is_dumb() else (None, None)
