"""The event streams of a legacy session: each outlives the HTTP response that carries it.

A client whose response broke reconnects with the id of the last event it received, and gets the rest.
Source: 2025-11-25 basic/transports, "Resumability and Redelivery".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import anyio
from msgspec import Struct

from ragmcp.http.exchange import KEEP_ALIVE, ClientGone, Exchange, event


class _Sent(Struct, frozen=True):
    stream: int
    number: int
    event: bytes


class Replay:
    """The latest events of a session, on all its streams, within `limit()` bytes."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._size = 0
        self._last = 0
        self._events: deque[_Sent] = deque()

    def next_id(self, stream: int) -> str:
        """The id of the next event: the stream's number, and the event's within the session."""
        self._last += 1
        return f"{stream}-{self._last}"

    def store(self, stream: int, event: bytes) -> None:
        """Store the event with the last id given, and drop the oldest events over the limit."""
        self._events.append(_Sent(stream, self._last, event))
        self._size += len(event)
        limit = self._limit()
        while self._size > limit:
            self._size -= len(self._events.popleft().event)

    def after(self, stream: int, number: int) -> list[tuple[int, bytes]]:
        """The numbers and the bytes of the stream's events after event `number`."""
        return [
            (sent.number, sent.event)
            for sent in self._events
            if sent.stream == stream and sent.number > number
        ]


def parse_id(id: str) -> tuple[int, int]:
    """The stream's and the event's number. Raises ValueError."""
    stream, dash, number = id.partition("-")
    if not (dash and stream.isascii() and stream.isdigit() and number.isascii() and number.isdigit()):
        raise ValueError(id)
    return int(stream[:18]), int(number[:18])


class SessionStream:
    """One stream: its events are stored for replay, and sent at once while a response carries it.

    With `priming` its first event has no data; it only gives the client an id to resume from (SEP-1699).
    """

    def __init__(
        self,
        number: int,
        replay: Replay,
        on_begin: Callable[[SessionStream], None],
        *,
        priming: bool,
        retry_ms: int,
    ) -> None:
        """`on_begin` is called before the first event."""
        self.number = number
        self.begun = False
        self.ended = False
        self._replay = replay
        self._on_begin = on_begin
        self._priming = priming
        self._retry_ms = retry_ms
        self._exchange: Exchange | None = None
        self._carried: anyio.CancelScope | None = None

    @property
    def live(self) -> bool:
        """Whether a response carries the stream."""
        return self._exchange is not None

    @property
    def has_room(self) -> bool:
        """Whether a message can be sent without exceeding the limit of open event streams."""
        return self._exchange is None or self._exchange.may_stream

    @property
    def resumable(self) -> bool:
        """Whether the client reconnects after `pause`."""
        return self._priming

    # The response that carries it

    def carried_by(self, exchange: Exchange) -> bool:
        """Whether this response carries the stream."""
        return self._exchange is exchange

    def attach(self, exchange: Exchange, carried: anyio.CancelScope | None = None) -> None:
        """Let this response alone carry the stream; `carried` is cancelled when it no longer does."""
        self.release()
        self._exchange, self._carried = exchange, carried

    def detach(self, exchange: Exchange) -> None:
        """Note that the response has ended."""
        if self._exchange is exchange:
            self._exchange = self._carried = None

    def release(self) -> None:
        """Let no response carry the stream: a GET ends now, a POST with its answer."""
        if self._carried is not None:
            self._carried.cancel()
        self._exchange = self._carried = None

    # Messages

    async def send(self, line: bytes, *, last: bool = False) -> None:
        """Send one message; waits while the client does not read."""
        events = self._prime() + self._store(line)
        self.ended = last
        await self._write(events, last=last)

    async def keep_alive(self) -> None:
        """Send a comment or the priming event, unless that exceeds the limit of open event streams."""
        if self._exchange is not None and self._exchange.may_stream:
            await self._write(self._prime() or KEEP_ALIVE)

    async def pause(self) -> None:
        """End the response, not the stream: the client reconnects for the rest."""
        if self._exchange is not None:
            await self._write(self._prime() or b"retry: %d\n\n" % self._retry_ms, last=True)

    async def end(self) -> None:
        """End the stream."""
        self.ended = True
        await self._write(b"", last=True)

    def _prime(self) -> bytes:
        if self.begun:
            return b""
        self.begun = True
        self._on_begin(self)
        if not self._priming:
            return b""
        return b"id: %b\nretry: %d\ndata:\n\n" % (self._replay.next_id(self.number).encode(), self._retry_ms)

    def _store(self, line: bytes) -> bytes:
        sent = event(line, self._replay.next_id(self.number))
        self._replay.store(self.number, sent)
        return sent

    async def _write(self, events: bytes, *, last: bool = False) -> None:
        if (exchange := self._exchange) is None:
            return
        try:
            await exchange.write(events, last=last)
        except ClientGone:  # The client gets the rest when it reconnects.
            self.detach(exchange)
        finally:
            if last and self._exchange is exchange:
                self.release()

    async def catch_up(self, exchange: Exchange, seen: int, carried: anyio.CancelScope) -> None:
        """Send the events after number `seen`, then let the response carry the stream."""
        self.release()
        await exchange.write(KEEP_ALIVE)  # So that the response begins at once.
        while missed := self._replay.after(self.number, seen):
            seen = missed[-1][0]
            await exchange.write(b"".join(sent for _, sent in missed))
        if not self.ended:
            self.attach(exchange, carried)
