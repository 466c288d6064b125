"""The server's half of MCP over HTTP, as ASGI applications.

It decides the era of each request. `server` answers modern requests: one POST, one request, one response, no
state. Legacy requests go to `sessions` and `sse_server` in `ragmcp.legacy`.
Source: 2026-07-28 basic/transports/streamable-http.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, Protocol, Self, TypeAlias

import anyio

from ragmcp.errors import RemoteProtocolError
from ragmcp.http.dispatch import Dispatcher, RequestRecord
from ragmcp.http.errors import BodyTooSlow, HttpMethodNotAllowed, NotAcceptable, ServerLeaving
from ragmcp.http.exchange import EVENTS, JSON, ClientGone, Exchange, Receive, Scope, Send
from ragmcp.http.limits import HttpLimits
from ragmcp.http.server import ModernRequests, state_of
from ragmcp.older_revisions import find_legacy, require_legacy
from ragmcp.peer import Channel
from ragmcp.protocol import headers
from ragmcp.protocol.eras import ConnectionState
from ragmcp.protocol.jsonrpc import Id, Request
from ragmcp.server.call import Call
from ragmcp.server.server import Server

__all__ = ["Endpoint", "HttpLimits", "RequestRecord"]


class LegacyRequests(Protocol):
    """What `ragmcp.legacy.sessions` adds to an endpoint."""

    @property
    def count(self) -> int: ...
    async def run(self) -> None: ...
    def close(self) -> None: ...
    def claims(self, exchange: Exchange) -> bool: ...
    async def post(self, exchange: Exchange, body: bytes) -> None: ...
    async def serve(self, exchange: Exchange) -> None: ...


class SseRequests(Protocol):
    """What `ragmcp.legacy.sse_server` adds."""

    @property
    def count(self) -> int: ...
    async def listen(self, exchange: Exchange) -> None: ...
    async def post(self, exchange: Exchange) -> None: ...


class OtherRequest(Protocol):
    """A request in another form than JSON-RPC, and the encoder of its answer."""

    message: Request

    def open(self, state: ConnectionState, channel: Channel) -> Call:
        """The call it makes. Raises RemoteProtocolError."""

    def encode(self, id: Id, outcome: Any) -> bytes:
        """As an `AnswerEncoder`."""


# Reads the request in a body; None: the body is to be read as JSON-RPC.
ParseOther: TypeAlias = Callable[[Server, bytes], OtherRequest | None]


class Endpoint:
    """One server over HTTP: an async context manager. On exit it ends streams and cancels all other work."""

    def __init__(
        self,
        server: Server,
        limits: HttpLimits,
        *,
        parse_other: ParseOther | None = None,
        on_answered: Callable[[RequestRecord], None] | None = None,
    ) -> None:
        """`parse_other` reads requests in another form than JSON-RPC; `on_answered` gets every record."""
        self._limits = limits
        self._streams: set[Exchange] = set()
        self._dispatcher = Dispatcher(server, limits, on_answered)
        self._modern = ModernRequests(self._dispatcher)
        self._legacy: LegacyRequests | None = None
        self._sse: SseRequests | None = None
        if (sessions := find_legacy("sessions")) is not None:
            self._legacy = sessions.Sessions(self._dispatcher)
            self._sse = require_legacy("sse_server").SseSessions(self._dispatcher)
        self._server = server
        self._parse_other = parse_other
        self._stack = AsyncExitStack()
        self._open: set[Exchange] = set()
        self._empty = anyio.Event()

    @property
    def session_count(self) -> int:
        """How many legacy sessions there are."""
        return (self._legacy.count if self._legacy else 0) + (self._sse.count if self._sse else 0)

    @property
    def stream_count(self) -> int:
        """How many event streams are open."""
        return len(self._streams)

    async def __aenter__(self) -> Self:
        self._dispatcher.tasks = await self._stack.enter_async_context(anyio.create_task_group())
        if self._legacy is not None:
            self._dispatcher.tasks.start_soon(self._legacy.run)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()
        try:
            with anyio.move_on_after(self._limits.leave_seconds):
                while self._open:
                    self._empty = anyio.Event()
                    await self._empty.wait()
        finally:
            for exchange in self._open:
                exchange.scope.cancel()
            self._dispatcher.tasks.cancel_scope.cancel()
            await self._stack.aclose()  # Without the body's error, which must not be wrapped in a group.

    def leave(self) -> None:
        """Refuse new requests, and let the streams end."""
        self._dispatcher.closing.set()
        if self._legacy is not None:
            self._legacy.close()

    # The ASGI applications

    async def mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The MCP endpoint."""
        await self._enter(self._serve, scope, receive, send)

    async def sse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """GET /sse of 2024-11-05. POST /messages must be in the same folder of the URL."""
        await self._enter(self._sse.listen if self._sse else _serve_nothing, scope, receive, send)

    async def messages(self, scope: Scope, receive: Receive, send: Send) -> None:
        """POST /messages of 2024-11-05."""
        await self._enter(self._sse.post if self._sse else _serve_nothing, scope, receive, send)

    async def _enter(
        self, serve: Callable[[Exchange], Awaitable[None]], scope: Scope, receive: Receive, send: Send
    ) -> None:
        exchange = Exchange(scope, receive, send, self._limits, self._streams)
        self._open.add(exchange)
        try:
            with exchange.scope:
                await self._try(serve, exchange)
            if exchange.late:
                await self._dispatcher.refuse(exchange, BodyTooSlow(self._limits.body_seconds))
            elif exchange.scope.cancelled_caught:
                await self._cut_off(exchange)
        finally:
            exchange.close()
            self._open.discard(exchange)
            if not self._open:
                self._empty.set()

    async def _try(self, serve: Callable[[Exchange], Awaitable[None]], exchange: Exchange) -> None:
        try:
            if self._dispatcher.closing.is_set():
                raise ServerLeaving
            exchange.check_headers()
            await serve(exchange)
        except ClientGone:
            pass
        except RemoteProtocolError as error:
            await self._dispatcher.refuse(exchange, error)

    async def _cut_off(self, exchange: Exchange) -> None:
        """End the stream of a cancelled request, or send an error if shutdown cancelled it."""
        if exchange.streaming:
            with suppress(ClientGone):
                await exchange.finish()
        elif self._dispatcher.closing.is_set() and not exchange.finished:
            await self._dispatcher.refuse(exchange, ServerLeaving())

    # The MCP endpoint

    async def _serve(self, exchange: Exchange) -> None:
        if exchange.method == "POST":
            await self._post(exchange)
        elif self._legacy is not None:
            await self._legacy.serve(exchange)
        else:
            raise HttpMethodNotAllowed(exchange.method, ("POST",))

    async def _post(self, exchange: Exchange) -> None:
        exchange.check_content()
        reads_events = exchange.accepts(JSON, EVENTS)
        if not reads_events and not (self._parse_other and exchange.accepts(JSON)):
            raise NotAcceptable((JSON, EVENTS))
        body = await exchange.body()
        if self._parse_other and (other := self._parse_other(self._server, body)) is not None:
            exchange.mute = True
            open = partial(other.open, state_of(exchange))
            await self._modern.answer(exchange, other.message, open, other.encode)
            return
        if not reads_events:
            raise NotAcceptable((JSON, EVENTS))
        if self._legacy is not None and self._legacy.claims(exchange):
            await self._legacy.post(exchange, body)
        else:
            await self._modern.post(exchange, body, exchange.header(headers.PROTOCOL_VERSION) or "")


async def _serve_nothing(exchange: Exchange) -> None:
    raise HttpMethodNotAllowed(exchange.method, ())
