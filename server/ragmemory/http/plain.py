"""The plain form, for scripts: {"method": "Query", "params": {…}} in, {"result": …} or {"error": …} out.

Older servers of this kind used it. The method is the name of a tool, with its arguments as params, or an MCP
method. An `id` is optional, and is repeated in the answer.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ragmcp.errors import MethodNotFound
from ragmcp.http.asgi import Endpoint
from ragmcp.http.exchange import JSON, Exchange
from ragmcp.http.server import state_of
from ragmcp.peer import Channel
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.decoding import DECODE_ERRORS
from ragmcp.protocol.eras import LATEST_MODERN, ConnectionState, Era, Terms
from ragmcp.protocol.jsonrpc import NO_PARAMS, Id, Request
from ragmcp.protocol.schema.base import UNKNOWN
from ragmcp.protocol.schema.subscriptions import LISTEN
from ragmcp.server.call import Call
from ragmcp.server.core import Server


class _Body(Struct, frozen=True):
    method: str
    params: Raw = NO_PARAMS
    # The same limits as for ids in JSON-RPC.
    id: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | str | None = None
    jsonrpc: Raw | UnsetType = UNSET


_body = msgspec.json.Decoder(_Body)
_members = msgspec.json.Decoder(dict[str, Raw])


class PlainEndpoint(Endpoint):
    """An endpoint that reads the plain form too. Its answers are never event streams."""

    async def post(self, exchange: Exchange) -> None:
        """Answer a request in the plain form, and all others as usual."""
        exchange.check_content()
        plain = parse(self.server, await exchange.body()) if exchange.accepts(JSON) else None
        if plain is None:
            await super().post(exchange)
            return
        exchange.mute = True
        open = partial(plain.open, state_of(exchange))
        await self.modern.answer(exchange, plain.message, open, plain.encode)


class PlainRequest:
    """One request in the plain form, and the encoder of its answer, which repeats the id if there is one."""

    def __init__(self, server: Server, id: Id | None, method: str, params: Raw) -> None:
        self._server = server
        self._id = id
        # Other code needs an id; this 0 is never sent.
        self.message = Request(0 if id is None else id, method, params)

    def open(self, state: ConnectionState, channel: Channel) -> Call:
        """A modern call of an unknown client. Raises what `Server.open_call` raises."""
        if self.message.method == LISTEN:  # There are no notifications in the plain form.
            raise MethodNotFound(LISTEN)
        state.terms = Terms(Era.MODERN, LATEST_MODERN, UNKNOWN, {})
        call = self._server.open_call(self.message, state, channel)
        call.id = self._id
        return call

    def encode(self, _: Id, outcome: Any) -> bytes:
        """The answer: that of JSON-RPC without its version, and without an id where none was sent."""
        members = _members.decode(jsonrpc.encode_answer(self._id, outcome))
        del members["jsonrpc"]
        if self._id is None:
            del members["id"]
        return msgspec.json.encode(members)


def parse(server: Server, body: bytes) -> PlainRequest | None:
    """The request in a body; None for a body in another form."""
    try:
        plain = _body.decode(body)
    except DECODE_ERRORS:
        return None
    if plain.jsonrpc is not UNSET:
        return None
    if plain.method not in server.tools and plain.method not in server.withheld:
        return PlainRequest(server, plain.id, plain.method, plain.params)
    call = {"name": plain.method, "arguments": plain.params}
    return PlainRequest(server, plain.id, "tools/call", Raw(msgspec.json.encode(call)))
