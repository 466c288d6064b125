"""The two streams a front end writes to, as rich consoles. Imported behind the prompt: it loads rich."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text
from rich.theme import Theme

from ragchat.console import describe, is_styled
from ragchat.sanitize import neutral
from ragchat.ui.style import OUTPUT

if TYPE_CHECKING:
    from rich.console import RenderableType

# Lines on a pipe are not cut and not wrapped: other programs read them.
_PIPE_WIDTH = 10_000


@dataclass
class Screen:
    """`out` carries answers and results, `err` everything else.

    `animated`: the cursor may be moved and lines drawn again. A dumb terminal, a screen reader's or a pipe
    gets every line once.
    """

    out: Console
    err: Console
    animated: bool

    @classmethod
    def open(cls, stdout: TextIO | None = None, stderr: TextIO | None = None) -> Screen:
        stdout, stderr = stdout or sys.stdout, stderr or sys.stderr
        return cls(make_console(stdout), make_console(stderr), is_styled(stdout))

    def show(self, *parts: RenderableType) -> None:
        """A result. Strings are printed as they are, without markup, control characters made visible."""
        for part in parts:
            self.out.print(neutral(part) if isinstance(part, str) else part)

    def note(self, text: str, style: str = "notice") -> None:
        """One sentence beside the results."""
        self.err.print(Text(neutral(text), style))

    def error(self, error: BaseException) -> None:
        """A failure and what to do about it."""
        failure = describe(error)
        self.err.print(Text(neutral(failure.message), "error"))
        if failure.hint:
            self.err.print(Text(neutral(failure.hint), "hint"))


def make_console(stream: IO[str]) -> Console:
    """A console that prints what it is given: no markup, no emoji codes, no colours found in the text."""
    return Console(
        file=stream,
        theme=Theme(OUTPUT),
        # Decided in one place, and not again by rich from FORCE_COLOR and the like.
        force_terminal=stream.isatty(),
        color_system="auto" if is_styled(stream) else None,
        width=None if stream.isatty() else _PIPE_WIDTH,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
