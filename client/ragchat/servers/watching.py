"""Watches the resources that the user has attached, and reports the next change of each."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio
from msgspec import UNSET

from ragmcp.client.features import Client
from ragmcp.errors import RagMcpError
from ragmcp.protocol.schema.subscriptions import Filter

log = logging.getLogger(__name__)

# Only the last attached resources are watched.
MAX_WATCHED = 20
CHANGED = "@{server}:{uri} has changed since you attached it. Attach it again to use its new text."


class ResourceWatch:
    """The resources of `server`; `tell` shows the user a line."""

    def __init__(self, server: str, tell: Callable[[str], None]) -> None:
        self._server = server
        self._tell = tell
        self.uris: dict[str, None] = {}
        """The watched resources, in the order in which they were attached."""
        self._subscribed = anyio.CancelScope()
        self._added = anyio.Event()

    def add(self, uri: str) -> None:
        """Watch a resource."""
        known = uri in self.uris
        self.uris.pop(uri, None)
        self.uris[uri] = None
        if not known:
            for oldest in [*self.uris][:-MAX_WATCHED]:
                del self.uris[oldest]
            self._added.set()
            self._subscribed.cancel()

    async def follow(self, client: Client) -> None:
        """Report changes until the connection ends; returns at once if the server does not support this."""
        offered = client.capabilities.resources
        if offered is UNSET or not offered.get("subscribe"):
            return
        while not client.is_closed:
            self._added = anyio.Event()
            if not self.uris:
                await self._added.wait()
            with anyio.CancelScope() as self._subscribed:
                await self._subscribe(client)

    async def _subscribe(self, client: Client) -> None:
        """Subscribe until another resource is added."""
        try:
            async with client.subscribe(Filter(resource_subscriptions=[*self.uris])) as changes:
                async for change in changes:
                    if change.subject in self.uris:
                        del self.uris[change.subject]
                        self._tell(CHANGED.format(server=self._server, uri=change.subject))
        except RagMcpError as error:
            log.info("The resources of %s are not watched: %s", self._server, error)
        await self._added.wait()
