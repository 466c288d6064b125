"""One legacy session over HTTP: its connection, its streams, and the channel back to its client."""

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
from ragmcp.protocol.connection import Answered, Cancelled, Connection, Reply, Unusable
from ragmcp.protocol.eras import ConnectionState
from ragmcp.protocol.jsonrpc import Id, Request

log = logging.getLogger(__name__)

# 192 bits.
ID_BYTES = 24
# Older clients do not accept an event without data. (SEP-1699)
PRIMING_SINCE = "2025-11-25"
# How many streams of a session can be resumed.
MOST_STREAMS = 100


class HttpSession:
    """One session: its connection, its streams and its running requests."""

    def __init__(self, limits: HttpLimits, client: str, replay_limit: Callable[[], int]) -> None:
        """`client` is the address that begins it; `replay_limit` the bytes of events it may store now."""
        self.id = secrets.token_urlsafe(ID_BYTES)
        self.client = client
        self.used = False
        self.state = ConnectionState()
        self.connection: Connection[Waiter] = Connection(
            limits.message_bytes, refuses=True, most=SESSION_REQUESTS
        )
        self.closed = anyio.Event()
        self.running: dict[Id, anyio.CancelScope] = {}
        self.listening = False
        # Cancelled to send the client no more notifications of changes.
        self.forwarding = anyio.CancelScope()
        # The open exchanges; without any the session is idle.
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
        """Whether an exchange is open."""
        return bool(self.exchanges)

    def take(self, body: bytes) -> tuple[list[Request], list[bytes]]:
        """The requests in a body, and the answers to its unusable messages. Handles all other messages."""
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
                case Unusable(error):
                    log.info("Ignored a message of a client: %s", error)
        return requests, replies

    def close_exchange(self, exchange: Exchange) -> None:
        """Remove an exchange that is answered, or whose client has disconnected."""
        self.exchanges.discard(exchange)
        self.used_at = anyio.current_time()

    def leave(self) -> None:
        """Send no more requests and notifications; running requests go on."""
        self.closed.set()
        self.forwarding.cancel()
        for waiter in self.connection.close():
            waiter.done.set()
        for scope in self._gets:
            scope.cancel()

    def close(self) -> None:
        """Cancel everything in the session."""
        self.leave()
        for scope in self.running.values():
            scope.cancel()

    # Streams

    @contextmanager
    def open_get(self) -> Iterator[anyio.CancelScope]:
        """The scope of a GET: cancelled when its stream gets another response, or the session ends."""
        with anyio.CancelScope() as scope:
            self._gets.add(scope)
            try:
                yield scope
            finally:
                self._gets.discard(scope)

    def open_stream(self, *, standing: bool = False) -> SessionStream:
        """A new stream; the `standing` ones belong to no request."""
        self._last_stream += 1
        priming = self.state.terms is not None and self.state.terms.revision >= PRIMING_SINCE
        stream = SessionStream(
            self._last_stream, self._replay, self._remember, priming=priming, retry_ms=self._limits.retry_ms
        )
        if standing:
            self._standing.append(stream)
        return stream

    def _remember(self, stream: SessionStream) -> None:
        if len(self._streams) >= MOST_STREAMS:
            current = self._standing[-1:]
            ended = [old for old in self._streams.values() if not old.live and old not in current]
            for old in ended[:1]:
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
            raise InvalidRequest("the event of Last-Event-ID is no longer stored") from None

    def standing_stream(self) -> SessionStream:
        """The stream for messages that belong to no request: the newest one that has a response."""
        return next((stream for stream in reversed(self._standing) if stream.live), self._standing[-1])


class SessionChannel:
    """The channel to a session's client, on one of its streams."""

    def __init__(self, session: HttpSession, stream: Callable[[], SessionStream]) -> None:
        self.closed = session.closed
        self._connection = session.connection
        self._stream = stream

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification, unless that exceeds the limit of event streams; waits while none is read."""
        stream = self._stream()
        if stream.has_room:
            await stream.send(jsonrpc.encode_notification(method, params))

    async def request(self, method: str, params: Any, timeout: float | None = None) -> Raw:
        """Send the client a request; its answer comes with another POST. Raises as `Channel.request`."""
        if self.closed.is_set():
            raise ConnectionClosed(method)
        waiter = Waiter()
        id, line = self._connection.ask(method, params, waiter)
        try:
            with anyio.move_on_after(timeout) as clock:
                await self._stream().send(line)
                await waiter.done.wait()
            if clock.cancelled_caught:
                waiter.outcome = TimeoutError()
        finally:
            if line := self._connection.abandon(id):
                with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                    await self._stream().send(line)
        return waiter.result(method, timeout)

    async def pause(self) -> None:
        """End the response, if the client will reconnect for the rest."""
        if self._stream().resumable:
            await self._stream().pause()
