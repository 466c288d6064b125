"""Modern requests over HTTP: one POST, one request, one response, no state.

The headers must repeat what the body says. The response is JSON, unless a notification or a keep-alive
comment comes first: then it is an event stream. The client cancels the call by closing the response.
Source: 2026-07-28 basic/transports/streamable-http.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
from msgspec import UNSET, Raw, Struct

from ragmcp.errors import InvalidRequest, MethodNotFound, UnsupportedRevision
from ragmcp.http.dispatch import AnswerEncoder, ClientWatch, Dispatcher, response_status
from ragmcp.http.errors import HeaderMismatch
from ragmcp.http.exchange import ClientGone, Exchange, event
from ragmcp.peer import Channel
from ragmcp.protocol import headers, jsonrpc
from ragmcp.protocol.decoding import DECODE_ERRORS
from ragmcp.protocol.eras import MODERN_REVISIONS, ConnectionState, Era
from ragmcp.protocol.headers import HeaderParam
from ragmcp.protocol.jsonrpc import Notification, Request, Unreadable
from ragmcp.protocol.schema.base import Params
from ragmcp.protocol.schema.tools import CallToolParams, ToolInfo
from ragmcp.server.call import Call

log = logging.getLogger(__name__)

# Notifications that are dropped when no more event streams may be open, so that the answer can be sent.
_OPTIONAL = frozenset({"notifications/progress", "notifications/message"})

_params = msgspec.json.Decoder(Params)
_arguments = msgspec.json.Decoder(dict[str, Any])


class _ResponseChannel(Struct):
    """The channel to the client: the stream of the request's own response."""

    _exchange: Exchange
    closed: anyio.Event

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification. Raises TooManyOpen if that would need one stream too many."""
        if method in _OPTIONAL and not self._exchange.may_stream:
            return
        try:
            await self._exchange.write(event(jsonrpc.encode_notification(method, params)))
        except ClientGone:
            self._exchange.scope.cancel()
            await anyio.lowlevel.checkpoint()

    async def request(self, method: str, *_: Any, **__: Any) -> Raw:
        """Raises MethodNotFound: servers send no requests to modern clients."""
        raise MethodNotFound(method)


class ModernRequests(Struct):
    """Answers modern requests."""

    _dispatcher: Dispatcher
    _params: dict[str, tuple[ToolInfo, tuple[HeaderParam, ...]]] = {}

    async def post(self, exchange: Exchange, body: bytes, revision: str) -> None:
        """Answer a POST; `revision` is the header's. Raises RemoteProtocolError for any other message."""
        message = jsonrpc.parse(body)
        match message:
            case Request():
                open = partial(self._open, exchange, message, revision)
                await self.answer(exchange, message, open, jsonrpc.encode_answer)
            case Notification() if revision in MODERN_REVISIONS:
                # The revision defines no notifications to servers, but says that they are accepted.
                await exchange.answer(202)
            case Notification():
                raise UnsupportedRevision(revision, MODERN_REVISIONS)
            case Unreadable(_, reason):
                raise reason
            case _:
                raise InvalidRequest("this server sends no requests, so it accepts no responses")

    async def answer(
        self, exchange: Exchange, request: Request, open: Callable[[Channel], Call], encode: AnswerEncoder
    ) -> None:
        """Handle the call that `open` makes, and send the answer."""
        channel = _ResponseChannel(exchange, self._dispatcher.closing)
        # "Closing the SSE response stream MUST be treated by the server as cancellation of that request."
        watch = ClientWatch(self._dispatcher, exchange, exchange.scope.cancel, exchange.keep_alive)
        line, error = await self._dispatcher.handle(watch, request, partial(open, channel), encode)
        if exchange.streaming:
            await exchange.write(event(line), last=True)
        else:
            await exchange.answer(response_status(error), line)

    def _open(self, exchange: Exchange, request: Request, revision: str, channel: Channel) -> Call:
        if revision not in MODERN_REVISIONS:
            raise _unsupported(revision, request)
        _check(exchange, headers.METHOD, request.method)
        method = self._dispatcher.server.find_method(request.method)
        if method is None or Era.MODERN not in method.eras:
            raise MethodNotFound(request.method)
        try:
            call = self._dispatcher.server.open_call(request, state_of(exchange), channel)
        except UnsupportedRevision as error:
            raise _mismatch(revision, error.requested) from None
        if call.terms.revision != revision:
            raise _mismatch(revision, call.terms.revision)
        if field := headers.NAME_FIELDS.get(request.method):
            _check(exchange, headers.NAME, getattr(call.params, field))
        if isinstance(call.params, CallToolParams):
            self._check_params(exchange, call.params)
        return call

    def _check_params(self, exchange: Exchange, call: CallToolParams) -> None:
        params = self._header_params(call.name)
        if not params:
            return
        try:
            arguments = _arguments.decode(call.arguments)
        except DECODE_ERRORS:
            return  # The tool reports the error in more detail.
        for param in params:
            if reason := param.mismatch(exchange.header(param.header), arguments):
                raise HeaderMismatch(param.header, reason)

    def _header_params(self, name: str) -> tuple[HeaderParam, ...]:
        tool = self._dispatcher.server.tools.get(name)
        if tool is None:
            return ()
        info, params = self._params.get(name, (None, ()))
        if info is not tool.info:
            try:
                params = headers.header_params(tool.info.input_schema)
            except ValueError as error:
                log.error("HTTP clients will leave the tool %s out: %s", name, error)
            self._params[name] = tool.info, params
        return params


def state_of(exchange: Exchange) -> ConnectionState:
    """The state of a stateless client: no more than where its request came from."""
    return ConnectionState(exchange.connection_id, exchange.host)


def _check(exchange: Exchange, header: str, expected: str) -> None:
    if reason := headers.mismatch(exchange.header(header), expected):
        raise HeaderMismatch(header, reason)


def _unsupported(revision: str, request: Request) -> Exception:
    try:
        said = _params.decode(request.params).meta.protocol_version
    except DECODE_ERRORS:
        said = UNSET
    if said in (UNSET, revision):
        return UnsupportedRevision(revision, MODERN_REVISIONS)
    return _mismatch(revision, said)


def _mismatch(header: str, body: str) -> HeaderMismatch:
    return HeaderMismatch(headers.PROTOCOL_VERSION, f"is {header!r}, but the body says {body!r}")
