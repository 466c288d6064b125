"""The server's half of MCP over HTTP, as ASGI applications.

It decides the era of each request. `server` answers modern requests: one POST, one request, one response, no
state. Legacy requests go to `sessions` and `sse_server` in `ragmcp.legacy`.
Source: 2026-07-28 basic/transports/streamable-http.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Self, TypeAlias

import anyio

from ragmcp.concurrency import Pulse, background_task, require_asyncio
from ragmcp.errors import RemoteProtocolError
from ragmcp.http.access import LOCAL, Guard
from ragmcp.http.dispatch import Dispatcher, OnAnswered
from ragmcp.http.errors import BodyTooSlow, HttpMethodNotAllowed, NotAcceptable, ServerLeaving
from ragmcp.http.exchange import EVENTS, JSON, ClientGone, Exchange, Receive, Scope, Send
from ragmcp.http.limits import HttpLimits
from ragmcp.http.server import ModernRequests
from ragmcp.older_revisions import find_legacy
from ragmcp.protocol import headers
from ragmcp.server.core import Server

# Answers a request, or raises RemoteProtocolError.
Serve: TypeAlias = Callable[[Exchange], Awaitable[None]]


class Endpoint(anyio.AsyncContextManagerMixin):
    """One server over HTTP: an async context manager. On exit it ends streams and cancels all other work.

    Web servers wait for open streams before they return: call `leave` when yours begins to stop, or limit
    how long it waits. Entering raises AsyncioRequired.
    """

    def __init__(
        self,
        server: Server,
        limits: HttpLimits = HttpLimits(),  # noqa: B008 (frozen)
        *,
        guard: Guard | None = LOCAL,
        on_answered: OnAnswered = lambda _: None,
    ) -> None:
        """`guard` is for all three applications; None: what is around them lets requests through.

        `on_answered` gets every record.
        """
        self.server = server
        self._guard = guard
        self._streams: set[Exchange] = set()
        self._dispatcher = Dispatcher(server, limits, on_answered)
        self.modern = ModernRequests(self._dispatcher)
        legacy = find_legacy("sessions")
        self._legacy = legacy and legacy.Sessions(self._dispatcher)
        self._open: set[Exchange] = set()
        self._closed = Pulse()

    @property
    def session_count(self) -> int:
        """How many legacy sessions there are."""
        count: int = self._legacy.count if self._legacy else 0
        return count

    @property
    def stream_count(self) -> int:
        """How many event streams are open."""
        return len(self._streams)

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        require_asyncio()
        async with background_task() as self._dispatcher.tasks:
            if self._legacy is not None:
                self._dispatcher.tasks.start_soon(self._legacy.run)
            try:
                yield self
            finally:
                self.leave()
                try:
                    with anyio.move_on_after(self._dispatcher.limits.leave_seconds):
                        while self._open:
                            await self._closed.wait()
                finally:
                    for exchange in self._open:
                        exchange.scope.cancel()

    def leave(self) -> None:
        """Refuse new requests, and let the streams end."""
        self._dispatcher.closing.set()
        if self._legacy is not None:
            self._legacy.close()

    # The ASGI applications

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The MCP endpoint. Raises RuntimeError unless this context manager has been entered."""
        await self._enter(self._serve, scope, receive, send)

    async def sse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """GET /sse of 2024-11-05. POST /messages must be in the same folder of the URL."""
        await self._enter(self._legacy.sse.listen if self._legacy else _serve_nothing, scope, receive, send)

    async def messages(self, scope: Scope, receive: Receive, send: Send) -> None:
        """POST /messages of 2024-11-05."""
        await self._enter(self._legacy.sse.post if self._legacy else _serve_nothing, scope, receive, send)

    async def _enter(self, serve: Serve, scope: Scope, receive: Receive, send: Send) -> None:
        if not hasattr(self._dispatcher, "tasks"):
            raise RuntimeError("An Endpoint serves only within `async with endpoint:`.")
        if self._guard is None:
            await self._exchange(serve, scope, receive, send)
        else:
            await self._guard.admit(partial(self._exchange, serve), scope, receive, send)

    async def _exchange(self, serve: Serve, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send, self._dispatcher.limits, self._streams)
        self._open.add(exchange)
        try:
            with exchange.scope:
                await self._try(serve, exchange)
            if exchange.scope.cancelled_caught:
                await self._cut_off(exchange)
        finally:
            exchange.close()
            self._open.discard(exchange)
            self._closed.set()

    async def _try(self, serve: Serve, exchange: Exchange) -> None:
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
        """End the stream of a cancelled request, or say that its deadline or shutdown cancelled it."""
        if exchange.streaming:
            with suppress(ClientGone):
                await exchange.finish()
        elif anyio.current_time() >= exchange.scope.deadline:
            await self._dispatcher.refuse(exchange, BodyTooSlow(self._dispatcher.limits.body_seconds))
        elif self._dispatcher.closing.is_set() and not exchange.finished:
            await self._dispatcher.refuse(exchange, ServerLeaving())

    # The MCP endpoint

    async def _serve(self, exchange: Exchange) -> None:
        if exchange.method == "POST":
            await self.post(exchange)
        elif self._legacy is not None:
            await self._legacy.serve(exchange)
        else:
            raise HttpMethodNotAllowed(exchange.method, ("POST",))

    async def post(self, exchange: Exchange) -> None:
        """Answer a POST; a subclass may answer bodies in other forms than JSON-RPC."""
        exchange.check_content()
        if not exchange.accepts(JSON, EVENTS):
            raise NotAcceptable((JSON, EVENTS))
        body = await exchange.body()
        if self._legacy is not None and self._legacy.claims(exchange):
            await self._legacy.post(exchange, body)
        else:
            await self.modern.post(exchange, body, exchange.header(headers.PROTOCOL_VERSION) or "")


async def _serve_nothing(exchange: Exchange) -> None:
    raise HttpMethodNotAllowed(exchange.method, ())
