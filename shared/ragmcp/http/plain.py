"""The plain form, for scripts: {"method": "Query", "params": {…}} in, {"result": …} or {"error": …} out.

An older habit of such servers. A tool's name is a method here, and its arguments are the params; an `id` is
not needed, and comes back where there is one.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ragmcp.errors import MethodNotFound, NotEncodable
from ragmcp.peer import Channel
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.connection import error_object
from ragmcp.protocol.eras import LATEST_MODERN, UNKNOWN_CLIENT, Era, Session, Terms
from ragmcp.protocol.jsonrpc import NO_PARAMS, Id, Request
from ragmcp.protocol.schema.subscriptions import LISTEN
from ragmcp.server.call import Call
from ragmcp.server.server import Server, open_call


class _Body(Struct, frozen=True):
    method: str
    params: Raw = NO_PARAMS
    # No longer than the protocol itself takes them.
    id: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | str | None = None
    jsonrpc: Raw | UnsetType = UNSET


_body = msgspec.json.Decoder(_Body)


class PlainRequest:
    """One request in the plain form, and the form of its answer: with its own id, or with none."""

    def __init__(self, id: Id | None, method: str, params: Raw) -> None:
        self._id = id
        # Everybody else knows only requests with an id. Nobody sees this 0.
        self.message = Request(0 if id is None else id, method, params)

    def open(self, channel: Channel) -> Call:
        """The call: modern, of nobody in particular. Raises what `open_call` raises."""
        if self.message.method == LISTEN:  # Its news would have no form here.
            raise MethodNotFound(LISTEN)
        session = Session()
        session.terms = Terms(Era.MODERN, LATEST_MODERN, UNKNOWN_CLIENT, {})
        call = open_call(self.message, session, channel)
        call.id = self._id
        return call

    # `Form`; what it names as the id may be the one that nobody sees.

    def answer(self, id: Id, result: Any) -> bytes:
        """As `Form` says."""
        try:
            return self._written("result", result)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            return self.refuse(id, NotEncodable("The result", str(error)))

    def refuse(self, _: Id, error: Exception) -> bytes:
        """The same without what makes it JSON-RPC."""
        failure = jsonrpc.encode_failure(self._id, error_object(error, self._id))
        return self._written("error", msgspec.json.decode(failure)["error"])

    def _written(self, name: str, value: Any) -> bytes:
        return msgspec.json.encode(({} if self._id is None else {"id": self._id}) | {name: value})


def parse(server: Server, body: bytes) -> PlainRequest | None:
    """The request in a body, None where that is something else."""
    try:
        plain = _body.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if plain.jsonrpc is not UNSET:
        return None
    if plain.method not in server.tools:
        return PlainRequest(plain.id, plain.method, plain.params)
    call = {"name": plain.method, "arguments": plain.params}
    return PlainRequest(plain.id, "tools/call", Raw(msgspec.json.encode(call)))
