"""The server half of MCP over HTTP, as ASGI applications.

Here requests are told apart by era. Modern ones are answered at once: one POST, one request, one response, no
state. Legacy sessions live in `sessions`, the streams of 2024-11-05 in `sse`; who may come in at all is the
concern of `access`.
Source: 2026-07-28 basic/transports/streamable-http.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import anyio

from ragmcp import headers, jsonrpc
from ragmcp.call import Call, Channel
from ragmcp.eras import LEGACY_REVISIONS
from ragmcp.errors import (
    HttpError,
    HttpMethodNotAllowed,
    InvalidRequest,
    NotAcceptable,
    ServerLeaving,
    SessionRequired,
)
from ragmcp.jsonrpc import Notification, Request, Unreadable
from ragmcp.server import Server
from ragmcp.transports.answering import Answered, Answering
from ragmcp.transports.exchange import (
    EVENTS,
    JSON,
    ClientGone,
    Exchange,
    HttpLimits,
    Receive,
    Scope,
    Send,
    Streams,
)
from ragmcp.transports.modern import Modern
from ragmcp.transports.plain import Plain

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
        self._modern = Modern(server)
        self._plain = Plain(server) if plain_form else None
        self._stack = AsyncExitStack()
        self._open = 0
        self._empty = anyio.Event()

    @property
    def stream_count(self) -> int:
        """How many event streams are open."""
        return self._streams.count

    async def __aenter__(self) -> Self:
        self._answering.tasks = await self._stack.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self.leave()
        with anyio.move_on_after(self._limits.leave_seconds):
            while self._open:
                self._empty = anyio.Event()
                await self._empty.wait()
        self._answering.tasks.cancel_scope.cancel()
        return await self._stack.__aexit__(kind, error, trace)

    def leave(self) -> None:
        """Refuse what comes from now on, and let the streams end."""
        self._answering.closing.set()

    async def mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The MCP endpoint, an ASGI application."""
        exchange = Exchange(scope, receive, send, self._limits, self._streams)
        self._open += 1
        try:
            await self._serve(exchange)
        except ClientGone:
            pass
        except HttpError as error:
            await self._answering.refuse(exchange, error)
        finally:
            exchange.close()
            self._open -= 1
            if not self._open:
                self._empty.set()

    async def _serve(self, exchange: Exchange) -> None:
        if self._answering.closing.is_set():
            raise ServerLeaving
        exchange.check_headers()
        if exchange.method != "POST":
            raise HttpMethodNotAllowed(exchange.method, METHODS)
        exchange.check_content()
        reads_events = exchange.accepts(JSON, EVENTS)
        if not reads_events and not (self._plain and exchange.accepts(JSON)):
            raise NotAcceptable((JSON, EVENTS))
        body = await exchange.body()
        if self._plain and (request := self._plain.parse(body)) is not None:
            exchange.mute = True
            await self._answering.answer(exchange, request, self._plain.open, self._plain)
            return
        if not reads_events:
            raise NotAcceptable((JSON, EVENTS))
        revision = exchange.header(headers.PROTOCOL_VERSION)
        if revision is None or revision in LEGACY_REVISIONS:
            raise SessionRequired("")
        await self._answer_modern(exchange, body, revision)

    async def _answer_modern(self, exchange: Exchange, body: bytes, revision: str) -> None:
        message = jsonrpc.parse(body)
        match message:
            case Request():

                def open(request: Request, channel: Channel) -> Call:
                    return self._modern.open(exchange, request, revision, channel)

                await self._answering.answer(exchange, message, open)
            case Notification():
                # The revision has none that go this way: "accepts or refuses".
                await exchange.answer(202)
            case Unreadable(id, reason):
                await self._answering.refuse(exchange, reason, id)
            case _:
                await self._answering.refuse(exchange, InvalidRequest("no responses are sent to a server"))
