"""The host's side of the bridge: reads its messages, and sends each to the server as its era requires."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import UNSET, Raw, Struct

from ragcommon.errors import DECODE_ERRORS
from ragmcp.errors import (
    ConnectionClosed,
    MessageTooLarge,
    RagMcpError,
    RemoteProtocolError,
    ServerUnreachable,
    WireError,
)
from ragmcp.http.client import Http
from ragmcp.http.errors import HttpRefused
from ragmcp.older_revisions import require_legacy
from ragmcp.peer import FINISH_SECONDS
from ragmcp.protocol import headers, jsonrpc
from ragmcp.protocol.connection import CANCELLED
from ragmcp.protocol.framing import Line, LineDecoder, Overlong
from ragmcp.protocol.jsonrpc import NO_PARAMS, Id, Message, Notification, Request, Unreadable
from ragmcp.protocol.schema.base import PROTOCOL_VERSION, CancelledParams, ErrorObject
from ragmcp.streams import Stream

log = logging.getLogger(__name__)

T = TypeVar("T")

# Seconds that a request is retried while the server is unreachable: less than FINISH_SECONDS, so that a host
# that has closed stdin still gets the error.
RETRY_SECONDS = 8.0
# Not repeated after a lost connection: the server may have handled it.
NOT_REPEATABLE = "tools/call"
# Only the host or the server ends it.
LISTEN = "subscriptions/listen"
TOO_MANY_REQUESTS = 429

# Awaited before the next attempt.
BeforeRetry = Callable[[RagMcpError], Awaitable[None]]


class Session(Protocol):
    """As `SessionClient` of ragmcp describes it: a legacy session that carries encoded messages."""

    async def ask(self, request: Request, line: bytes) -> None: ...
    async def ask_batch(self, line: bytes) -> None: ...
    async def say(self, method: str, line: bytes) -> None: ...
    async def end(self) -> None: ...


class OpenRequest(Struct):
    """An open request of the host."""

    method: str
    modern: bool
    scope: anyio.CancelScope


class Bridge:
    """Passes on each message of the host, and writes back what the server sends."""

    def __init__(self, stream: Stream, http: Http, tasks: TaskGroup, before_retry: BeforeRetry) -> None:
        self._stream = stream
        self._http = http
        self._before_retry = before_retry
        # It begins with the first `initialize`.
        legacy = require_legacy("session_client")
        self._session: Session = legacy.SessionClient(http, tasks, self._write)
        self._initialized = legacy.INITIALIZED
        self._open_requests: dict[Id, OpenRequest] = {}

    async def run(self) -> None:
        """Run until the host has closed stdin, and what it sent has been sent and answered."""
        decoder = LineDecoder(self._http.message_bytes)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as self._sending:
                while data := await self._stream.receive():
                    for line in decoder.feed(data):
                        await self._take(line)
                for line in decoder.feed(b"\n"):  # The last line may have none.
                    await self._take(line)
                scope.deadline = anyio.current_time() + FINISH_SECONDS
                for running in self._open_requests.values():
                    if running.method == LISTEN:
                        running.scope.cancel()
            await self._session.end()
            await self._stream.drain(0)

    async def _take(self, line: Line | Overlong) -> None:
        if isinstance(line, Overlong):
            error = MessageTooLarge(line.size, self._http.message_bytes)
            self._refuse_unreadable(jsonrpc.salvaged(line.head, line.tail, error))
            return
        line = bytes(line)
        if jsonrpc.is_batch(line):
            self._sending.start_soon(self._ask_batch, line)
            return
        match jsonrpc.parse(line):
            case Request() as request:
                headers = _modern_headers(request.method, request.params)
                running = OpenRequest(request.method, bool(headers), anyio.CancelScope())
                self._open_requests[request.id] = running
                self._sending.start_soon(self._ask, request, line, headers, running.scope)
            case Unreadable() as unreadable:
                self._refuse_unreadable(unreadable)
            case Notification(method, params) if method == CANCELLED:
                self._cancel(params, line)
            case Notification(method, params) if method == self._initialized:
                # Later lines need the session, so they wait until it has begun.
                await self._say(method, params, line)
            case Notification(method, params):
                self._sending.start_soon(self._say, method, params, line)
            case _:
                self._sending.start_soon(self._say, "an answer", NO_PARAMS, line)

    async def _ask(
        self, request: Request, line: bytes, headers: dict[str, str], scope: anyio.CancelScope
    ) -> None:
        async def attempt() -> None:
            if headers:
                await self._http.ask(request.method, request.id, line, headers, self._write)
            else:
                await self._session.ask(request, line)

        with scope:
            try:
                await self._retry(attempt, repeatable=request.method != NOT_REPEATABLE)
            except RagMcpError as error:
                self._refuse(request.id, error)
        self._open_requests.pop(request.id, None)

    async def _ask_batch(self, line: bytes) -> None:
        try:
            await self._session.ask_batch(line)
        except RagMcpError as error:
            self._refuse(None, error)

    async def _say(self, method: str, params: Raw, line: bytes) -> None:
        headers = _modern_headers(method, params)

        async def attempt() -> None:
            if headers:
                await self._http.post(method, line, headers)
            else:
                await self._session.say(method, line)

        try:
            await self._retry(attempt, repeatable=True)
        except RagMcpError as error:
            log.warning("%s did not reach the server: %s", method, error)

    def _cancel(self, params: Raw, line: bytes) -> None:
        try:
            id = msgspec.json.decode(params, type=CancelledParams).request_id
        except DECODE_ERRORS:
            return
        if running := self._open_requests.get(id):
            if not running.modern:
                self._sending.start_soon(self._say, CANCELLED, params, line)
            running.scope.cancel()  # This closes the response, which is how a modern request is cancelled.

    async def _retry(self, attempt: Callable[[], Awaitable[None]], *, repeatable: bool) -> None:
        """Retry for RETRY_SECONDS. Raises the error of the last attempt."""
        deadline = anyio.current_time() + RETRY_SECONDS
        while True:
            began = anyio.current_time()
            try:
                return await attempt()
            except (ServerUnreachable, ConnectionClosed, HttpRefused) as error:
                is_lost = isinstance(error, ConnectionClosed)
                is_refused = isinstance(error, HttpRefused) and error.status != TOO_MANY_REQUESTS
                if is_refused or (is_lost and not repeatable):
                    raise
                if is_lost and anyio.current_time() - began > RETRY_SECONDS:  # It worked for a long time.
                    deadline = anyio.current_time() + RETRY_SECONDS
                if anyio.current_time() >= deadline:
                    raise
                with anyio.move_on_after(deadline - anyio.current_time()):
                    await self._before_retry(error)

    async def _write(self, line: Line, message: Message) -> None:
        if isinstance(message, Unreadable) and not jsonrpc.is_batch(line):
            return
        self._stream.write(bytes(line).replace(b"\n", b" "))
        self._stream.flush()
        await self._stream.drain()

    def _refuse_unreadable(self, message: Unreadable) -> None:
        # The id of a response is that of a request of the server.
        self._refuse(None if message.response else message.id, message.error)

    def _refuse(self, id: Id | None, error: RagMcpError) -> None:
        self._stream.write(jsonrpc.encode_failure(id, _error_object(error, id)))
        self._stream.flush()


def _error_object(error: RagMcpError, id: Id | None) -> ErrorObject:
    if isinstance(error, WireError):  # The server's own error. Over HTTP it may lack the id.
        sent = UNSET if error.data is None else error.data
        if isinstance(sent, dict) and "requestId" in sent:
            sent = {**sent, "requestId": id}
        return ErrorObject(error.code, error.message, sent)
    if isinstance(error, RemoteProtocolError):
        return jsonrpc.error_object(error, id)
    data: dict[str, Any] = {
        "errorCode": getattr(error, "code", "INTERNAL_ERROR"),
        "details": {},
        "requestId": id,
    }
    return ErrorObject(-32603, f"{error} {error.hint}".rstrip(), data)


def _modern_headers(method: str, params: Raw) -> dict[str, str]:
    """The headers of a modern message; {} for a legacy one."""
    members = _decoded(params, dict[str, Raw])
    revision = _decoded(_decoded(members.get("_meta"), dict[str, Raw]).get(PROTOCOL_VERSION), str)
    if not revision:
        return {}
    heads = {
        headers.PROTOCOL_VERSION: headers.encode_value(revision),
        headers.METHOD: headers.encode_value(method),
    }
    if field := headers.NAMED_BY.get(method):
        heads[headers.NAME] = headers.encode_value(_decoded(members.get(field), str))
    return heads


def _decoded(raw: Raw | None, kind: type[T]) -> T:
    """The value if it is of that type, else an empty one."""
    try:
        return msgspec.json.decode(raw or b"null", type=kind)
    except DECODE_ERRORS:
        return kind()
