"""The server half of MCP over HTTP, as ASGI applications.

Here requests are told apart by era. Modern ones are answered at once: one POST, one request, one response, no
state. Legacy sessions live in `sessions`, the streams of 2024-11-05 in `sse`; who may come in at all is the
concern of `access`.
Source: 2026-07-28 basic/transports/streamable-http.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Self

import anyio

from ragmcp.errors import RemoteProtocolError, UnsupportedRevision
from ragmcp.http import plain
from ragmcp.http.dispatch import Answered, Answering
from ragmcp.http.errors import BodyTooSlow, HttpMethodNotAllowed, NotAcceptable, ServerLeaving
from ragmcp.http.exchange import (
    EVENTS,
    JSON,
    ClientGone,
    Exchange,
    Receive,
    Scope,
    Send,
)
from ragmcp.http.limits import HttpLimits, Streams
from ragmcp.http.server import Modern
from ragmcp.legacy.sessions import Sessions
from ragmcp.legacy.sse_server import SseSessions
from ragmcp.protocol import headers
from ragmcp.protocol.eras import LEGACY_REVISIONS, MODERN_REVISIONS
from ragmcp.server.server import Server

__all__ = ["Answered", "Endpoint", "HttpLimits"]

METHODS = ("POST", "GET", "DELETE")


class Endpoint:
    """One server over HTTP: an async context manager whose end lets streams end and cancels the rest."""

    def __init__(
        self,
        server: Server,
        limits: HttpLimits,
        *,
        plain_form: bool = False,
        on_answered: Callable[[Answered], None] | None = None,
    ) -> None:
        """`plain_form` also answers {"method": …, "params": …}; `on_answered` is told of every request."""
        self._limits = limits
        self._streams = Streams(limits.streams)
        self._answering = Answering(server, limits, on_answered)
        self._modern = Modern(self._answering)
        self._sessions = Sessions(self._answering)
        self._old = SseSessions(server, limits, self._answering.closing)
        self._server = server
        self._plain_form = plain_form
        self._stack = AsyncExitStack()
        self._open: set[Exchange] = set()
        self._empty = anyio.Event()

    @property
    def session_count(self) -> int:
        """How many legacy sessions there are."""
        return self._sessions.count + self._old.count

    @property
    def stream_count(self) -> int:
        """How many event streams are open."""
        return self._streams.count

    async def __aenter__(self) -> Self:
        self._answering.tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._answering.tasks.start_soon(self._sessions.expire)
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
            self._answering.tasks.cancel_scope.cancel()
            await self._stack.aclose()  # What the body raised is its own affair, and comes out as it is.

    def leave(self) -> None:
        """Refuse what comes from now on, and let the streams end."""
        self._answering.closing.set()
        self._sessions.leave()

    # The ASGI applications

    async def mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The MCP endpoint."""
        await self._enter(self._serve, scope, receive, send)

    async def sse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """GET /sse of 2024-11-05; POST /messages must be its neighbour."""
        await self._enter(self._old.listen, scope, receive, send)

    async def messages(self, scope: Scope, receive: Receive, send: Send) -> None:
        """POST /messages of 2024-11-05."""
        await self._enter(self._old.post, scope, receive, send)

    async def _enter(
        self, serve: Callable[[Exchange, Scope], Awaitable[None]], scope: Scope, receive: Receive, send: Send
    ) -> None:
        exchange = Exchange(scope, receive, send, self._limits, self._streams)
        self._open.add(exchange)
        try:
            with exchange.scope:
                await self._try(serve, exchange, scope)
            if exchange.late:
                await self._answering.refuse(exchange, BodyTooSlow(self._limits.body_seconds))
            elif self._answering.closing.is_set() and exchange.scope.cancelled_caught:
                await self._cut_off(exchange)
        finally:
            exchange.close()
            self._open.discard(exchange)
            if not self._open:
                self._empty.set()

    async def _try(
        self, serve: Callable[[Exchange, Scope], Awaitable[None]], exchange: Exchange, scope: Scope
    ) -> None:
        try:
            if self._answering.closing.is_set():
                raise ServerLeaving
            exchange.check_headers()
            await serve(exchange, scope)
        except ClientGone:
            pass
        except RemoteProtocolError as error:
            await self._answering.refuse(exchange, error)

    async def _cut_off(self, exchange: Exchange) -> None:
        """There was no time left for what it asked; it hears that, as far as it can hear anything else."""
        if exchange.streaming:
            await exchange.finish()
        elif not exchange.finished:
            await self._answering.refuse(exchange, ServerLeaving())

    # The MCP endpoint

    async def _serve(self, exchange: Exchange, _: Scope) -> None:
        match exchange.method:
            case "POST":
                await self._post(exchange)
            case "GET" | "DELETE" if _is_of_session(exchange):
                await (self._sessions.get if exchange.method == "GET" else self._sessions.delete)(exchange)
            case "GET" | "DELETE":
                raise HttpMethodNotAllowed(exchange.method, ("POST",))
            case method:
                raise HttpMethodNotAllowed(method, METHODS)

    async def _post(self, exchange: Exchange) -> None:
        exchange.check_content()
        reads_events = exchange.accepts(JSON, EVENTS)
        if not reads_events and not (self._plain_form and exchange.accepts(JSON)):
            raise NotAcceptable((JSON, EVENTS))
        body = await exchange.body()
        if self._plain_form and (request := plain.parse(self._server, body)) is not None:
            exchange.mute = True
            await self._modern.answer(exchange, request.message, request.open, request)
            return
        if not reads_events:
            raise NotAcceptable((JSON, EVENTS))
        revision = exchange.header(headers.PROTOCOL_VERSION)
        if revision is None or _is_legacy(exchange, revision):
            await self._sessions.post(exchange, body)
        else:
            await self._modern.post(exchange, body, revision)


def _is_legacy(exchange: Exchange, revision: str) -> bool:
    """Whether a request is of the legacy era: with a session it is, unless its revision knows none."""
    has_session = exchange.header(headers.SESSION_ID) is not None
    return revision in LEGACY_REVISIONS or (has_session and revision not in MODERN_REVISIONS)


def _is_of_session(exchange: Exchange) -> bool:
    """Whether a GET or DELETE belongs to a session. Raises UnsupportedRevision.

    Without any sign of one it comes from a browser, or from a client that looks for the HTTP of 2024-11-05
    and must not find it here.
    """
    revision = exchange.header(headers.PROTOCOL_VERSION)
    if revision is None:
        return exchange.header(headers.SESSION_ID) is not None
    if _is_legacy(exchange, revision):
        return True
    if revision in MODERN_REVISIONS:
        return False
    raise UnsupportedRevision(revision, (*MODERN_REVISIONS, *LEGACY_REVISIONS))
