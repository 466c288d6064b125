"""Lines out of bytes: the framing of stdio. Pure, and linear in time and memory.

Not JSON: a line may hold anything. An overlong line is not kept, only its two ends, which may name its id.
"""

from __future__ import annotations

from dataclasses import dataclass

END_BYTES = 256


@dataclass(frozen=True)
class Overlong:
    """A line that was skipped: its size in bytes without the newline, its first and its last bytes."""

    size: int
    head: bytes
    tail: bytes


class LineDecoder:
    """Cuts a stream at newlines; `limit` is the longest line in bytes that is handed on."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # Parts of the unfinished line. They are joined once, when its end has come: appending to one buffer
        # would copy a 64 MiB line a thousand times.
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """The lines that `data` completes, without their newlines; blank lines are left out."""
        first, *rest = data.split(b"\n")
        self._append(first)
        if not rest:
            return []
        lines: list[bytes | Overlong] = [self._finish()]
        last = rest.pop()
        for line in rest:
            lines.append(line if len(line) <= self.limit else _skipped(line))
        self._append(last)
        return [line for line in lines if isinstance(line, Overlong) or (line and not line.isspace())]

    def _append(self, part: bytes) -> None:
        if not part:
            return
        self._size += len(part)
        self._parts.append(part)
        if self._size > self.limit:
            joined = b"".join(self._parts)
            self._head = self._head or joined[:END_BYTES]
            self._parts = [joined[-END_BYTES:]]

    def _finish(self) -> bytes | Overlong:
        line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        size, head = self._size, self._head
        self._parts, self._size, self._head = [], 0, b""
        return Overlong(size, head, line) if size > self.limit else line


def _skipped(line: bytes) -> Overlong:
    return Overlong(len(line), line[:END_BYTES], line[-END_BYTES:])
