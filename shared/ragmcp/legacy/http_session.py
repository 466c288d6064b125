"""One legacy session over HTTP: its requests, its streams, and the channel back to its client.

A lost response does not cancel the call: it goes on, and the client gets the rest with a GET.
Source: 2025-11-25 basic/transports, "Streamable HTTP".
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
from msgspec import Raw

from ragmcp.errors import ConnectionClosed
from ragmcp.http.dispatch import ClientWatch, Dispatcher
from ragmcp.http.errors import HeaderMismatch, HttpError
from ragmcp.http.exchange import Exchange
from ragmcp.http.limits import SESSION_REQUESTS
from ragmcp.legacy.replay import Replay, SessionStream
from ragmcp.legacy.server import forward_changes
from ragmcp.peer import Waiter
from ragmcp.protocol import headers, jsonrpc
from ragmcp.protocol.connection import Answered, Cancelled, Connection, Reply, Unusable
from ragmcp.protocol.eras import LATEST_MODERN, ConnectionState, Era
from ragmcp.protocol.jsonrpc import Id, Request
from ragmcp.server.call import Call

log = logging.getLogger(__name__)

# 192 bits.
ID_BYTES = 24
# Clients of earlier revisions reject an event without data (SEP-1699).
PRIMING_SINCE = "2025-11-25"


class HttpSession:
    """One session: its connection, its streams, and its open exchanges, without which it is idle."""

    def __init__(self, dispatcher: Dispatcher, begun_by: Exchange, replay_limit: Callable[[], int]) -> None:
        """`replay_limit` is how many bytes of events it may store now."""
        limits = dispatcher.limits
        self.id = secrets.token_urlsafe(ID_BYTES)
        self.client = begun_by.client
        self.user = begun_by.user
        self.used = False
        """Whether a request or a GET followed its handshake."""
        self.used_at = anyio.current_time()
        self.exchanges: set[Exchange] = set()
        self.state = ConnectionState(secrets.token_hex(4), begun_by.host)
        self.connection: Connection[Waiter] = Connection(
            limits.message_bytes, refuses=True, max_in_progress=SESSION_REQUESTS
        )
        self.closed = anyio.Event()
        self._dispatcher = dispatcher
        self._replay = Replay(replay_limit, limits.retry_ms)
        self._running: dict[Id, anyio.CancelScope] = {}
        # The client gets changes from its first GET until the scope is cancelled.
        self._forwarding: anyio.CancelScope | None = None

    @contextmanager
    def _open(self, exchange: Exchange) -> Iterator[None]:
        self.exchanges.add(exchange)
        try:
            yield
        finally:
            self._close(exchange)

    def _close(self, exchange: Exchange) -> None:
        self.exchanges.discard(exchange)
        self.used_at = anyio.current_time()

    def leave(self) -> None:
        """Send no more requests and notifications; running requests go on."""
        self.closed.set()
        if self._forwarding is not None:
            self._forwarding.cancel()
        for waiter in self.connection.close():
            waiter.done.set()
        for exchange in self.exchanges:
            if exchange.method == "GET":
                exchange.scope.cancel()

    def end(self) -> None:
        """Cancel everything in the session."""
        self.leave()
        for scope in self._running.values():
            scope.cancel()

    # GET

    async def listen(self, exchange: Exchange) -> None:
        """Open a stream: a standing one, or with Last-Event-ID the rest of an earlier one.

        Raises InvalidRequest for an event that is no longer stored.
        """
        self.used = True
        with self._open(exchange):
            if (last_seen := exchange.header(headers.LAST_EVENT_ID)) is not None:
                stream, number = self._replay.find(last_seen)
                await stream.catch_up(exchange, number)
            else:
                stream = self._replay.open_stream(priming=self._primes, standing=True)
                stream.attach(exchange)
                if self._forwarding is None:
                    self._forwarding = anyio.CancelScope()
                    self._dispatcher.tasks.start_soon(self._forward_changes, self._forwarding)
                await stream.keep_alive()
            silence = self._dispatcher.limits.keep_alive_seconds
            try:
                while stream.exchange is exchange and not await exchange.gone_within(silence):
                    await stream.keep_alive()
            finally:
                stream.detach(exchange)
            await exchange.finish()

    @property
    def _primes(self) -> bool:
        return self.state.terms is not None and self.state.terms.revision >= PRIMING_SINCE

    async def _forward_changes(self, scope: anyio.CancelScope) -> None:
        channel = SessionChannel(self, self._replay.standing_stream)
        with scope:
            try:
                await forward_changes(self._dispatcher.server.broadcast, self.state, channel)
            except Exception:  # One session must not end the others' tasks.
                log.exception("Forwarding changes to a session failed")

    # POST

    async def answer(self, exchange: Exchange, body: bytes) -> None:
        """Handle the messages of a body, and answer its requests."""
        with self._open(exchange):
            begun = self.state.terms is not None
            requests, replies = self._take(body)
            self.used |= begun and bool(requests)
            if not requests:
                await exchange.answer(400 if replies else 202, b"".join(replies))
                return
            stream = self._replay.open_stream(priming=self._primes)
            stream.attach(exchange)

            def gone() -> None:
                stream.detach(exchange)
                self._close(exchange)

            watch = ClientWatch(self._dispatcher, exchange, gone, stream.keep_alive)
            # The last answer of a batch completes the line of the whole batch.
            answers: list[tuple[int, bytes]] = []

            async def handle(request: Request) -> None:
                answers.append(await self._handle(watch, stream, request))

            if len(requests) == 1:
                await handle(requests[0])
            else:
                async with anyio.create_task_group() as tasks:
                    for request in requests:
                        tasks.start_soon(handle, request)
            self.connection.batches = self.state.batches
            statuses, lines = zip(*answers, strict=True)
            await self._send(exchange, stream, max(statuses), b"".join(lines))

    def _take(self, body: bytes) -> tuple[list[Request], list[bytes]]:
        """The requests in a body, and the answers to its unusable messages. Handles all other messages."""
        requests, replies = [], []
        for event in self.connection.receive_message(body):
            match event:
                case Request(id):
                    self._running[id] = anyio.CancelScope()
                    requests.append(event)
                case Reply(line):
                    replies.append(line)
                case Answered(waiter, outcome):
                    waiter.settle(outcome)
                case Cancelled(id):
                    self._running[id].cancel()
                case Unusable(error):
                    log.info("Ignored a message of a client: %s", error)
        return requests, replies

    async def _handle(self, watch: ClientWatch, stream: SessionStream, request: Request) -> tuple[int, bytes]:
        """The HTTP status and the encoded answer; b"" if none is to be sent (yet)."""
        with self._running[request.id]:
            try:
                open = partial(self._open_call, request, stream)
                line, error = await self._dispatcher.handle(watch, request, open, self.connection.answer)
            finally:
                del self._running[request.id]
            # Legacy clients treat any other status as a broken transport.
            return error.status if isinstance(error, HttpError) else 200, line
        return 200, self.connection.forget(request.id)

    def _open_call(self, request: Request, stream: SessionStream) -> Call:
        channel = SessionChannel(self, lambda: stream)
        call = self._dispatcher.server.open_call(request, self.state, channel)
        if call.terms.era is Era.MODERN:
            raise without_headers(request.method)
        return call

    async def _send(self, exchange: Exchange, stream: SessionStream, status: int, line: bytes) -> None:
        if stream.begun:
            await stream.send(line, last=True)
            if exchange.streaming:  # A GET may have taken over the stream.
                await exchange.finish()
        elif line:
            if self.state.terms is not None:
                exchange.extra.append((b"mcp-session-id", self.id.encode()))
            await exchange.answer(status, line)
        else:
            # A cancelled request gets no answer, but HTTP needs a response. A request whose session the
            # client ends gets no answer either: the SDK 1.x fails on an error then.
            await exchange.finish()


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

    async def request(self, method: str, params: Any) -> Raw:
        """Send the client a request; its answer comes with another POST. Raises as `Channel.request`."""
        if self.closed.is_set():
            raise ConnectionClosed(method)
        waiter = Waiter(method)
        id, line = self._connection.ask(method, params, waiter)
        try:
            await self._stream().send(line)
            await waiter.done.wait()
        finally:
            if line := self._connection.abandon(id):
                with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                    await self._stream().send(line)
        return waiter.result()

    async def pause(self) -> None:
        """End the response, if the client will reconnect for the rest."""
        await self._stream().pause()


def without_headers(method: str) -> HeaderMismatch:
    """The error for a modern request whose headers are not those of a modern request."""
    reason = f"must be {LATEST_MODERN!r} as in the body of this {method}, but is missing or a different one"
    return HeaderMismatch(headers.PROTOCOL_VERSION, reason)
