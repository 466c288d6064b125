"""Lines out of bytes: the framing of stdio. Pure, and linear in time and memory.

Not JSON: a line may hold anything. An overlong line is not kept, only its two ends, which may name its id.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

END_BYTES = 256

Line: TypeAlias = bytes | bytearray


class Overlong(Struct, frozen=True):
    """A line that was skipped: its size in bytes without the newline, its first and its last bytes."""

    size: int
    head: bytes
    tail: bytes


class LineDecoder:
    """Cuts a stream at newlines; `limit` is the longest line in bytes that is handed on."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # The unfinished line grows in place and is handed on as it is: at 64 MiB every copy is felt.
        self._partial = bytearray()
        self._size = 0
        self._head = b""

    def feed(self, data: bytes) -> list[Line | Overlong]:
        """The lines that `data` completes, without their newlines; blank lines are left out."""
        first, *whole = data.split(b"\n")
        if not whole:
            self._append(first)
            return []
        rest = whole.pop()
        lines: list[Line | Overlong] = [self._finish(first)]
        lines += [line if len(line) <= self.limit else _skipped(line) for line in whole]
        self._append(rest)
        return [line for line in lines if isinstance(line, Overlong) or (line and not line.isspace())]

    def end(self) -> list[Line | Overlong]:
        """The last line of a stream that ended without a newline."""
        return self.feed(b"\n")

    def _append(self, part: bytes) -> None:
        self._size += len(part)
        self._partial += part
        if len(self._head) < END_BYTES:
            self._head += part[: END_BYTES - len(self._head)]
        if self._size > self.limit:
            del self._partial[:-END_BYTES]

    def _finish(self, part: bytes) -> Line | Overlong:
        if not self._size:
            return part if len(part) <= self.limit else _skipped(part)
        self._append(part)
        line, size, head = self._partial, self._size, self._head
        self._partial, self._size, self._head = bytearray(), 0, b""
        return Overlong(size, head, bytes(line)) if size > self.limit else line


def _skipped(line: bytes) -> Overlong:
    return Overlong(len(line), line[:END_BYTES], line[-END_BYTES:])
