"""What requests over HTTP share in both eras: handling the call, watching the client, reporting."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, TypeAlias

import anyio
import anyio.abc
from msgspec import UNSET, Struct

from ragmcp.concurrency import observe_blocking
from ragmcp.errors import LocalProtocolError, MethodNotFound, RemoteProtocolError
from ragmcp.http.errors import HttpError
from ragmcp.http.exchange import Exchange, headers_of
from ragmcp.http.limits import HttpLimits
from ragmcp.protocol.jsonrpc import Id, Request
from ragmcp.protocol.schema.base import Result
from ragmcp.protocol.schema.tools import CallToolParams, CallToolResult
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.tracing import enter, loggable

log = logging.getLogger(__name__)


class RequestRecord(Struct, frozen=True):
    """One answered request. `error_code` is "" for a success.

    `method` and `tool` are "" for names that do not exist, so they are safe as labels.
    """

    method: str
    tool: str
    error_code: str
    seconds: float


OnAnswered: TypeAlias = Callable[[RequestRecord], None]

# Encodes the result of request `id`, or its error; b"" if no answer is to be sent (yet).
AnswerEncoder: TypeAlias = Callable[[Id, Any], bytes]


def response_status(error: Exception | None) -> int:
    """The HTTP status of a modern answer. The specification has none for internal errors."""
    if isinstance(error, HttpError):
        return error.status
    if isinstance(error, MethodNotFound):
        return 404
    return 400 if isinstance(error, RemoteProtocolError) else 200


class ClientWatch(Struct):
    """Watches the client of an exchange while its calls wait, and keeps the connection alive."""

    dispatcher: Dispatcher
    exchange: Exchange
    # Called when the client has disconnected, and after each silence.
    on_gone: Callable[[], None]
    keep_alive: Callable[[], Awaitable[None]]
    _scope: anyio.CancelScope | None = None
    _calls: int = 0

    def start(self) -> None:
        """Count a call that has to wait."""
        self._calls += 1
        if self._scope is None:
            self._scope = anyio.CancelScope()
            self.dispatcher.tasks.start_soon(self._watch, self._scope)

    def stop(self) -> None:
        """Count down when such a call has ended."""
        self._calls -= 1
        if not self._calls and self._scope is not None:
            self._scope.cancel()
            self._scope = None

    async def _watch(self, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await self.exchange.watch(self.keep_alive)
            except Exception:  # One client must not end the others' tasks.
                log.exception("Watching a client failed")
            self.exchange.close()
            self.on_gone()


class Dispatcher:
    """Lets a server handle requests, and reports them."""

    tasks: anyio.abc.TaskGroup

    def __init__(self, server: Server, limits: HttpLimits, on_answered: OnAnswered) -> None:
        self.server = server
        self.limits = limits
        self.closing = anyio.Event()
        self._on_answered = on_answered

    async def handle(
        self, watch: ClientWatch, request: Request, open: Callable[[], Call], encode: AnswerEncoder
    ) -> tuple[bytes, Exception | None]:
        """The encoded answer to the request, which `open` turns into a call, and the error if it failed."""
        exchange = watch.exchange
        started = perf_counter()
        call: Call | None = None
        outcome = "CANCELLED"
        trace = enter(exchange.header("traceparent"))
        try:
            call = open()
            if (said := call.params.meta.traceparent) is not UNSET:
                trace = enter(said)
            result = await observe_blocking(self.server.handle(call), watch.start, watch.stop)
            outcome = failure_of(result)
            return encode(request.id, result), None
        except Exception as error:
            outcome = self._failed(request.method, error)
            exchange.extra += headers_of(error)
            return encode(request.id, error), error
        finally:
            self._report(request.method, call, outcome, perf_counter() - started, trace)

    async def refuse(self, exchange: Exchange, error: RemoteProtocolError) -> None:
        """Answer a request that never became a call."""
        await exchange.refuse(error, response_status(error))
        self._report("", None, error.code, 0.0, loggable(exchange.header("traceparent")))

    def _failed(self, method: str, error: Exception) -> str:
        if isinstance(error, RemoteProtocolError):
            return error.code
        log.error("%s failed", method, exc_info=error)
        return LocalProtocolError.code

    def _report(self, method: str, call: Call | None, outcome: str, seconds: float, trace: str) -> None:
        """Log and record the request. Nothing that the client can choose freely appears."""
        name = method if self.server.find_method(method) else ""
        params = call.params if call else None
        tool = params.name if isinstance(params, CallToolParams) and params.name in self.server.tools else ""
        answered = name or "-", tool or "-", outcome or "OK", seconds * 1000
        log.info("%s %s: %s in %.1f ms, traceparent %s", *answered, trace)
        self._on_answered(RequestRecord(name, tool, outcome, seconds))


def failure_of(result: Result) -> str:
    """The error code of a failed tool call, "" for a success."""
    if not isinstance(result, CallToolResult) or not result.is_error:
        return ""
    data = result.structured_content
    return str(data.get("errorCode", "TOOL_ERROR")) if isinstance(data, dict) else "TOOL_ERROR"
