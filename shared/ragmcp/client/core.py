"""A server as the features of a client know it: its era and description, requests, lists from all pages.

Source: basic/versioning, server/utilities/pagination and caching.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import UNSET, Raw, UnsetType

from ragmcp.client.handlers import Handlers
from ragmcp.errors import InvalidParams, RequestTimedOut, UnreadableAnswer, WireError
from ragmcp.older_revisions import require_legacy
from ragmcp.peer import Channel
from ragmcp.protocol import eras
from ragmcp.protocol.jsonrpc import Id
from ragmcp.protocol.results import UNKNOWN_SERVER, complete, or_none, server_info
from ragmcp.protocol.schema import base
from ragmcp.protocol.schema.discovery import DiscoverResult, ServerCapabilities
from ragmcp.tracing import current

if TYPE_CHECKING:
    from ragmcp.client.cache import ResultCache

C = TypeVar("C", bound=base.CacheableResult)
P = TypeVar("P", bound=base.Page)
R = TypeVar("R", bound=base.Result)
T = TypeVar("T")

# A server that does not answer `server/discover` is a legacy server: some ignore all requests before
# `initialize`.
PROBE_SECONDS = 5.0
# A list with more pages is taken to be endless.
MAX_PAGES = 10_000


class Link(Channel, Protocol):
    """The way to a server: a connection, or HTTP."""

    @property
    def next_id(self) -> int:
        """The id that the next request will have."""


class Core:
    """What the client knows of its server. The features send requests through it; `Client` extends it."""

    def __init__(self, channel: Link, identity: base.Implementation, handlers: Handlers) -> None:
        self.server = UNKNOWN_SERVER
        self.revision = eras.LATEST_MODERN
        self.capabilities = ServerCapabilities()
        self.instructions: str | None = None
        self.identity = identity
        self.channel = channel
        self.handlers = handlers
        self.declared = handlers.capabilities()
        self.log_level: base.LogLevel | UnsetType = UNSET

    @property
    def modern(self) -> bool:
        """Whether the server is of the stateless era."""
        return self.revision >= eras.LATEST_MODERN

    @property
    def is_closed(self) -> bool:
        """Whether the connection has ended; over HTTP: whether the last attempt to connect failed."""
        return self.channel.closed.is_set()

    async def closed(self) -> None:
        """Wait until the connection has ended."""
        await self.channel.closed.wait()

    # The handshake

    async def negotiate(self) -> None:
        """Find out the server's era, and shake hands with a legacy one. Raises UnsupportedRevision."""
        if await self.discover():
            return
        try:
            await self.initialize()
        except WireError as error:
            # It is a modern server that started too slowly for the first probe.
            if error.code not in eras.MODERN_ERRORS or not await self.discover():
                raise

    async def discover(self) -> bool:
        """Find out whether the server is modern, and its revision. Raises UnsupportedRevision."""
        self.revision = eras.LATEST_MODERN
        answer = await self._probe()
        revision = eras.verdict(answer)
        if revision is None:
            return False
        self.revision = revision
        if isinstance(answer, WireError) and answer.code == eras.UNSUPPORTED_VERSION:
            answer = await self._probe()
        if isinstance(answer, Raw) and (found := complete("server/discover", answer, DiscoverResult)):
            self.server = server_info(found)
            self.capabilities = found.capabilities
            self.instructions = or_none(found.instructions)
        return True

    async def _probe(self) -> Raw | WireError | None:
        try:
            params = base.Params(meta=self.meta())
            return await self.channel.request("server/discover", params, PROBE_SECONDS)
        except WireError as error:
            return error
        except RequestTimedOut:
            return None

    async def initialize(self) -> None:
        """The legacy handshake. Raises UnreadableAnswer for an unknown revision, UnsupportedRevision."""
        await require_legacy("client").initialize(self)

    # Requests

    def meta(self, token: Id | UnsetType = UNSET) -> base.RequestMeta:
        """The `_meta` of a request; `token` for its progress."""
        trace = current.get()
        if self.modern:
            return base.RequestMeta(
                protocol_version=self.revision,
                client_info=self.identity,
                client_capabilities=self.declared,
                log_level=self.log_level,
                progress_token=token,
                traceparent=trace.traceparent,
                tracestate=trace.tracestate,
            )
        if token is UNSET and trace is base.NO_META:
            return base.NO_META
        return base.RequestMeta(
            progress_token=token, traceparent=trace.traceparent, tracestate=trace.tracestate
        )

    async def request(self, method: str, params: base.Params, type: type[R], timeout: float | None) -> R:
        """Send a request, whose `params` carry our `meta`, and give the input that the server asks for."""
        answer = await self.channel.request(method, params, timeout)
        return complete(method, answer, type) or await self.go_on(method, params, type, timeout, answer)

    async def go_on(
        self, method: str, _params: base.Params, _type: type[R], _timeout: float | None, _answer: Raw
    ) -> R:
        """Continue after an `answer` that is not a result yet. Here no such answer is allowed."""
        raise UnreadableAnswer(method, "it is not complete, which this method does not allow")

    # Cached results and lists

    @cached_property
    def cache(self) -> ResultCache:
        """Results that the server said stay fresh for a while."""
        from ragmcp.client.cache import ResultCache

        return ResultCache()

    async def request_cached(
        self, method: str, subject: str, params: base.Params, type: type[C], timeout: float | None
    ) -> C:
        """As `request`, or the cached result if the last answer about this `subject` is still fresh.

        A result that required input is not cached: it depends on more than the request.
        """
        age = self.cache.age
        if (cached := self.cache.find((method, subject), type)) is not None:
            return cached
        answer = await self.channel.request(method, params, timeout)
        if (result := complete(method, answer, type)) is None:
            return await self.go_on(method, params, type, timeout, answer)
        self.cache.keep((method, subject), result, len(memoryview(answer)), age)
        return result

    async def list_all(
        self, method: str, type: type[P], items: Callable[[P], Iterable[T]], timeout: float | None
    ) -> list[T]:
        """The `items` of all pages; `timeout` (seconds) is for each page. Raises as `request`."""
        try:
            pages = await self._pages(method, type, timeout)
        except WireError as error:
            # "If a cursor becomes invalid, discard all cached pages and re-fetch from the beginning."
            if error.code != InvalidParams.rpc_code or not self.cache.forget(method):
                raise
            pages = await self._pages(method, type, timeout)
        return [item for page in pages for item in items(page)]

    async def _pages(self, method: str, type: type[P], timeout: float | None) -> list[P]:
        pages: list[P] = []
        cursor: str | UnsetType = UNSET
        while len(pages) < MAX_PAGES:
            params = base.ListParams(meta=self.meta(), cursor=cursor)
            page = await self.request_cached(method, cursor or "", params, type, timeout)
            pages.append(page)
            if self.server is UNKNOWN_SERVER:
                self.server = server_info(page)
            cursor = page.next_cursor
            if cursor is UNSET:
                return pages
        raise UnreadableAnswer(method, f"its list does not end within {MAX_PAGES:,} pages")
