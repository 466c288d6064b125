"""What a modern request over HTTP must be like before it is a call: its headers say what its body says."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from msgspec import UNSET

from ragmcp import headers
from ragmcp.call import Call, Channel
from ragmcp.eras import MODERN_REVISIONS, Era, Session
from ragmcp.errors import HeaderMismatch, MethodNotFound, UnsupportedRevision
from ragmcp.headers import Mirror
from ragmcp.jsonrpc import Request
from ragmcp.schema import CallToolParams, Params, ToolInfo
from ragmcp.server import Server, find_method, open_call
from ragmcp.transports.exchange import Exchange

log = logging.getLogger(__name__)

# The fields of our parameter types that `Mcp-Name` repeats.
_FIELDS = {method: "task_id" if name == "taskId" else name for method, name in headers.NAMED_BY.items()}

_params = msgspec.json.Decoder(Params)
_arguments = msgspec.json.Decoder(dict[str, Any])


class Modern:
    """Opens the modern calls of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._mirrors: dict[str, tuple[ToolInfo, tuple[Mirror, ...]]] = {}

    def open(self, exchange: Exchange, request: Request, revision: str, channel: Channel) -> Call:
        """The call. `revision` is the header's. Raises HeaderMismatch, and what `open_call` raises."""
        if revision not in MODERN_REVISIONS:
            raise _unsupported(revision, request)
        headers.check(headers.METHOD, exchange.header(headers.METHOD), request.method)
        method = find_method(request.method)
        if method is None or Era.MODERN not in method.eras:
            raise MethodNotFound(request.method)
        try:
            call = open_call(request, Session(), channel)
        except UnsupportedRevision as error:
            raise _mismatch(revision, error.requested) from None
        if call.revision != revision:
            raise _mismatch(revision, call.revision)
        if field := _FIELDS.get(request.method):
            headers.check(headers.NAME, exchange.header(headers.NAME), getattr(call.params, field))
        if isinstance(call.params, CallToolParams):
            self._check_mirrors(exchange, call.params)
        return call

    def _check_mirrors(self, exchange: Exchange, params: CallToolParams) -> None:
        mirrors = self._mirrors_of(params.name)
        if not mirrors:
            return
        try:
            arguments = _arguments.decode(params.arguments)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # The tool itself says best what is wrong with them.
        given = {mirror.header: exchange.header(mirror.header) for mirror in mirrors}
        headers.check_mirrors(mirrors, arguments, given)

    def _mirrors_of(self, name: str) -> tuple[Mirror, ...]:
        tool = self._server.tools.get(name)
        if tool is None:
            return ()
        info, mirrors = self._mirrors.get(name, (None, ()))
        if info is not tool.info:
            try:
                mirrors = headers.mirrors(tool.info.input_schema)
            except ValueError as error:
                log.error("HTTP clients will leave the tool %s out: %s", name, error)
            self._mirrors[name] = tool.info, mirrors
        return mirrors


def _unsupported(revision: str, request: Request) -> Exception:
    try:
        said = _params.decode(request.params).meta.protocol_version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        said = UNSET
    if said in (UNSET, revision):
        return UnsupportedRevision(revision, MODERN_REVISIONS)
    return _mismatch(revision, said)


def _mismatch(header: str, body: str) -> HeaderMismatch:
    return HeaderMismatch(headers.PROTOCOL_VERSION, f"is {header!r}, but the body says {body!r}")
