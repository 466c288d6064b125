"""MCP over HTTP from the client's end: the newest way that a server knows, and one client for all of them.

Not a process: the server runs already. Leaving ends what we began there, and nothing else.
Source: basic/transports/streamable-http#backward-compatibility.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum, auto
from typing import Protocol

from ragmcp.client.client import Client, EraName, connect
from ragmcp.client.core import Link
from ragmcp.client.handlers import NO_HANDLERS, Handlers
from ragmcp.client.handshake import discover, initialize
from ragmcp.concurrency import beside
from ragmcp.errors import WireError
from ragmcp.http.client import Http, open_client, status_of
from ragmcp.http.errors import HttpRefused
from ragmcp.http.modern_client import ModernHttp
from ragmcp.older_revisions import require_legacy
from ragmcp.protocol.eras import MODERN_ERRORS
from ragmcp.protocol.schema.base import Implementation
from ragmcp.streams import Stream

# How long a server may say nothing at all while we wait for it. Streams are opened anew after that.
SILENCE_SECONDS = 300.0

# These say who may ask, or that nobody can just now; a server that only is older says something else.
FINAL_STATUSES = frozenset({401, 403, 407, 429, 502, 503, 504})
# What a server answers to `initialize` that knows HTTP+SSE only.
SSE_STATUSES = frozenset({400, 404, 405})


class RunningLink(Link, Protocol):
    """A link that needs a task beside the requests."""

    async def run(self) -> None:
        """Until cancelled."""


class _Way(Enum):
    LEGACY = auto()
    SSE = auto()


# The verdict on a server is a property of the server: who opens it again need not ask for ways it has not.
_found: dict[str, _Way] = {}


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
    """A client of the server at `url`, which may be asked again after it was away.

    `message_bytes` is the longest message read; `era` None: find out, "modern": no question asked before the
    first request, "legacy": handshake only; `token` is sent to this server alone, as a bearer token;
    `silence_seconds` is how long a server may say nothing while it is asked (None: for ever).
    Raises ServerUnreachable, HttpRefused, ConnectionClosed, RequestTimedOut, WireError, UnsupportedRevision,
    UnreadableAnswer.
    """
    identity = Implementation(name=client_name, version=client_version)
    async with open_client(url, message_bytes, token, silence_seconds) as http, AsyncExitStack() as stack:
        opening = _Opening(http, identity, handlers, stack)
        if era == "modern":
            yield opening.modern()
        elif era == "legacy":
            client, _ = await opening.shaken()
            yield client
        else:
            # Whatever goes wrong, the next one asks from the beginning.
            client, way = await opening.find(_found.pop(url, None))
            if way is not None:
                _found[url] = way
            yield client


class _Opening:
    """Tries one way after the other; what it opened stays open with `stack`."""

    def __init__(
        self, http: Http, identity: Implementation, handlers: Handlers, stack: AsyncExitStack
    ) -> None:
        self._http = http
        self._identity = identity
        self._handlers = handlers
        self._stack = stack

    async def find(self, known: _Way | None) -> tuple[Client, _Way | None]:
        """A client, and the way by which it speaks; None: the modern one."""
        if known is _Way.SSE:
            return await self._sse(), known
        if known is None and (client := await self._discovered()):
            return client, None
        try:
            return await self.shaken()
        except WireError as error:
            # Modern after all: it only started too slowly for the first question.
            if error.code in MODERN_ERRORS and (client := await self._discovered()):
                return client, None
            raise

    async def shaken(self) -> tuple[Client, _Way]:
        """The same for a server that wants a handshake."""
        try:
            return await self._legacy(), _Way.LEGACY
        except (WireError, HttpRefused) as error:
            modern = isinstance(error, WireError) and error.code in MODERN_ERRORS
            if modern or status_of(error) not in SSE_STATUSES:
                raise
            refused = error
        try:
            return await self._sse(), _Way.SSE
        except (WireError, HttpRefused):
            raise refused from None

    def modern(self) -> Client:
        """A client of a server known to be modern."""
        link = ModernHttp(self._http, lambda notification: client.handle_notification(notification))
        client = Client(link, self._identity, self._handlers)
        client.admit_tools = link.admit_tools
        return client

    async def _discovered(self) -> Client | None:
        client = self.modern()
        try:
            return client if await discover(client) else None
        except HttpRefused as refusal:
            if refusal.status in FINAL_STATUSES:
                raise
            return None

    async def _legacy(self) -> Client:
        client: Client
        link: RunningLink = require_legacy("http_client").LegacyHttp(
            self._http,
            lambda request: client.answer(request),
            lambda notification: client.handle_notification(notification),
        )
        client = Client(link, self._identity, self._handlers)
        async with AsyncExitStack() as attempt:
            await attempt.enter_async_context(beside(link.run))
            await initialize(client)
            await self._stack.enter_async_context(attempt.pop_all())
        return client

    async def _sse(self) -> Client:
        stream: Stream = await self._stack.enter_async_context(
            require_legacy("sse_client").open_sse(self._http)
        )
        return await self._stack.enter_async_context(
            connect(
                stream,
                self._identity,
                message_bytes=self._http.message_bytes,
                era="legacy",
                handlers=self._handlers,
            )
        )
