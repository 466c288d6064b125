"""Printing for commands: results on stdout, everything else on stderr.

Colour, width and encoding are decided here, and exceptions become sentences here, for the chat as well.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import TextIOWrapper
from typing import IO, Any, TextIO, cast

from ragchat.sanitize import one_line, sanitize, visible_json
from ragcommon.streams import open_closed_streams


def is_dumb(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal understands no ANSI codes, as rich and prompt_toolkit see it."""
    return environ.get("TERM", "").lower() in ("dumb", "unknown")


def is_styled(stream: IO[str], environ: Mapping[str, str] = os.environ) -> bool:
    """Whether ANSI codes may be written to `stream`."""
    return stream.isatty() and not environ.get("NO_COLOR") and not is_dumb(environ)


def is_unicode(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") in ("utf8", "utf16", "utf32", "utf8sig")


class _Remarks(TextIOWrapper):
    """stderr: what a full disk does not take is lost, so that the result on stdout is not."""

    def write(self, text: str, /) -> int:
        with _unless_full():
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with _unless_full():
            super().flush()


@contextmanager
def _unless_full() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def prepare_streams() -> None:
    """Write UTF-8 to pipes and the terminal's encoding to terminals; escape what cannot be encoded."""
    open_closed_streams()
    opened = sys.__stderr__  # It stays usable, with the same buffer.
    if sys.stderr is opened and isinstance(opened, TextIOWrapper):  # not replaced, as by a test
        sys.stderr = _Remarks(
            opened.buffer, opened.encoding, line_buffering=True, write_through=opened.write_through
        )
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # replaced by a simpler object, in a test
            written = None if stream.isatty() else "utf-8"
            cast(TextIOWrapper, stream).reconfigure(encoding=written, errors="backslashreplace")


@dataclass(frozen=True)
class Failure:
    """An exception as the user sees it. `code` is a stable upper-case word."""

    code: str
    message: str
    hint: str = ""


def describe(error: BaseException) -> Failure:
    """Describe any exception in a sentence without secrets. The traceback goes to the log only."""
    from ragconfig.redaction import redacted

    found = _described(error)
    return Failure(found.code, redacted(found.message), redacted(found.hint))


def _described(error: BaseException) -> Failure:
    from ragcommon.errors import StructuredError, leaf, of_the_system
    from ragmcp.errors import RagMcpError

    error = of_the_system(error) or leaf(error)
    if isinstance(error, StructuredError | RagMcpError):
        return Failure(_code_of(error), str(error), error.hint)
    return Failure("INTERNAL_ERROR", f"Something went wrong inside ragchat: {type(error).__name__}: {error}")


def _code_of(error: Exception) -> str:
    """The code of an error: the server's code if it sent one."""
    return (
        getattr(error, "word", "")
        or getattr(error, "error_code", "")
        or str(getattr(error, "code", "FAILED"))
    )


class Console:
    """Prints for one command. With `json`, the result or the failure is one JSON document on stdout."""

    def __init__(
        self, *, json: bool = False, stdout: TextIO | None = None, stderr: TextIO | None = None
    ) -> None:
        self.json = json
        self.lines = False  # with `json`: any number of documents, each on one line
        self._printed_document = False
        self.stdout = stdout or sys.stdout
        self.stderr = stderr or sys.stderr

    def print(self, text: str = "") -> None:
        """Print a piece of the result."""
        print(sanitize(text), file=self.stdout, flush=True)

    def note(self, text: str) -> None:
        """Print a remark that is not part of the result."""
        print(sanitize(text), file=self.stderr, flush=True)

    def document(self, value: Any, failure: Failure | None = None) -> None:
        """Print the result as JSON; structs and dataclasses become objects.

        `failure` becomes the key `error` of the result, for a command that has a result and failed.
        """
        import json

        import msgspec

        plain = msgspec.to_builtins(value)
        if failure is not None:
            plain["error"] = msgspec.to_builtins(failure)
        indent = None if self.lines else 2
        text = json.dumps(plain, indent=indent, ensure_ascii=not is_unicode(self.stdout))
        print(visible_json(text) if self.stdout.isatty() else text, file=self.stdout, flush=True)
        self._printed_document = not self.lines

    def result(
        self,
        value: Any,
        *lines: str,
        empty: str = "",
        notes: Sequence[str] = (),
        failure: Failure | None = None,
    ) -> int:
        """Print the result: `value` with `failure` as JSON; or the lines and the notes.

        Without lines, `empty` is the first note. Returns the exit code.
        """
        if self.json:
            self.document(value, failure)
        else:
            for line in lines:
                self.print(line)
            for note in (*([empty] if empty and not lines else []), *notes):
                self.note(note)
        return 1 if failure else 0

    def listing(
        self,
        value: Any,
        header: Sequence[str],
        rows: Sequence[Sequence[object]],
        empty: str = "",
        notes: Sequence[str] = (),
        failure: Failure | None = None,
    ) -> int:
        """Print a table as the result: see `result`. Without rows, but with `empty`, it has no header."""
        lines = self.aligned(header, rows) if not self.json and (rows or not empty) else []
        return self.result(value, *lines, empty=empty, notes=notes, failure=failure)

    def aligned(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
        """The lines of a table."""
        cells = [[one_line(str(cell)) for cell in row] for row in (header, *rows)]
        widths = [max(_width(row[column]) for row in cells) for column in range(len(header))]
        padded = (
            [cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
            for row in cells
        )
        return [self._fit("  ".join(row).rstrip()) for row in padded]

    def line(self, text: str) -> None:
        """Print a line of a table."""
        self.print(self._fit(text))

    def _fit(self, text: str) -> str:
        """A line of a table, cut to the width of a terminal; elsewhere nothing is cut."""
        return _cut(text, shutil.get_terminal_size().columns) if self.stdout.isatty() else text

    def error(self, error: BaseException, log: object = None) -> None:
        """Print a failure: the document `{error: {code, message, hint}}` on stdout, or lines on stderr."""
        failure = describe(error)
        if self._print_failure_document(failure):
            return
        self.failure(failure)
        if failure.code == "INTERNAL_ERROR" and log:
            self.note(f"  The traceback is in {log}; -v logs more.")

    def failure(self, failure: Failure) -> None:
        """Print a failure and its hint on stderr."""
        self.note(f"ragchat: {failure.message}")
        if failure.hint:
            self.note(f"  {failure.hint}")

    def stopped(self) -> None:
        """Print that a signal ended the command."""
        self._print_failure_document(Failure("STOPPED", "Stopped."))
        self.note("Stopped.")

    def _print_failure_document(self, failure: Failure) -> bool:
        """Print a failure as the document, if there is none yet and stdout works. Returns whether it did."""
        if not self.json or self._printed_document:
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
