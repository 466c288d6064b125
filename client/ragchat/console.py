"""The screen, as far as it is not the chat's: the one place that decides colour, width and encoding, and the
one place that turns an exception into lines. Results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from typing import IO, Any, TextIO, cast

from ragchat.sanitize import neutral, one_line
from ragconfig.streams import open_closed_streams


def is_styled(stream: IO[str], environ: Mapping[str, str] = os.environ) -> bool:
    """Whether ANSI codes may be written to `stream`."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def is_unicode(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") in ("utf8", "utf16", "utf32", "utf8sig")


def prepare_streams() -> None:
    """UTF-8 on pipes, the terminal's own encoding on a terminal; what it lacks never stops the program."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # a test or an embedder may have put something simpler there
            encoding = None if stream.isatty() else "utf-8"
            cast(TextIOWrapper, stream).reconfigure(encoding=encoding, errors="backslashreplace")


@dataclass(frozen=True)
class Failure:
    """An exception as the user sees it. `code` is a stable upper-case word."""

    code: str
    message: str
    hint: str = ""


def leaf(error: BaseException) -> BaseException:
    """The error itself, where task groups have wrapped it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def describe(error: BaseException) -> Failure:
    """Any exception in words, with no secret in them; the traceback is for the log only."""
    from ragconfig.redaction import discreet

    found = _described(error)
    return Failure(found.code, discreet(found.message), discreet(found.hint))


def _described(error: BaseException) -> Failure:
    from ragchat.errors import RagChatError
    from ragconfig.settings import SettingsError
    from ragmcp.errors import RagMcpError

    error = leaf(error)
    if isinstance(error, RagChatError | RagMcpError):
        return Failure(_code_of(error), str(error), error.hint)
    if isinstance(error, SettingsError):
        return Failure("SETTINGS_INVALID", str(error), error.hint)
    if isinstance(error, OSError) and error.strerror:
        place = f": {error.filename}" if error.filename else ""
        return Failure("SYSTEM_ERROR", f"{error.strerror}{place}.")
    return Failure("INTERNAL_ERROR", f"Something went wrong inside ragchat: {type(error).__name__}: {error}")


def _code_of(error: Exception) -> str:
    """The word of what went wrong: the server's own word where it sent one."""
    return (
        getattr(error, "word", "")
        or getattr(error, "error_code", "")
        or str(getattr(error, "code", "FAILED"))
    )


class Console:
    """Where a command prints. `json`: the result is one JSON document, and so is a failure."""

    def __init__(
        self, *, json: bool = False, stdout: TextIO | None = None, stderr: TextIO | None = None
    ) -> None:
        self.json = json
        self._is_told = False  # the one document is out
        self.stdout = stdout or sys.stdout
        self.stderr = stderr or sys.stderr

    def print(self, text: str = "") -> None:
        """A piece of the result."""
        print(neutral(text), file=self.stdout, flush=True)

    def note(self, text: str) -> None:
        """Something to know that is not the result."""
        print(neutral(text), file=self.stderr, flush=True)

    def document(self, value: Any) -> None:
        """The result as JSON; structs and dataclasses become objects."""
        import json

        import msgspec

        plain = msgspec.to_builtins(value)
        text = json.dumps(plain, indent=2, ensure_ascii=not is_unicode(self.stdout))
        print(text, file=self.stdout, flush=True)
        self._is_told = True

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Columns side by side. On a terminal, lines are cut to its width; elsewhere nothing is cut."""
        cells = [[one_line(str(cell)) for cell in row] for row in (header, *rows)]
        widths = [max(_width(row[column]) for row in cells) for column in range(len(header))]
        for row in cells:
            padded = [cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
            self.line("  ".join(padded).rstrip())

    def line(self, text: str) -> None:
        """A line of a table: cut to the width of a terminal, whole elsewhere."""
        self.print(_cut(text, shutil.get_terminal_size().columns) if self.stdout.isatty() else text)

    def error(self, error: BaseException, log: object = None) -> None:
        """A failure: the JSON document `{error: {code, message, hint}}` on stdout, or lines on stderr."""
        failure = describe(error)
        if self._has_told(failure):
            return
        self.failure(failure)
        if failure.code == "INTERNAL_ERROR" and log:
            self.note(f"  The traceback is in {log}; with -v more is written there.")

    def failure(self, failure: Failure) -> None:
        """The lines of a failure."""
        self.note(f"ragchat: {failure.message}")
        if failure.hint:
            self.note(f"  {failure.hint}")

    def stopped(self) -> None:
        """The end of a run that the user wanted no more of."""
        self._has_told(Failure("STOPPED", "Stopped."))
        self.note("Stopped.")

    def _has_told(self, failure: Failure) -> bool:
        """Whether the failure is the document; it cannot be where another is out, or stdout takes none."""
        if not self.json or self._is_told:
            return False
        try:
            self.document({"error": failure})
        except OSError:
            return False
        return True


def _width(text: str) -> int:
    """The columns that `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _cut(text: str, columns: int) -> str:
    if _width(text) <= columns:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, max(0, columns - 3)).rstrip() + "..."
