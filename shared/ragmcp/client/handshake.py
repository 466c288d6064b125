"""How a client finds out what a server speaks, and begins to speak it. Source: basic/versioning."""

from __future__ import annotations

from msgspec import Raw

from ragmcp.client.client import Client
from ragmcp.errors import RequestTimedOut, WireError
from ragmcp.protocol.eras import (
    LATEST_LEGACY,
    LATEST_MODERN,
    MODERN_ERRORS,
    UNSUPPORTED_VERSION,
    check_legacy,
    verdict,
)
from ragmcp.protocol.results import complete, given, server_info
from ragmcp.protocol.schema.base import Implementation, Params
from ragmcp.protocol.schema.discovery import DiscoverResult
from ragmcp.protocol.schema.initialize import InitializeParams, InitializeResult

# A server that says nothing to `server/discover` is a legacy one that ignores what comes before `initialize`.
PROBE_SECONDS = 5.0
# A server may load a lot before it answers the first time; one that never does must not hang its host.
HANDSHAKE_SECONDS = 60.0


async def settle(client: Client) -> None:
    """Find out the server's era, and shake hands with a legacy one. Raises UnsupportedRevision."""
    if await discover(client):
        return
    try:
        await initialize(client)
    except WireError as error:
        # Modern after all: it only started too slowly for the first probe.
        if error.code not in MODERN_ERRORS or not await discover(client):
            raise


async def discover(client: Client) -> bool:
    """Find out whether the server is modern, and its revision. Raises UnsupportedRevision."""
    client.revision = LATEST_MODERN
    answer = await _probe(client)
    revision = verdict(answer)
    if revision is None:
        return False
    client.revision = revision
    if isinstance(answer, WireError) and answer.code == UNSUPPORTED_VERSION:
        answer = await _probe(client)
    if isinstance(answer, Raw) and (found := complete("server/discover", answer, DiscoverResult)):
        _introduce(client, server_info(found), found)
    return True


async def _probe(client: Client) -> Raw | WireError | None:
    try:
        return await client.channel.request("server/discover", Params(meta=client.meta()), PROBE_SECONDS)
    except WireError as error:
        return error
    except RequestTimedOut:
        return None


async def initialize(client: Client) -> None:
    """The legacy handshake. Raises UnreadableAnswer for a revision we do not speak."""
    client.revision = LATEST_LEGACY
    params = InitializeParams(
        protocol_version=LATEST_LEGACY, client_info=client.identity, capabilities=client.declared
    )
    found = await client.request("initialize", params, InitializeResult, HANDSHAKE_SECONDS)
    client.revision = check_legacy(found.protocol_version)
    _introduce(client, found.server_info, found)
    await client.channel.notify("notifications/initialized", {})


def _introduce(client: Client, server: Implementation, found: DiscoverResult | InitializeResult) -> None:
    client.server = server
    client.capabilities = found.capabilities
    client.instructions = given(found.instructions)
