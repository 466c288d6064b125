"""MCP over HTTP from the client's end: the newest way that a server knows, and one client for all of them.

Not a process: the server runs already. Ending the body ends what we began there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ragmcp.client import Client, EraName
from ragmcp.handlers import NO_HANDLERS, Handlers
from ragmcp.handshake import discover
from ragmcp.schema import Implementation
from ragmcp.transports.http_client import Http, open_client
from ragmcp.transports.http_modern import ModernHttp

SILENCE_SECONDS = 300.0


@asynccontextmanager
async def open_http(
    url: str,
    *,
    client_name: str,
    client_version: str,
    message_bytes: int,
    era: EraName | None = None,
    token: str | None = None,
    handlers: Handlers = NO_HANDLERS,
    silence_seconds: float | None = SILENCE_SECONDS,
) -> AsyncIterator[Client]:
    """A client of the server at `url`."""
    identity = Implementation(name=client_name, version=client_version)
    async with open_client(url, message_bytes, token, silence_seconds) as http:
        client = _modern(http, identity, handlers)
        if era is None:
            await discover(client)
        yield client


def _modern(http: Http, identity: Implementation, handlers: Handlers) -> Client:
    link = ModernHttp(http, lambda notification: client.heard(notification))
    client = Client(link, identity, handlers)
    client.admit_tools = link.admit_tools
    return client
