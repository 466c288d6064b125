"""What calls over HTTP have in common in both eras: they are handled, attended while they wait, reported."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Protocol

import anyio
import anyio.abc
from msgspec import UNSET, Struct

from ragmcp.concurrency import watched
from ragmcp.errors import LocalProtocolError, MethodNotFound, NotEncodable, RemoteProtocolError
from ragmcp.http.errors import HttpError
from ragmcp.http.exchange import ClientGone, Exchange
from ragmcp.http.limits import HttpLimits
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.connection import error_object
from ragmcp.protocol.jsonrpc import Id, Request
from ragmcp.protocol.schema.base import Result
from ragmcp.protocol.schema.tools import CallToolParams, CallToolResult
from ragmcp.server.call import Call
from ragmcp.server.server import Server, find_method
from ragmcp.tracing import loggable

log = logging.getLogger(__name__)


class Answered(Struct, frozen=True):
    """One request has its answer. `error_code` is "" where nothing went wrong.

    `method` and `tool` are "" where there is none of that name: they make safe labels.
    """

    method: str
    tool: str
    error_code: str
    seconds: float


class Form(Protocol):
    """How answers are written: the line of each, b"" where none is due (yet)."""

    def answer(self, id: Id, result: Any) -> bytes:
        """The answer to request `id`. Never raises."""

    def refuse(self, id: Id, error: Exception) -> bytes:
        """Its refusal. Never raises."""


class JsonRpc:
    """The form of the protocol itself."""

    def answer(self, id: Id, result: Any) -> bytes:
        try:
            return jsonrpc.encode_success(id, result)
        except NotEncodable as error:
            return self.refuse(id, error)

    def refuse(self, id: Id, error: Exception) -> bytes:
        return jsonrpc.encode_failure(id, error_object(error, id))


def status_of(error: Exception | None) -> int:
    """The HTTP status of a modern error. What failed inside has none of its own in the specification."""
    if isinstance(error, HttpError):
        return error.status
    if isinstance(error, MethodNotFound):
        return 404
    return 400 if isinstance(error, RemoteProtocolError) else 200


class Attendant:
    """Looks after the client of a call that has to wait: is it still there, does it know that we are?"""

    __slots__ = ("_answering", "_calls", "_exchange", "_gone", "_life", "_own")

    def __init__(
        self,
        answering: Answering,
        exchange: Exchange,
        gone: Callable[[], None],
        life: Callable[[], Awaitable[None]],
    ) -> None:
        """`gone` is called once the client has left, `life` after each silence."""
        self._answering = answering
        self._exchange = exchange
        self._gone = gone
        self._life = life
        self._own: anyio.CancelScope | None = None
        self._calls = 0

    def come(self) -> None:
        """A call has to wait."""
        self._calls += 1
        if self._own is None:
            self._own = anyio.CancelScope()
            self._answering.tasks.start_soon(self._attend, self._own)

    def go(self) -> None:
        """A call that had to wait is over."""
        self._calls -= 1
        if not self._calls and self._own is not None:
            self._own.cancel()
            self._own = None

    async def _attend(self, own: anyio.CancelScope) -> None:
        with own:
            try:
                while not await self._gone_after_silence():
                    await self._life()
            except ClientGone:
                pass
            except Exception:  # One client's trouble is no other's.
                log.exception("Lost sight of a client")
            self._exchange.close()
            self._gone()

    async def _gone_after_silence(self) -> bool:
        with anyio.move_on_after(self._answering.limits.keep_alive_seconds):
            await self._exchange.gone()
            return True
        return False


class Answering:
    """Lets a server handle requests, and reports them."""

    tasks: anyio.abc.TaskGroup

    def __init__(
        self, server: Server, limits: HttpLimits, on_answered: Callable[[Answered], None] | None
    ) -> None:
        self.server = server
        self.limits = limits
        self.closing = anyio.Event()
        self._on_answered = on_answered

    async def handle(
        self, exchange: Exchange, request: Request, open: Callable[[], Call], form: Form, attendant: Attendant
    ) -> tuple[bytes, Exception | None]:
        """The line that answers the request, of which `open` makes the call, and what went wrong."""
        started = perf_counter()
        call: Call | None = None
        outcome = "CANCELLED"
        try:
            call = open()
            result = await watched(self.server.handle(call), attendant.come, attendant.go)
            outcome = failure_of(result)
            return form.answer(request.id, result), None
        except Exception as error:
            outcome = self._failed(request.method, error)
            return form.refuse(request.id, error), error
        finally:
            self._report(exchange, request.method, call, outcome, perf_counter() - started)

    async def refuse(self, exchange: Exchange, error: RemoteProtocolError) -> None:
        """Answer what never became a call."""
        await exchange.refuse(error, status_of(error))
        self._report(exchange, "", None, error.code, 0.0)

    def _failed(self, method: str, error: Exception) -> str:
        if isinstance(error, RemoteProtocolError):
            return error.code
        log.error("%s failed", method, exc_info=error)
        return LocalProtocolError.code

    def _report(
        self, exchange: Exchange, method: str, call: Call | None, outcome: str, seconds: float
    ) -> None:
        """Log the request, and tell whoever counts. Words of the client's own choice appear nowhere."""
        wanted = log.isEnabledFor(logging.INFO)
        if not wanted and self._on_answered is None:
            return
        name = method if find_method(method) else ""
        params = call.params if call else None
        tool = params.name if isinstance(params, CallToolParams) and params.name in self.server.tools else ""
        if wanted:
            trace = call.params.meta.traceparent if call else UNSET
            said = trace if trace is not UNSET else exchange.header("traceparent")
            log.info(
                "%s %s: %s in %.1f ms, traceparent %s",
                name or "-",
                tool or "-",
                outcome or "OK",
                seconds * 1000,
                loggable(said),
            )
        if self._on_answered is not None:
            self._on_answered(Answered(name, tool, outcome, seconds))


def failure_of(result: Result) -> str:
    """The word for what went wrong in a tool, "" where nothing did."""
    if not isinstance(result, CallToolResult) or not result.is_error:
        return ""
    data = result.structured_content
    return str(data.get("errorCode", "TOOL_ERROR")) if isinstance(data, dict) else "TOOL_ERROR"
