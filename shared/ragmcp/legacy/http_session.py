"""One legacy session over HTTP: its connection, its streams, and the way back to its client."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from msgspec import Raw

from ragmcp.errors import ConnectionClosed, InvalidRequest
from ragmcp.http.exchange import Exchange
from ragmcp.http.limits import SESSION_REQUESTS, HttpLimits
from ragmcp.legacy.replay import Replay, SessionStream, parse_id
from ragmcp.peer import Waiter
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.connection import Answered, Cancelled, Connection, Garbage, Reply
from ragmcp.protocol.eras import Session
from ragmcp.protocol.jsonrpc import Id, Request

log = logging.getLogger(__name__)

# 192 bits.
ID_BYTES = 24
# From here on clients know an event without data, which only tells where to come back to. (SEP-1699)
PRIMING_SINCE = "2025-11-25"
# How many streams of a session can be come back to.
STREAMS_KEPT = 100


class HttpSession:
    """One session: its connection, its streams, and what is being answered in it."""

    def __init__(self, limits: HttpLimits, client: str, replay_limit: Callable[[], int]) -> None:
        """`client` is the address that begins it; `replay_limit` the bytes of events it may keep just now."""
        self.id = secrets.token_urlsafe(ID_BYTES)
        self.client = client
        self.used = False
        self.state = Session()
        self.connection: Connection[Waiter] = Connection(
            limits.message_bytes, refuses=True, most=SESSION_REQUESTS
        )
        self.closed = anyio.Event()
        self.running: dict[Id, anyio.CancelScope] = {}
        self.listening = False
        self.told = anyio.CancelScope()
        # Whose clients are there; while there are none it is idle.
        self.exchanges: set[Exchange] = set()
        self.used_at = anyio.current_time()
        self._limits = limits
        self._replay = Replay(replay_limit)
        self._streams: dict[int, SessionStream] = {}
        self._last_stream = 0
        self._standing: list[SessionStream] = []
        self._gets: set[anyio.CancelScope] = set()

    @property
    def busy(self) -> bool:
        """Whether a client is being answered or listens."""
        return bool(self.exchanges)

    def take(self, body: bytes) -> tuple[list[Request], list[bytes]]:
        """The requests in a body, and the answers to what is unusable in it; what else there is, is done."""
        requests, replies = [], []
        for event in self.connection.receive_message(body):
            match event:
                case Request(id):
                    self.running[id] = anyio.CancelScope()
                    requests.append(event)
                case Reply(line):
                    replies.append(line)
                case Answered(waiter, outcome):
                    waiter.outcome = outcome
                    waiter.done.set()
                case Cancelled(id):
                    self.running[id].cancel()
                case Garbage(error):
                    log.info("Ignored what a client sent: %s", error)
        return requests, replies

    def part(self, exchange: Exchange) -> None:
        """That client is gone, or answered."""
        self.exchanges.discard(exchange)
        self.used_at = anyio.current_time()

    def leave(self) -> None:
        """Ask and tell nothing more; what is being answered goes on."""
        self.closed.set()
        self.told.cancel()
        for waiter in self.connection.close():
            waiter.done.set()
        for scope in self._gets:
            scope.cancel()

    def close(self) -> None:
        """End everything in it."""
        self.leave()
        for scope in self.running.values():
            scope.cancel()

    # Streams

    @contextmanager
    def hearing(self) -> Iterator[anyio.CancelScope]:
        """What a GET does, whatever it is at: cancelled when it is to end, or its session does."""
        with anyio.CancelScope() as scope:
            self._gets.add(scope)
            try:
                yield scope
            finally:
                self._gets.discard(scope)

    def open_stream(self, *, standing: bool = False) -> SessionStream:
        """A new stream; a `standing` one belongs to no request."""
        self._last_stream += 1
        priming = self.state.terms is not None and self.state.terms.revision >= PRIMING_SINCE
        stream = SessionStream(
            self._last_stream, self._replay, self._keep, priming=priming, retry_ms=self._limits.retry_ms
        )
        if standing:
            self._standing.append(stream)
        return stream

    def _keep(self, stream: SessionStream) -> None:
        if len(self._streams) >= STREAMS_KEPT:
            news = self._standing[-1:]
            gone = [old for old in self._streams.values() if not old.live and old not in news]
            for old in gone[:1]:
                del self._streams[old.number]
                if old in self._standing:
                    self._standing.remove(old)
        self._streams[stream.number] = stream

    def find_stream(self, event_id: str) -> tuple[SessionStream, int]:
        """The stream of an event, and the event's number. Raises InvalidRequest."""
        try:
            stream, number = parse_id(event_id)
            return self._streams[stream], number
        except (ValueError, KeyError):
            raise InvalidRequest("the event of Last-Event-ID is not known any more") from None

    def for_news(self) -> SessionStream:
        """The one stream for what belongs to no request: the latest that somebody hears."""
        return next((stream for stream in reversed(self._standing) if stream.live), self._standing[-1])


class SessionChannel:
    """The way back to a session's client, on one of its streams."""

    def __init__(self, session: HttpSession, stream: Callable[[], SessionStream]) -> None:
        self.closed = session.closed
        self._connection = session.connection
        self._stream = stream

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification, if there is room for it; waits while the client listens but does not read."""
        stream = self._stream()
        if stream.has_room:
            await stream.say(jsonrpc.encode_notification(method, params))

    async def request(self, method: str, params: Any, timeout: float | None = None) -> Raw:
        """Ask the client; its answer comes with another POST. Raises what `Channel.request` says."""
        if self.closed.is_set():
            raise ConnectionClosed(method)
        waiter = Waiter()
        id, line = self._connection.ask(method, params, waiter)
        try:
            with anyio.move_on_after(timeout) as clock:
                await self._stream().say(line)
                await waiter.done.wait()
            if clock.cancelled_caught:
                waiter.outcome = TimeoutError()
        finally:
            if line := self._connection.abandon(id):
                with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                    await self._stream().say(line)
        return waiter.result(method, timeout)

    async def pause(self) -> None:
        """Let the response end and the client come back for the rest, if it is one that does."""
        if self._stream().resumable:
            await self._stream().pause()
