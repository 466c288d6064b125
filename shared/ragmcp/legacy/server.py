"""What a server does only for older revisions: handshake, ping, log levels, watched resources, requests.

`Server` loads it when a client first uses a method that only older revisions have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from ragmcp.errors import InvalidParams, UnreadableAnswer
from ragmcp.legacy.schema import InitializeParams, InitializeResult, SetLevelParams
from ragmcp.peer import Channel
from ragmcp.protocol.decoding import decode
from ragmcp.protocol.eras import LATEST_LEGACY, LEGACY_REVISIONS, ConnectionState, Era, Terms
from ragmcp.protocol.schema.base import EmptyResult, Implementation, Params, Result
from ragmcp.protocol.schema.discovery import ServerCapabilities
from ragmcp.protocol.schema.input import InputRequest
from ragmcp.protocol.schema.resources import ResourceParams
from ragmcp.protocol.schema.subscriptions import LIST_CHANGED, RESOURCE_UPDATED, Change
from ragmcp.server.call import Call, Methods, method
from ragmcp.server.subscriptions import Broadcast

# The most resources that one connection may watch.
MAX_WATCHED = 1_000
# The longest URI that can be watched, in characters: the session keeps it.
MAX_WATCHED_URI = 8_192


def legacy_methods(
    info: Implementation, capabilities: ServerCapabilities, instructions: str | UnsetType
) -> Methods:
    """The methods that only older revisions have, for the capabilities of the server."""

    async def initialize(call: Call, params: InitializeParams) -> Result:
        asked = params.protocol_version
        revision = asked if asked in LEGACY_REVISIONS else LATEST_LEGACY
        call.session.terms = Terms(Era.LEGACY, revision, params.client_info, params.capabilities)
        return InitializeResult(
            protocol_version=revision, capabilities=capabilities, server_info=info, instructions=instructions
        )

    methods = {
        "initialize": method(InitializeParams, initialize, Era.LEGACY),
        "ping": method(Params, _ping, Era.LEGACY),
    }
    if capabilities.logging is not UNSET:
        methods["logging/setLevel"] = method(SetLevelParams, _set_level, Era.LEGACY)
    if capabilities.resources is not UNSET:
        methods["resources/subscribe"] = method(ResourceParams, _subscribe, Era.LEGACY)
        methods["resources/unsubscribe"] = method(ResourceParams, _unsubscribe, Era.LEGACY)
    return methods


async def _ping(_: Call, __: Params) -> Result:
    return EmptyResult()


async def _set_level(call: Call, params: SetLevelParams) -> Result:
    call.session.log_level = params.level
    return EmptyResult()


async def _subscribe(call: Call, params: ResourceParams) -> Result:
    watched = call.session.subscriptions
    if len(params.uri) > MAX_WATCHED_URI:
        raise InvalidParams("$.uri", f"it is longer than {MAX_WATCHED_URI:,} characters")
    if len(watched) >= MAX_WATCHED and params.uri not in watched:
        raise InvalidParams("$.uri", f"this connection watches {MAX_WATCHED:,} resources already")
    watched.add(params.uri)
    return EmptyResult()


async def _unsubscribe(call: Call, params: ResourceParams) -> Result:
    call.session.subscriptions.discard(params.uri)
    return EmptyResult()


async def ask(channel: Channel, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
    """Send requests to the client in sequence: a person answers one form at a time.

    Returns the answers by the keys of their requests. Raises as `Channel.request`.
    """
    answers = {}
    for key, request in requests.items():
        answer = await channel.request(request.method, request)
        try:
            answers[key] = decode(msgspec.json.Decoder(request.answer), answer)
        except InvalidParams as error:
            raise UnreadableAnswer(request.method, f"{error.path}: {error.reason}") from None
    return answers


async def forward_changes(broadcast: Broadcast, session: ConnectionState, channel: Channel) -> None:
    """Send a connection all changes of lists and of the resources it watches; never returns."""

    def wanted(change: Change) -> bool:
        if session.terms is None:
            return False
        return change.method.endswith(LIST_CHANGED) or (
            change.method == RESOURCE_UPDATED and change.subject in session.subscriptions
        )

    with broadcast.subscribed(wanted, session.subscriptions) as queue:
        while True:
            change = await queue.get()
            await channel.notify(change.method, change.params)
