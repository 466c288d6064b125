"""The event streams of a legacy session: each outlives the HTTP response that carries it.

A client whose response broke reconnects with the id of the last event it received, and gets the rest.
Source: 2025-11-25 basic/transports, "Resumability and Redelivery".
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from msgspec import Struct, field

from ragmcp.errors import InvalidRequest
from ragmcp.http.exchange import KEEP_ALIVE, ClientGone, Exchange, event

# How many streams of a session can be resumed.
MAX_STREAMS = 100
_EVENT_ID = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


class Replay(Struct):
    """The streams of a session that can be resumed, and their latest events within `_limit()` bytes."""

    _limit: Callable[[], int]
    retry_ms: int
    _size: int = 0
    _last_event: int = 0
    _events: deque[tuple[int, int, bytes]] = field(default_factory=deque)  # stream, number, bytes
    _last_stream: int = 0
    _streams: dict[int, SessionStream] = {}

    def open_stream(self, *, priming: bool, standing: bool = False) -> SessionStream:
        """A new stream, as `SessionStream` describes it."""
        self._last_stream += 1
        return SessionStream(self._last_stream, self, priming, standing)

    def standing_stream(self) -> SessionStream:
        """The stream for messages that belong to no request: the newest one that has a response."""
        newest_first = [stream for stream in reversed(self._streams.values()) if stream.standing]
        return next((stream for stream in newest_first if stream.exchange), newest_first[0])

    def find(self, event_id: str) -> tuple[SessionStream, int]:
        """The stream of an event, and the event's number. Raises InvalidRequest."""
        found = _EVENT_ID.fullmatch(event_id)
        if found is None or int(found[1]) not in self._streams:
            raise InvalidRequest("the event of Last-Event-ID is no longer stored")
        return self._streams[int(found[1])], int(found[2])

    # For the streams

    def remember(self, stream: SessionStream) -> None:
        """Let a stream that begins be resumed, if need be instead of the oldest one without a response."""
        if len(self._streams) >= MAX_STREAMS:
            standing = [old for old in self._streams.values() if old.standing]
            ended = (old for old in self._streams.values() if not old.exchange and old not in standing[-1:])
            if oldest := next(ended, None):
                del self._streams[oldest.number]
        self._streams[stream.number] = stream

    def next_id(self, stream: int) -> str:
        """The id of the next event: the stream's number, and the event's within the session."""
        self._last_event += 1
        return f"{stream}-{self._last_event}"

    def store(self, stream: int, message: bytes) -> bytes:
        """Store a message as the stream's next event, which is returned; drop the oldest over the limit."""
        sent = event(message, self.next_id(stream))
        self._events.append((stream, self._last_event, sent))
        self._size += len(sent)
        limit = self._limit()
        while self._size > limit:
            self._size -= len(self._events.popleft()[2])
        return sent

    def after(self, stream: int, number: int) -> list[tuple[int, bytes]]:
        """The numbers and the bytes of the stream's events after event `number`."""
        return [(sent, event) for of, sent, event in self._events if of == stream and sent > number]


class SessionStream(Struct, eq=False):
    """One stream: its events are stored for replay, and sent at once while a response carries it."""

    number: int
    _replay: Replay
    _priming: bool
    """Whether its first event has no data, but gives the client an id to resume from (SEP-1699)."""
    standing: bool
    """Whether it belongs to no request."""
    exchange: Exchange | None = None
    """The response that carries it."""
    begun: bool = False
    _ended: bool = False

    @property
    def has_room(self) -> bool:
        """Whether a message can be sent without exceeding the limit of open event streams."""
        return self.exchange is None or self.exchange.may_stream

    # The response that carries it

    def attach(self, exchange: Exchange) -> None:
        """Let this response alone carry the stream."""
        self.release()
        self.exchange = exchange

    def detach(self, exchange: Exchange) -> None:
        """Note that the response has ended."""
        if self.exchange is exchange:
            self.exchange = None

    def release(self) -> None:
        """Let no response carry the stream: a GET ends now, a POST with its answer."""
        if self.exchange is not None and self.exchange.method == "GET":
            self.exchange.scope.cancel()
        self.exchange = None

    # Messages

    async def send(self, line: bytes, *, last: bool = False) -> None:
        """Send one message, or none (b"") if it is the `last`; waits while the client does not read."""
        events = self._prime() + self._replay.store(self.number, line) if line else b""
        self._ended = last
        await self._write(events, last=last)

    async def keep_alive(self) -> None:
        """Send a comment or the priming event, unless that exceeds the limit of open event streams."""
        if self.exchange is not None and self.exchange.may_stream:
            await self._write(self._prime() or KEEP_ALIVE)

    async def pause(self) -> None:
        """End the response, not the stream, if the client will reconnect for the rest."""
        if self._priming and self.exchange is not None:
            await self._write(self._prime() or b"retry: %d\n\n" % self._replay.retry_ms, last=True)

    async def catch_up(self, exchange: Exchange, seen: int) -> None:
        """Send the events after number `seen`, then let the response carry the stream."""
        self.release()
        await exchange.write(KEEP_ALIVE)  # So that the response begins at once.
        while missed := self._replay.after(self.number, seen):
            seen = missed[-1][0]
            await exchange.write(b"".join(sent for _, sent in missed))
        if not self._ended:
            self.attach(exchange)

    def _prime(self) -> bytes:
        if self.begun:
            return b""
        self.begun = True
        self._replay.remember(self)
        if not self._priming:
            return b""
        id = self._replay.next_id(self.number).encode()
        return b"id: %b\nretry: %d\ndata:\n\n" % (id, self._replay.retry_ms)

    async def _write(self, events: bytes, *, last: bool = False) -> None:
        if (exchange := self.exchange) is None:
            return
        try:
            await exchange.write(events, last=last)
        except ClientGone:  # The client gets the rest when it reconnects.
            self.detach(exchange)
        finally:
            if last and self.exchange is exchange:
                self.release()
