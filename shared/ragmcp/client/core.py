"""What the client's features share: the server's description, the `_meta` of requests, and asking."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ragmcp.client.handlers import NO_HANDLERS, Handlers
from ragmcp.errors import UnreadableAnswer
from ragmcp.peer import Channel
from ragmcp.protocol.eras import LATEST_MODERN, modern_meta
from ragmcp.protocol.jsonrpc import Id
from ragmcp.protocol.results import UNKNOWN_SERVER, complete
from ragmcp.protocol.schema.base import (
    NO_META,
    Implementation,
    LogLevel,
    Params,
    RequestMeta,
    Result,
)
from ragmcp.protocol.schema.discovery import ServerCapabilities
from ragmcp.tracing import NO_TRACE, current

if TYPE_CHECKING:
    from ragmcp.client.cache import ResultCache

R = TypeVar("R", bound=Result)


class Link(Channel, Protocol):
    """The way to a server: a connection, or HTTP."""

    @property
    def next_id(self) -> int:
        """The id that the next request will have."""


class Core:
    """What the client knows of its server. The features send requests through it; `Client` extends it."""

    def __init__(self, channel: Link, identity: Implementation, handlers: Handlers = NO_HANDLERS) -> None:
        self.server = UNKNOWN_SERVER
        self.revision = LATEST_MODERN
        self.capabilities = ServerCapabilities()
        self.instructions: str | None = None
        self.identity = identity
        self.channel = channel
        self.handlers = handlers
        self.declared = handlers.capabilities()
        self.log_level: LogLevel | UnsetType = UNSET

    @property
    def modern(self) -> bool:
        """Whether the server is of the stateless era."""
        return self.revision >= LATEST_MODERN

    @property
    def is_closed(self) -> bool:
        """Whether the connection has ended; over HTTP: whether the last attempt to connect failed."""
        return self.channel.closed.is_set()

    async def closed(self) -> None:
        """Wait until the connection has ended."""
        await self.channel.closed.wait()

    @cached_property
    def cache(self) -> ResultCache:
        """Results that the server said stay fresh for a while."""
        from ragmcp.client.cache import ResultCache

        return ResultCache()

    def meta(self, token: Id | UnsetType = UNSET) -> RequestMeta:
        """The `_meta` of a request; `token` for its progress."""
        trace = current.get()
        if self.modern:
            meta = modern_meta(self.identity, self.revision, self.declared, token)
            if trace is NO_TRACE and self.log_level is UNSET:
                return meta
            return msgspec.structs.replace(
                meta, log_level=self.log_level, traceparent=trace.parent, tracestate=trace.state
            )
        if token is UNSET and trace is NO_TRACE:
            return NO_META
        return RequestMeta(progress_token=token, traceparent=trace.parent, tracestate=trace.state)

    async def request(self, method: str, params: Params, type: type[R], timeout: float | None) -> R:
        """Send a request, whose `params` carry our `meta`, and give the input that the server asks for."""
        answer = await self.channel.request(method, params, timeout)
        return complete(method, answer, type) or await self.go_on(method, params, type, timeout, answer)

    async def go_on(
        self, method: str, _params: Params, _type: type[R], _timeout: float | None, _answer: Raw
    ) -> R:
        """Continue after an `answer` that is not a result yet. Here no such answer is allowed."""
        raise UnreadableAnswer(method, "it is not complete, which this method does not allow")
