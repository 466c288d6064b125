"""Connect to a running server over HTTP, by the newest transport that it supports.

Leaving ends our requests and our session, not the server.
Source: basic/transports/streamable-http#backward-compatibility.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal, TypeAlias

from msgspec import Struct

from ragmcp.client.core import ANONYMOUS, negotiate
from ragmcp.client.features import Client, EraName, connect
from ragmcp.client.handlers import NO_HANDLERS, Handlers
from ragmcp.concurrency import background_task, require_asyncio
from ragmcp.errors import ConnectionClosed, WireError
from ragmcp.http.client import Authorization, Http, open_client, status_of
from ragmcp.http.errors import HttpRefused
from ragmcp.http.modern_client import ModernHttp
from ragmcp.older_revisions import require_legacy
from ragmcp.protocol.eras import MODERN_ERRORS
from ragmcp.protocol.framing import MESSAGE_BYTES
from ragmcp.protocol.schema.base import Implementation

# How long a server may send nothing while we wait for it. After that, event streams are opened again.
SILENCE_SECONDS = 300.0

# The client may not use the server, or the server is unavailable. Older servers answer with other statuses.
FINAL_STATUSES = frozenset({401, 403, 407, 429, 502, 503, 504})
# How a server that only supports HTTP+SSE answers `initialize`.
SSE_STATUSES = frozenset({400, 404, 405})


# Streamable HTTP with sessions, and what came before it.
OldTransport: TypeAlias = Literal["streamable", "sse"]

# The old transports found so far, by URL: the next connection does not probe again.
_found: dict[str, OldTransport] = {}


@asynccontextmanager
async def open_http(
    url: str,
    *,
    client_name: str = ANONYMOUS.name,
    client_version: str = ANONYMOUS.version,
    message_bytes: int = MESSAGE_BYTES,
    era: EraName | None = None,
    token: str | None = None,
    headers: Mapping[str, str] = {},
    authorization: Authorization | None = None,
    handlers: Handlers = NO_HANDLERS,
    silence_seconds: float | None = SILENCE_SECONDS,
) -> AsyncIterator[Client]:
    """A client of the server at `url`; it can still be used after the server was away.

    `message_bytes` is the longest message read; `era` None: probe the server, "modern": no probe, "legacy":
    handshake only; `token` is sent to this server only, as a bearer token, and so are further `headers`;
    `authorization` adds and renews tokens by itself (`ragmcp.oauth`); `silence_seconds` is how long
    the server may send nothing during a request (None: no limit).
    Raises ServerUnreachable, HttpRefused, ConnectionClosed, RequestTimedOut, WireError, UnsupportedRevision,
    UnreadableAnswer, AuthorizationFailed, AsyncioRequired.
    """
    require_asyncio()
    identity = Implementation(name=client_name, version=client_version)
    async with (
        open_client(url, message_bytes, token, silence_seconds, headers, authorization) as http,
        AsyncExitStack() as stack,
    ):
        opening = _Opening(http, identity, handlers, stack)
        try:
            if era == "modern":
                yield opening.modern()
            elif era == "legacy":
                client, _ = await opening.legacy()
                yield client
            else:
                # After a failure the next connection probes again.
                client, transport = await opening.find(_found.pop(url, None))
                if transport is not None:
                    _found[url] = transport
                yield client
        except ConnectionClosed as error:
            if error.reason or http.failure is None:  # The error of another connection, raised in the body.
                raise
            raise ConnectionClosed(error.method, http.failure.reason) from None


class _Opening(Struct):
    """Tries one transport after the other; `stack` closes the one that works."""

    http: Http
    identity: Implementation
    handlers: Handlers
    stack: AsyncExitStack

    async def find(self, known: OldTransport | None) -> tuple[Client, OldTransport | None]:
        """A client, and the old transport that it uses; None: the modern one."""
        if known == "sse":
            return await self._sse(), known
        return await negotiate(self._discovered, self.legacy, known=known is not None)

    async def legacy(self) -> tuple[Client, OldTransport]:
        """The same for a server that requires a handshake."""
        try:
            return await self._streamable(), "streamable"
        except (WireError, HttpRefused) as error:
            modern = isinstance(error, WireError) and error.code in MODERN_ERRORS
            if modern or status_of(error) not in SSE_STATUSES:
                raise
            refused = error
        try:
            return await self._sse(), "sse"
        except (WireError, HttpRefused):
            raise refused from None

    def modern(self) -> Client:
        """A client of a server known to be modern."""
        client = Client(self.identity, self.handlers)
        client.channel = channel = ModernHttp(self.http, client.handle_notification)
        client.admit_tool = channel.admit_tool
        return client

    async def _discovered(self) -> tuple[Client, None] | None:
        client = self.modern()
        try:
            return (client, None) if await client.discover() else None
        except HttpRefused as refusal:
            if refusal.status in FINAL_STATUSES:
                raise
            return None

    async def _streamable(self) -> Client:
        client = Client(self.identity, self.handlers)
        legacy = require_legacy("http_client")
        client.channel = channel = legacy.LegacyHttp(self.http, client.answer, client.handle_notification)
        async with AsyncExitStack() as attempt:
            await attempt.enter_async_context(background_task(channel.run))
            await client.initialize()
            await self.stack.enter_async_context(attempt.pop_all())
        return client

    async def _sse(self) -> Client:
        stream = await self.stack.enter_async_context(require_legacy("sse_client").open_sse(self.http))
        limit = self.http.message_bytes
        connecting = connect(stream, self.identity, message_bytes=limit, era="legacy", handlers=self.handlers)
        return await self.stack.enter_async_context(connecting)
