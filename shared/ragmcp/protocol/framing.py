"""Split bytes into pieces: lines (stdio) and events (SSE). Pure, and linear in time and memory.

Of an overlong line only the first and last bytes are kept, because they may contain its id.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct, field

from ragmcp.errors import MessageTooLarge

END_BYTES = 256
# The longest message read unless a program sets another limit: a 64 MiB document, escaped as JSON, must fit.
MESSAGE_BYTES = 2**28

Line: TypeAlias = bytes | bytearray


class Overlong(Struct, frozen=True):
    """A skipped line: its size in bytes without its terminator, its first and its last bytes."""

    size: int
    head: bytes
    tail: bytes


class _Growing(Struct):
    """The piece received so far; beyond `limit` bytes only its two ends."""

    limit: int
    # It grows in place and is returned without a copy: copying 64 MiB takes noticeable time.
    kept: bytearray = field(default_factory=bytearray)
    size: int = 0
    _head: bytes = b""

    def append(self, part: Line) -> None:
        self.size += len(part)
        self.kept += part
        if len(self._head) < END_BYTES:
            self._head += part[: END_BYTES - len(self._head)]
        if self.size > self.limit:
            del self.kept[:-END_BYTES]

    def take(self) -> bytearray | Overlong:
        """The whole piece. The next `append` begins another one."""
        kept, size, head = self.kept, self.size, self._head
        self.kept, self.size, self._head = bytearray(), 0, b""
        return Overlong(size, head, bytes(kept)) if size > self.limit else kept


class LineDecoder:
    """Splits a stream at newlines. Longer lines than `limit` bytes become `Overlong`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.partial = _Growing(limit)
        """The line that has no end yet."""

    def feed(self, data: bytes) -> list[Line | Overlong]:
        """The lines that `data` completes, without their newlines; blank lines are left out.

        A newline completes the last line of a stream that ended without one.
        """
        *parts, rest = data.split(b"\n")
        lines = [self._finish(part) for part in parts]
        self.partial.append(rest)
        return [line for line in lines if isinstance(line, Overlong) or (line and not line.isspace())]

    def _finish(self, part: bytes) -> Line | Overlong:
        if not self.partial.size and len(part) <= self.limit:
            return part  # The usual case, without a copy.
        self.partial.append(part)
        return self.partial.take()


class ServerEvent(Struct, frozen=True):
    """One event of a stream that a server sends."""

    data: bytearray
    type: str = "message"


class EventDecoder:
    """Splits an event stream (text/event-stream) into events; `limit` is the most bytes of data of one.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
    """

    def __init__(self, limit: int, resumes: EventDecoder | None = None) -> None:
        """`resumes` is the decoder of the broken stream that this one continues."""
        self.last_id: str = resumes.last_id if resumes else ""
        """The id to resume a broken stream from; "" if it cannot be resumed."""
        self.retry_ms: int | None = resumes.retry_ms if resumes else None
        """How long the server asks the client to wait before that."""
        self._line = _Growing(limit + END_BYTES)  # Room for the name of the field.
        self._data = _Growing(limit)
        self._has_data = False
        self._type = ""
        self._id = self.last_id
        self._began = False
        self._after_return = False

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that `data` completes. Those without data, and comments, are left out.

        Raises MessageTooLarge; the rest of `data` is lost then.
        """
        if not data:
            return []
        if self._after_return and data[:1] == b"\n":
            data = data[1:]
        self._after_return = data[-1:] == b"\r"
        events = []
        for part in data.splitlines(keepends=True):
            ended = part[-1:] in (b"\n", b"\r")
            self._line.append(part.rstrip(b"\r\n") if ended else part)
            if ended and (event := self._take(self._line.take())):
                events.append(event)
        return events

    def _take(self, line: bytearray | Overlong) -> ServerEvent | None:
        if isinstance(line, Overlong):
            if line.head.startswith(b"data:"):
                self._begin_data()
                self._data.size += line.size
            return None
        if not self._began:
            self._began = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._dispatch()
        name, colon, _ = bytes(line[:END_BYTES]).partition(b":")
        del line[: len(name + colon)]
        if line[:1] == b" ":
            del line[:1]
        self._field(name, line)
        return None

    def _field(self, name: bytes, value: bytearray) -> None:
        match name:
            case b"data":
                self._begin_data()
                self._data.append(value)
            case b"event":
                self._type = value.decode(errors="replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode(errors="replace")
            case b"retry" if value.isdigit() and len(value) < 10:
                self.retry_ms = int(value)

    def _begin_data(self) -> None:
        if self._has_data:
            self._data.append(b"\n")
        self._has_data = True

    def _dispatch(self) -> ServerEvent | None:
        self.last_id = self._id
        type, self._type, self._has_data = self._type, "", False
        data = self._data.take()
        if isinstance(data, Overlong):
            raise MessageTooLarge(data.size, self._data.limit)
        return ServerEvent(data, type or "message") if data else None
