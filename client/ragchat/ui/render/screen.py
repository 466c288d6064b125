"""stdout and stderr as rich consoles. Imported after the prompt is drawn: it loads rich."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from ragchat.console import describe, is_styled
from ragchat.sanitize import sanitize
from ragchat.ui.render.style import OUTPUT

if TYPE_CHECKING:
    from rich.console import RenderableType

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
            if isinstance(part, str):
                self.out.print(sanitize(part))
            else:
                self._print(part)

    def listing(self, rows: Iterable[tuple[str, RenderableType, *tuple[RenderableType, ...]]]) -> bool:
        """Print columns, the first in the style of a name. Returns whether there was a row."""
        named = [(Text(sanitize(row[0]), "name"), row[1:]) for row in rows]
        if self.out.width < _COLUMNS_WIDTH:
            for name, cells in named:
                self.out.print(name, *(Padding(cell, (0, 0, 0, 2)) for cell in cells if cell), sep="\n")
            return bool(named)
        width = max((name.cell_len for name, _ in named), default=0)
        table = Table.grid(padding=(0, 2))
        # A name must be readable on a narrow screen, too.
        table.add_column(overflow="fold", min_width=min(width, _UNBROKEN))
        for name, cells in named:
            table.add_row(name, *cells)
        if table.row_count:
            self._print(table)
        return bool(table.row_count)

    def _print(self, part: RenderableType) -> None:
        """Print a table or a text; on a pipe without the blanks that fill its lines."""
        if self.out.is_terminal:
            self.out.print(part)
            return
        with self.out.capture() as captured:
            self.out.print(part)
        self.out.print("\n".join(line.rstrip() for line in captured.get().splitlines()))

    def note(self, text: str, style: str = "notice") -> None:
        """Print a sentence that is not a result."""
        self.err.print(Text(sanitize(text), style))

    def error(self, error: BaseException) -> None:
        """Print a failure and its hint."""
        failure = describe(error)
        self.err.print(Text(sanitize(failure.message), "error"))
        if failure.hint:
            self.err.print(Text(sanitize(failure.hint), "hint"))


def make_console(stream: IO[str]) -> Console:
    """A console that prints text as it is: no markup, no emoji codes, no highlighting."""
    width, height = _size_of(stream)
    return Console(
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
    is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    return shutil.get_terminal_size() if is_dumb else (None, None)
