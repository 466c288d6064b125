"""The client: asks one server, in the era it speaks.

Not the transport: a client asks through a `Link`, be it a connection (`connect`) or HTTP; how the server
is reached, and its process started and ended, is the concern of `stdio` and `http`.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ragmcp.client.handlers import NO_HANDLERS, Handlers
from ragmcp.client.listing import every_page, fresh
from ragmcp.concurrency import beside, confined
from ragmcp.errors import UnreadableAnswer, WireError
from ragmcp.peer import Channel, Peer
from ragmcp.protocol.connection import Connection
from ragmcp.protocol.eras import HEADER_MISMATCH, LATEST_MODERN, modern_meta
from ragmcp.protocol.jsonrpc import Id, Notification, Request
from ragmcp.protocol.results import TASK, UNKNOWN_SERVER, ToolCallResult, complete, given, kind_of
from ragmcp.protocol.schema.base import (
    NO_META,
    EmptyResult,
    Implementation,
    LogLevel,
    Params,
    ProgressParams,
    RequestMeta,
    Result,
    Wire,
)
from ragmcp.protocol.schema.content import ResourceContents
from ragmcp.protocol.schema.discovery import ServerCapabilities
from ragmcp.protocol.schema.tools import CallToolResult, ListToolsResult, ToolCall, ToolInfo
from ragmcp.streams import Stream
from ragmcp.tracing import NO_TRACE, current

if TYPE_CHECKING:
    from ragmcp.client.cache import ResultCache
    from ragmcp.client.notifications import News, Subscriptions
    from ragmcp.protocol.schema.completion import Completion, Reference
    from ragmcp.protocol.schema.prompts import GetPromptResult, PromptInfo
    from ragmcp.protocol.schema.resources import ResourceInfo, ResourceTemplate
    from ragmcp.protocol.schema.subscriptions import Filter

__all__ = ["Client", "EraName", "OnProgress", "ToolCallResult", "connect"]

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Result)
EraName: TypeAlias = Literal["modern", "legacy"]

# (done, total or None, message or None)
OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]

# A server may load a lot before it answers the first time; one that never does must not hang its host.
LIST_SECONDS = 60.0

# Who wants more input than this will not stop by itself.
MAX_ROUNDS = 20

# How the methods end that tell of changes: of lists, resources and tasks.
NEWS = ("/list_changed", "/updated", "/tasks")


class Link(Channel, Protocol):
    """The way to a server: a connection, or HTTP."""

    @property
    def next_id(self) -> int:
        """The id that the next request will have."""


class Client:
    """A server, as seen by who asks it.

    What asks raises WireError where the server refused, ConnectionClosed, RequestTimedOut,
    RemoteProtocolError for an unusable answer, NotEncodable; over HTTP also ServerUnreachable, HttpRefused.
    Every `timeout` is in seconds, None for no limit.
    """

    def __init__(self, channel: Link, identity: Implementation, handlers: Handlers = NO_HANDLERS) -> None:
        self.server = UNKNOWN_SERVER
        self.revision = LATEST_MODERN
        self.capabilities = ServerCapabilities()
        self.instructions: str | None = None
        self.admit_tools: Callable[[list[ToolInfo]], list[ToolInfo]] = list
        """What the transport can call of the tools there are."""
        self.identity = identity
        self.channel = channel
        self.handlers = handlers
        self.declared = handlers.capabilities()
        self._log_level: LogLevel | UnsetType = UNSET
        self._tokens = itertools.count(1)
        self._on_progress: dict[Id | UnsetType, OnProgress] = {}

    @property
    def modern(self) -> bool:
        """Whether the server is of the stateless era."""
        return self.revision >= LATEST_MODERN

    @property
    def is_closed(self) -> bool:
        """Whether the connection has ended; over HTTP: whether the server could last not be reached."""
        return self.channel.closed.is_set()

    async def closed(self) -> None:
        """Wait until that is so."""
        await self.channel.closed.wait()

    @cached_property
    def cache(self) -> ResultCache:
        """Results the server said stay fresh for a while."""
        from ragmcp.client.cache import ResultCache

        return ResultCache()

    @cached_property
    def _subscriptions(self) -> Subscriptions:
        from ragmcp.client.notifications import Subscriptions

        return Subscriptions(self)

    # Tools

    async def list_tools(self, *, timeout: float | None = LIST_SECONDS) -> list[ToolInfo]:
        """All tools, from every page."""
        pages = await every_page(self, "tools/list", ListToolsResult, timeout)
        return self.admit_tools([tool for page in pages for tool in page.tools])

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None,
        on_progress: OnProgress | None = None,
    ) -> ToolCallResult:
        """Call a tool and wait; cancelling the wait cancels the call. A failed tool is a result `is_error`.

        From the modern era on `timeout` does not count the time of a user whom the server asks.
        """
        token = UNSET if on_progress is None else next(self._tokens)
        if on_progress is not None:
            self._on_progress[token] = on_progress
        params = ToolCall(meta=self.meta(token), name=name, arguments=arguments or {})
        try:
            return ToolCallResult.of(await self._call(params, timeout))
        finally:
            self._on_progress.pop(token, None)

    async def _call(self, params: ToolCall, timeout: float | None) -> CallToolResult:
        try:
            return await self.request("tools/call", params, CallToolResult, timeout)
        except WireError as error:
            if error.code != HEADER_MISMATCH:
                raise
        # The tool is not what it was when we last looked: it wants other headers. (Client Behavior)
        self.cache.forget("tools/list")
        await self.list_tools()
        return await self.request("tools/call", params, CallToolResult, timeout)

    # Resources, prompts, completion

    async def list_resources(self, *, timeout: float | None = LIST_SECONDS) -> list[ResourceInfo]:
        """All resources, from every page."""
        from ragmcp.protocol.schema.resources import ListResourcesResult

        pages = await every_page(self, "resources/list", ListResourcesResult, timeout)
        return [resource for page in pages for resource in page.resources]

    async def list_resource_templates(
        self, *, timeout: float | None = LIST_SECONDS
    ) -> list[ResourceTemplate]:
        """All templates, from every page."""
        from ragmcp.protocol.schema.resources import ListResourceTemplatesResult

        pages = await every_page(self, "resources/templates/list", ListResourceTemplatesResult, timeout)
        return [template for page in pages for template in page.resource_templates]

    async def read_resource(
        self, uri: str, *, timeout: float | None = LIST_SECONDS
    ) -> list[ResourceContents]:
        """What is in a resource."""
        from ragmcp.protocol.schema.resources import ReadResourceResult, ResourceParams

        params = ResourceParams(meta=self.meta(), uri=uri)
        return list((await fresh(self, "resources/read", uri, params, ReadResourceResult, timeout)).contents)

    async def list_prompts(self, *, timeout: float | None = LIST_SECONDS) -> list[PromptInfo]:
        """All prompts, from every page."""
        from ragmcp.protocol.schema.prompts import ListPromptsResult

        pages = await every_page(self, "prompts/list", ListPromptsResult, timeout)
        return [prompt for page in pages for prompt in page.prompts]

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = LIST_SECONDS,
    ) -> GetPromptResult:
        """The messages of a prompt."""
        from ragmcp.protocol.schema.prompts import GetPromptParams, GetPromptResult

        params = GetPromptParams(meta=self.meta(), name=name, arguments=dict(arguments or {}))
        return await self.request("prompts/get", params, GetPromptResult, timeout)

    async def complete(
        self,
        reference: Reference,
        argument: str,
        value: str,
        others: Mapping[str, str] | None = None,
        *,
        timeout: float | None = LIST_SECONDS,
    ) -> Completion:
        """Values for an `argument` of which `value` is typed, `others` being filled in already."""
        from ragmcp.protocol.schema.completion import Argument, CompleteParams, CompleteResult, Context

        params = CompleteParams(
            meta=self.meta(),
            ref=reference,
            argument=Argument(name=argument, value=value),
            context=Context(arguments=dict(others or {})),
        )
        return (await self.request("completion/complete", params, CompleteResult, timeout)).completion

    # News, logs, signs of life

    def listening(self, filter: Filter) -> AbstractAsyncContextManager[News]:
        """What changes at the server while the block runs, in both eras: `async for change in news`."""
        return self._subscriptions.listening(filter)

    async def set_log_level(self, level: LogLevel) -> None:
        """Hear log messages of this severity and above, through `Handlers.on_log`."""
        self._log_level = level
        if not self.modern:
            from ragmcp.protocol.schema.logging import SetLevelParams

            params = SetLevelParams(meta=self.meta(), level=level)
            await self.request("logging/setLevel", params, EmptyResult, LIST_SECONDS)

    async def ping(self, *, timeout: float | None = LIST_SECONDS) -> None:
        """Whether the server answers. The modern era has no ping, but `server/discover` everywhere."""
        method = "server/discover" if self.modern else "ping"
        await self.request(method, Params(meta=self.meta()), Result, timeout)

    # Asking

    def meta(self, token: Id | UnsetType = UNSET) -> RequestMeta:
        """The `_meta` of a request."""
        trace = current.get()
        if self.modern:
            meta = modern_meta(self.identity, self.revision, self.declared, token)
            if trace is NO_TRACE and self._log_level is UNSET:
                return meta
            return msgspec.structs.replace(
                meta, log_level=self._log_level, traceparent=trace.parent, tracestate=trace.state
            )
        if token is UNSET and trace is NO_TRACE:
            return NO_META
        return RequestMeta(progress_token=token, traceparent=trace.parent, tracestate=trace.state)

    async def request(self, method: str, params: Params, type: type[R], timeout: float | None) -> R:
        """Ask for anything the protocol has; `params` with our `meta`. Gives the input that it takes."""
        answer = await self.channel.request(method, params, timeout)
        return complete(method, answer, type) or await self.go_on(method, params, type, timeout, answer)

    async def go_on(
        self, method: str, params: Params, type: type[R], timeout: float | None, answer: Raw
    ) -> R:
        """The result after an `answer` that was none yet."""
        from ragmcp.client.rounds import with_input

        for _ in range(MAX_ROUNDS):
            if kind_of(answer) == TASK:
                if not self.handlers.tasks:
                    raise UnreadableAnswer(method, "it is a task, which this client does not declare")
                from ragmcp.client.tasks import followed

                answer = await followed(self, method, answer, timeout)
            else:
                params = await with_input(self.handlers, method, params, answer)
                answer = await self.channel.request(method, params, timeout)
            if (result := complete(method, answer, type)) is not None:
                return result
        raise UnreadableAnswer(method, f"it still wants input after {MAX_ROUNDS} rounds")

    # Hearing

    def heard(self, notification: Notification) -> None:
        """Take a notification from the server."""
        match notification.method:
            case "notifications/progress":
                news = msgspec.json.decode(notification.params, type=ProgressParams)
                if on_progress := self._on_progress.get(news.progress_token):
                    on_progress(news.progress, given(news.total), given(news.message))
            case "notifications/message" if self.handlers.on_log is not None:
                from ragmcp.protocol.schema.logging import LogMessage

                self.handlers.on_log(msgspec.json.decode(notification.params, type=LogMessage))
            case "notifications/subscriptions/acknowledged":
                self._subscriptions.acknowledged(notification)
            case method if method.endswith(NEWS):
                change = self._subscriptions.changed(notification)
                self.cache.invalidate(change)
                if self.handlers.on_change is not None:
                    self.handlers.on_change(change)

    async def answer(self, request: Request) -> Wire:
        """Answer a legacy server. Raises RemoteProtocolError for what we do not declare."""
        if request.method == "ping":
            return EmptyResult()
        return await confined(self.handlers.answer(request.method, msgspec.json.decode(request.params)))


@asynccontextmanager
async def connect(
    stream: Stream,
    identity: Implementation,
    *,
    message_bytes: int,
    era: EraName | None,
    handlers: Handlers = NO_HANDLERS,
) -> AsyncIterator[Client]:
    """A client on `stream`. `era` None: find out; "modern": our own kind, no probe; "legacy": handshake only.

    Raises ConnectionClosed, RequestTimedOut, WireError, UnsupportedRevision, UnreadableAnswer.
    """
    from ragmcp.client.handshake import initialize, settle

    client: Client
    peer = Peer(
        stream,
        Connection(message_bytes, refuses=False),
        lambda request: client.answer(request),
        lambda notification: client.heard(notification),
    )
    client = Client(peer, identity, handlers)
    async with beside(peer.run):
        if era is None:
            await settle(client)
        elif era == "legacy":
            await initialize(client)
        yield client
