"""The plain form, for scripts: {"method": "Query", "params": {…}} in, {"result": …} or {"error": …} out.

An older habit of such servers. A tool's name is a method here, and its arguments are the params.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ragmcp import jsonrpc
from ragmcp.call import Call, Channel
from ragmcp.connection import error_object
from ragmcp.eras import LATEST_MODERN, UNKNOWN_CLIENT, Era, Session, Terms
from ragmcp.errors import MethodNotFound, NotEncodable
from ragmcp.jsonrpc import NO_PARAMS, Id, Request
from ragmcp.server import Server, open_call
from ragmcp.subscriptions import LISTEN

# Nobody sees it but the `requestId` of an error.
REQUEST_ID = 0


class _Plain(Struct, frozen=True):
    method: str
    params: Raw = NO_PARAMS
    jsonrpc: Raw | UnsetType = UNSET


_plain = msgspec.json.Decoder(_Plain)


class Plain:
    """Reads and writes the plain form for one server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def parse(self, body: bytes) -> Request | None:
        """The request, None where the body is something else."""
        try:
            plain = _plain.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if plain.jsonrpc is not UNSET:
            return None
        if plain.method not in self._server.tools:
            return Request(REQUEST_ID, plain.method, plain.params)
        call = {"name": plain.method, "arguments": plain.params}
        return Request(REQUEST_ID, "tools/call", Raw(msgspec.json.encode(call)))

    def open(self, request: Request, channel: Channel) -> Call:
        """The call: modern, of nobody in particular. Raises what `open_call` raises."""
        if request.method == LISTEN:  # Its news would have no form here.
            raise MethodNotFound(request.method)
        session = Session()
        session.terms = Terms(Era.MODERN, LATEST_MODERN, UNKNOWN_CLIENT, {})
        return open_call(request, session, channel)

    def answer(self, id: Id, result: Any) -> bytes:
        """As `Form` says."""
        try:
            return msgspec.json.encode({"result": result})
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            return self.refuse(id, NotEncodable("The result", str(error)))

    def refuse(self, id: Id, error: Exception) -> bytes:
        """The same without what makes it JSON-RPC."""
        failure = msgspec.json.decode(jsonrpc.encode_failure(id, error_object(error, id)))
        return msgspec.json.encode({"error": failure["error"]})
