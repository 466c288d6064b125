"""Calls over HTTP without a session: handled, answered as JSON or as a stream, cancelled, and reported.

The response is JSON as long as nothing was said before it; the first notification, or some seconds of
silence, make it a stream.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from time import perf_counter
from typing import Any, Protocol

import anyio
import anyio.abc
from msgspec import UNSET, Raw, Struct

from ragmcp import jsonrpc
from ragmcp.call import Call, Channel
from ragmcp.concurrency import watched
from ragmcp.connection import error_object
from ragmcp.errors import HttpError, LocalProtocolError, MethodNotFound, RemoteProtocolError
from ragmcp.jsonrpc import ErrorObject, Id, Request
from ragmcp.schema import CallToolParams, CallToolResult, Result
from ragmcp.server import Server, find_method
from ragmcp.transports.exchange import Exchange, HttpLimits, event

log = logging.getLogger(__name__)

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Answered(Struct, frozen=True):
    """One request has its answer. `error_code` is "" where nothing went wrong.

    `method` and `tool` are "" where there is none of that name: they make safe labels.
    """

    method: str
    tool: str
    error_code: str
    seconds: float


class Form(Protocol):
    """How an answer is written."""

    def encode_success(self, id: Id, result: Any) -> bytes:
        """Raises NotEncodable."""

    def encode_failure(self, id: Id | None, error: ErrorObject) -> bytes:
        """Never raises."""


def status_of(error: Exception) -> int:
    """The HTTP status of a modern error. What failed inside has none of its own in the specification."""
    if isinstance(error, HttpError):
        return error.status
    if isinstance(error, MethodNotFound):
        return 404
    return 400 if isinstance(error, RemoteProtocolError) else 200


class OwnStream:
    """The way back to who asked: the stream of the request's own response."""

    __slots__ = ("_exchange", "closed")

    def __init__(self, exchange: Exchange, closed: anyio.Event) -> None:
        self._exchange = exchange
        self.closed = closed

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification, if the client reads streams."""
        await self._exchange.write(event(jsonrpc.encode_notification(method, params)))

    async def request(self, method: str, *_: Any, **__: Any) -> Raw:
        """Servers ask nothing in the modern era. Raises MethodNotFound."""
        raise MethodNotFound(method)


class _Attendant:
    """Looks after the client of a call that has to wait: is it still there, does it know that we are?"""

    __slots__ = ("_answering", "_call", "_exchange", "_own")

    def __init__(self, answering: Answering, exchange: Exchange, call: anyio.CancelScope) -> None:
        self._answering = answering
        self._exchange = exchange
        self._call = call
        self._own: anyio.CancelScope | None = None

    def come(self) -> None:
        self._own = anyio.CancelScope()
        self._answering.tasks.start_soon(self._attend, self._own)

    def go(self) -> None:
        if self._own is not None:
            self._own.cancel()

    async def _attend(self, own: anyio.CancelScope) -> None:
        with own:
            while True:
                with anyio.move_on_after(self._answering.limits.keep_alive_seconds):
                    await self._exchange.gone()
                    self._call.cancel()  # "Closing the SSE response stream MUST be treated as cancellation."
                    return
                await self._exchange.keep_alive()


class Answering:
    """Lets a server handle calls, each in the task that brought it."""

    tasks: anyio.abc.TaskGroup

    def __init__(
        self, server: Server, limits: HttpLimits, on_answered: Callable[[Answered], None] | None
    ) -> None:
        self.limits = limits
        self.closing = anyio.Event()
        self._server = server
        self._on_answered = on_answered

    async def answer(
        self,
        exchange: Exchange,
        request: Request,
        open: Callable[[Request, Channel], Call],
        form: Form = jsonrpc,
    ) -> None:
        """Handle the call that `open` makes of the request, and send its answer."""
        started = perf_counter()
        call: Call | None = None
        outcome = "CANCELLED"
        with anyio.CancelScope() as scope:
            attendant = _Attendant(self, exchange, scope)
            status = 200
            try:
                call = open(request, OwnStream(exchange, self.closing))
                result = await watched(self._server.handle(call), attendant.come, attendant.go)
                line = form.encode_success(request.id, result)
                outcome = failure_of(result)
            except Exception as error:
                status, outcome = status_of(error), self._failed(request.method, error)
                line = form.encode_failure(request.id, error_object(error, request.id))
            if exchange.streaming:
                await exchange.end(event(line))
            else:
                await exchange.answer(status, line)
        self.report(exchange, request.method, call, outcome, perf_counter() - started)

    async def refuse(self, exchange: Exchange, error: RemoteProtocolError, id: Id | None = None) -> None:
        """Answer what never became a call."""
        await exchange.refuse(error, status_of(error), id)
        self.report(exchange, "", None, error.code, 0.0)

    def _failed(self, method: str, error: Exception) -> str:
        if isinstance(error, RemoteProtocolError):
            return error.code
        log.error("%s failed", method, exc_info=error)
        return LocalProtocolError.code

    def report(
        self, exchange: Exchange, method: str, call: Call | None, outcome: str, seconds: float
    ) -> None:
        """Log the request, and tell whoever counts. Words of the client's own choice appear nowhere."""
        name = method if find_method(method) else ""
        params = call.params if call else None
        tool = params.name if isinstance(params, CallToolParams) and params.name in self._server.tools else ""
        if log.isEnabledFor(logging.INFO):
            trace = call.params.meta.traceparent if call else UNSET
            said = trace if trace is not UNSET else exchange.header("traceparent")
            log.info(
                "%s %s: %s in %.1f ms, traceparent %s",
                name or "-",
                tool or "-",
                outcome or "OK",
                seconds * 1000,
                said if said and _TRACEPARENT.fullmatch(said) else "-",
            )
        if self._on_answered is not None:
            self._on_answered(Answered(name, tool, outcome, seconds))


def failure_of(result: Result) -> str:
    """The word for what went wrong in a tool, "" where nothing did."""
    if not isinstance(result, CallToolResult) or not result.is_error:
        return ""
    data = result.structured_content
    return str(data.get("errorCode", "TOOL_ERROR")) if isinstance(data, dict) else "TOOL_ERROR"
