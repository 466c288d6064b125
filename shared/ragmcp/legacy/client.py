"""What a client does only for older servers: the handshake, log levels, subscriptions to resources.

Source: basic/lifecycle and server/resources of 2025-11-25.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import anyio

from ragmcp.client.core import Core
from ragmcp.client.subscriptions import ACKNOWLEDGE_SECONDS, Subscription
from ragmcp.errors import ConnectionClosed, RagMcpError, UnreadableAnswer
from ragmcp.legacy.schema import InitializeParams, InitializeResult, SetLevelParams
from ragmcp.protocol.eras import LATEST_LEGACY, LEGACY_REVISIONS
from ragmcp.protocol.results import or_none
from ragmcp.protocol.schema.base import EmptyResult, LogLevel
from ragmcp.protocol.schema.resources import ResourceParams

# A server may load a lot before its first answer; a server that never answers must not hang its host.
HANDSHAKE_SECONDS = 60.0
UNSUBSCRIBE_SECONDS = 2.0


async def initialize(core: Core) -> None:
    """The handshake. Raises UnreadableAnswer for a revision we do not speak."""
    core.revision = LATEST_LEGACY
    params = InitializeParams(
        protocol_version=LATEST_LEGACY, client_info=core.identity, capabilities=core.declared
    )
    found = await core.request("initialize", params, InitializeResult, HANDSHAKE_SECONDS)
    core.revision = found.protocol_version
    if core.revision not in LEGACY_REVISIONS:
        reason = f"it chose the protocol version {core.revision!r}, which we do not speak"
        raise UnreadableAnswer("initialize", reason)
    core.server = found.server_info
    core.capabilities = found.capabilities
    core.instructions = or_none(found.instructions)
    await core.channel.notify("notifications/initialized", {})


async def set_log_level(core: Core, level: LogLevel) -> None:
    """Ask for log messages of this severity and above."""
    params = SetLevelParams(meta=core.meta(), level=level)
    await core.request("logging/setLevel", params, EmptyResult, HANDSHAKE_SECONDS)


class Watch:
    """The resources that a client watches at its server, each by one or more subscriptions."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._watched: Counter[str] = Counter()
        # One subscription at a time changes what the server watches.
        self._changing = anyio.Lock()

    async def keep(self, subscription: Subscription) -> None:
        """Watch the resources of a subscription until it is cancelled or the connection ends."""
        watched: list[str] = []
        try:
            for uri in subscription.requested.resource_subscriptions or []:
                await self._begin(uri)
                watched.append(uri)
            subscription.acknowledge(subscription.requested)
            await self._core.closed()
            subscription.end(ConnectionClosed())
        except RagMcpError as error:
            subscription.end(error)
        finally:
            with anyio.move_on_after(UNSUBSCRIBE_SECONDS, shield=True):
                for uri in watched:
                    await self._end(uri)

    async def _begin(self, uri: str) -> None:
        async with self._changing:
            if not self._watched[uri]:
                await self._request("resources/subscribe", uri)
            self._watched[uri] += 1

    async def _end(self, uri: str) -> None:
        async with self._changing:
            self._watched[uri] -= 1
            if not self._watched[uri]:
                del self._watched[uri]
                with suppress(RagMcpError):
                    await self._request("resources/unsubscribe", uri)

    async def _request(self, method: str, uri: str) -> None:
        params = ResourceParams(meta=self._core.meta(), uri=uri)
        await self._core.request(method, params, EmptyResult, timeout=ACKNOWLEDGE_SECONDS)
