"""What a client does only for older servers: the handshake, log levels, subscriptions to resources.

Source: basic/lifecycle and server/resources of 2025-11-25.
"""

from __future__ import annotations

from collections.abc import Iterable

from ragmcp.client.core import Core
from ragmcp.errors import UnreadableAnswer
from ragmcp.legacy.schema import InitializeParams, InitializeResult, SetLevelParams
from ragmcp.protocol.eras import LATEST_LEGACY, LEGACY_REVISIONS
from ragmcp.protocol.results import or_none
from ragmcp.protocol.schema.base import EmptyResult, LogLevel
from ragmcp.protocol.schema.resources import ResourceParams

SUBSCRIBE_SECONDS = 10.0


async def initialize(core: Core) -> None:
    """The handshake. Raises UnreadableAnswer for a revision we do not speak."""
    core.revision = LATEST_LEGACY
    params = InitializeParams(
        protocol_version=LATEST_LEGACY, client_info=core.identity, capabilities=core.declared
    )
    found = await core.request("initialize", params, InitializeResult)
    core.revision = found.protocol_version
    if core.revision not in LEGACY_REVISIONS:
        reason = f"it chose the protocol version {core.revision!r}, which we do not speak"
        raise UnreadableAnswer("initialize", reason)
    core.server = found.server_info
    core.capabilities = found.capabilities
    core.instructions = or_none(found.instructions)
    await core.channel.notify("notifications/initialized", {})


async def watch(core: Core, method: str, uris: Iterable[str]) -> None:
    """Send `resources/subscribe` or `resources/unsubscribe` for each resource."""
    for uri in uris:
        params = ResourceParams(meta=core.meta(), uri=uri)
        await core.request(method, params, EmptyResult, SUBSCRIBE_SECONDS)


async def set_log_level(core: Core, level: LogLevel) -> None:
    """Ask for log messages of this severity and above."""
    params = SetLevelParams(meta=core.meta(), level=level)
    await core.request("logging/setLevel", params, EmptyResult)
