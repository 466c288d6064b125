"""The event streams of a legacy session: each outlives the response that carries it.

A client that lost its response, or was sent away, comes back with the id of the last event it saw, and hears
the rest. Source: 2025-11-25 basic/transports, "Resumability and Redelivery".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import anyio
from msgspec import Struct

from ragmcp.http.exchange import KEEP_ALIVE, ClientGone, Exchange, event


class _Said(Struct, frozen=True):
    stream: int
    number: int
    event: bytes


class Replay:
    """What a session said lately, on all its streams: the latest that fits into `limit()` bytes."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._size = 0
        self._last = 0
        self._said: deque[_Said] = deque()

    def next_id(self, stream: int) -> str:
        """The id of the next event: the stream's number, and the event's within the session."""
        self._last += 1
        return f"{stream}-{self._last}"

    def keep(self, stream: int, event: bytes) -> None:
        """Remember the event that got the last id."""
        self._said.append(_Said(stream, self._last, event))
        self._size += len(event)
        limit = self._limit()
        while self._size > limit:
            self._size -= len(self._said.popleft().event)

    def after(self, stream: int, number: int) -> list[tuple[int, bytes]]:
        """The stream's events after that one: their numbers, and themselves."""
        return [
            (said.number, said.event) for said in self._said if said.stream == stream and said.number > number
        ]


def parse_id(id: str) -> tuple[int, int]:
    """The stream's and the event's number. Raises ValueError."""
    stream, dash, number = id.partition("-")
    if not (dash and stream.isascii() and stream.isdigit() and number.isascii() and number.isdigit()):
        raise ValueError(id)
    return int(stream[:18]), int(number[:18])


class SessionStream:
    """One stream: what is said on it is kept, and goes out at once while there is a response to carry it.

    `priming` says whether clients of this revision know events without data: then the first one is such, so
    that they have an id to come back with.
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
        """Whether somebody listens."""
        return self._exchange is not None

    @property
    def has_room(self) -> bool:
        """Whether what is said now needs no event stream for which there is no room."""
        return self._exchange is None or self._exchange.may_stream

    @property
    def resumable(self) -> bool:
        """Whether its client comes back when it is sent away."""
        return self._priming

    # Who carries it

    def carried_by(self, exchange: Exchange) -> bool:
        """Whether it is this response."""
        return self._exchange is exchange

    def attach(self, exchange: Exchange, carried: anyio.CancelScope | None = None) -> None:
        """From now on this response carries it, and no other; `carried` is cancelled when that has ended."""
        self.release()
        self._exchange, self._carried = exchange, carried

    def detach(self, exchange: Exchange) -> None:
        """That response is gone."""
        if self._exchange is exchange:
            self._exchange = self._carried = None

    def release(self) -> None:
        """No response carries it any more: a GET ends that did, a POST ends with its answer."""
        if self._carried is not None:
            self._carried.cancel()
        self._exchange = self._carried = None

    # What is said

    async def say(self, line: bytes, *, last: bool = False) -> None:
        """One message; waits while the client does not read."""
        said = self._prime() + self._keep(line)
        self.ended = last
        await self._write(said, last=last)

    async def keep_alive(self) -> None:
        """Show that there is life, and where to come back to; if there is room for one more stream."""
        if self._exchange is not None and self._exchange.may_stream:
            await self._write(self._prime() or KEEP_ALIVE)

    async def pause(self) -> None:
        """End the response, not the stream: the client comes back for the rest."""
        if self._exchange is not None:
            await self._write(self._prime() or b"retry: %d\n\n" % self._retry_ms, last=True)

    async def end(self) -> None:
        """Nothing more will be said."""
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

    def _keep(self, line: bytes) -> bytes:
        said = event(line, self._replay.next_id(self.number))
        self._replay.keep(self.number, said)
        return said

    async def _write(self, said: bytes, *, last: bool = False) -> None:
        if (exchange := self._exchange) is None:
            return
        try:
            await exchange.write(said, last=last)
        except ClientGone:  # What it missed it hears when it comes back.
            self.detach(exchange)
        finally:
            if last and self._exchange is exchange:
                self.release()

    async def catch_up(self, exchange: Exchange, seen: int, carried: anyio.CancelScope) -> None:
        """Send what came after the event `seen`, and carry on from there."""
        self.release()
        await exchange.write(KEEP_ALIVE)  # The client knows at once that it is heard.
        while missed := self._replay.after(self.number, seen):
            seen = missed[-1][0]
            await exchange.write(b"".join(said for _, said in missed))
        if not self.ended:
            self.attach(exchange, carried)
