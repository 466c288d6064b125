"""The client: asks one server, in the era it speaks.

Not the transport: `connect` takes any stream; starting and ending a process is `transports/stdio`.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw

from ragmcp.concurrency import beside
from ragmcp.connection import Connection
from ragmcp.eras import LATEST_LEGACY, LATEST_MODERN, MODERN_ERRORS, check_legacy, modern_meta, verdict
from ragmcp.errors import MethodNotFound, RequestTimedOut, UnreadableAnswer, WireError
from ragmcp.jsonrpc import Id, Notification, Request
from ragmcp.peer import Peer, Stream
from ragmcp.schema import (
    NO_META,
    SERVER_INFO,
    CallToolResult,
    Content,
    DiscoverResult,
    EmptyResult,
    Implementation,
    InitializeParams,
    InitializeResult,
    ListParams,
    ListToolsResult,
    Params,
    ProgressParams,
    RequestMeta,
    TextContent,
    ToolCall,
    ToolInfo,
)

log = logging.getLogger(__name__)

T = TypeVar("T")
EraName: TypeAlias = Literal["modern", "legacy"]

# (done, total or None, message or None)
OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]

# A server that says nothing to `server/discover` is a legacy one that ignores what comes before `initialize`.
PROBE_SECONDS = 5.0
# A server may load a lot before it answers the first time; one that never does must not hang its host.
HANDSHAKE_SECONDS = 60.0

UNKNOWN_SERVER = Implementation(name="unknown", version="unknown")


class ToolCallResult(msgspec.Struct, frozen=True):
    """What a tool gave back; `structured` is None where it gave text only."""

    content: list[Content]
    structured: Any
    is_error: bool

    @property
    def text(self) -> str:
        """All text of the content."""
        return "\n".join(item.text for item in self.content if isinstance(item, TextContent))


class Client:
    """A server, as seen by who asks it."""

    def __init__(self, peer: Peer, identity: Implementation) -> None:
        self.server = UNKNOWN_SERVER
        self.revision = LATEST_MODERN
        self.instructions: str | None = None
        self._identity = identity
        self._peer = peer
        self._tokens = itertools.count(1)
        self._on_progress: dict[Id | msgspec.UnsetType, OnProgress] = {}

    async def list_tools(self, *, timeout: float | None = HANDSHAKE_SECONDS) -> list[ToolInfo]:
        """All tools, from every page. Raises as `call_tool`."""
        tools: list[ToolInfo] = []
        cursor: str | msgspec.UnsetType = UNSET
        while True:
            params = ListParams(meta=self._meta(), cursor=cursor)
            page = await self._ask("tools/list", params, ListToolsResult, timeout)
            tools += page.tools
            if self.server is UNKNOWN_SERVER:
                self.server = _server_info(page.meta)
            cursor = page.next_cursor
            if cursor is UNSET:
                return tools

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None,
        on_progress: OnProgress | None = None,
    ) -> ToolCallResult:
        """Call a tool and wait, at most `timeout` seconds; cancelling the wait cancels the call.

        A tool that failed is a result with `is_error`. Raises WireError where the call could not be made,
        ConnectionClosed, RequestTimedOut, RemoteProtocolError, NotEncodable.
        """

        token = UNSET if on_progress is None else next(self._tokens)
        if on_progress is not None:
            self._on_progress[token] = on_progress
        params = ToolCall(meta=self._meta(token), name=name, arguments=arguments or {})
        try:
            result = await self._ask("tools/call", params, CallToolResult, timeout)
        finally:
            self._on_progress.pop(token, None)
        structured = None if result.structured_content is UNSET else result.structured_content
        return ToolCallResult(result.content, structured, result.is_error)

    async def closed(self) -> None:
        """Wait until the connection has ended."""
        await self._peer.closed.wait()

    # Opening

    async def settle(self) -> None:
        """Find out the server's era, and shake hands with a legacy one."""
        if await self.discover():
            return
        try:
            await self.initialize()
        except WireError as error:
            # Modern after all: it only started too slowly for the first probe.
            if error.code not in MODERN_ERRORS or not await self.discover():
                raise

    async def discover(self) -> bool:
        """Find out whether the server is modern, and its revision. Raises UnsupportedRevision."""
        answer: Raw | WireError | None
        try:
            answer = await self._peer.request("server/discover", Params(meta=self._meta()), PROBE_SECONDS)
        except WireError as error:
            answer = error
        except RequestTimedOut:
            answer = None
        revision = verdict(answer)
        if revision is None:
            return False
        self.revision = revision
        if isinstance(answer, Raw):
            found = _decode("server/discover", answer, DiscoverResult)
            self._introduce(_server_info(found.meta), found.instructions)
        return True

    async def initialize(self) -> None:
        """The legacy handshake. Raises UnreadableAnswer for a revision we do not speak."""
        params = InitializeParams(protocol_version=LATEST_LEGACY, client_info=self._identity, capabilities={})
        found = await self._ask("initialize", params, InitializeResult, HANDSHAKE_SECONDS)
        self.revision = check_legacy(found.protocol_version)
        self._introduce(found.server_info, found.instructions)
        await self._peer.notify("notifications/initialized", {})

    def _introduce(self, server: Implementation, instructions: str | msgspec.UnsetType) -> None:
        self.server = server
        self.instructions = None if instructions is UNSET else instructions

    # Asking

    def _meta(self, token: Id | msgspec.UnsetType = UNSET) -> RequestMeta:
        if self.revision < LATEST_MODERN:
            return NO_META if token is UNSET else RequestMeta(progress_token=token)
        return modern_meta(self._identity, self.revision, {}, token)

    async def _ask(self, method: str, params: Params, type: type[T], timeout: float | None) -> T:
        return _decode(method, await self._peer.request(method, params, timeout), type)

    def heard(self, notification: Notification) -> None:
        """Take a notification from the server."""
        if notification.method == "notifications/progress":
            news = msgspec.json.decode(notification.params, type=ProgressParams)
            if on_progress := self._on_progress.get(news.progress_token):
                on_progress(news.progress, _given(news.total), _given(news.message))


def _decode(method: str, answer: Raw, type: type[T]) -> T:
    try:
        return msgspec.json.decode(answer, type=type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableAnswer(method, str(error)) from None


def _given(value: Any) -> Any:
    return None if value is UNSET else value


def _server_info(meta: Raw | msgspec.UnsetType) -> Implementation:
    if meta is UNSET:
        return UNKNOWN_SERVER
    try:
        return msgspec.convert(msgspec.json.decode(meta)[SERVER_INFO], Implementation)
    except (KeyError, TypeError, msgspec.DecodeError):
        return UNKNOWN_SERVER


async def _answer_server(request: Request) -> EmptyResult:
    # A legacy server may ask us; we declare no capability, so ping is all it can ask for.
    if request.method == "ping":
        return EmptyResult()
    raise MethodNotFound(request.method)


@asynccontextmanager
async def connect(
    stream: Stream, identity: Implementation, *, message_bytes: int, era: EraName | None
) -> AsyncIterator[Client]:
    """A client on `stream`. `era` None: find out; "modern": our own kind, no probe; "legacy": handshake only.

    Raises ConnectionClosed, RequestTimedOut, WireError, UnsupportedRevision, UnreadableAnswer.
    """
    client: Client
    peer = Peer(
        stream,
        Connection(message_bytes, refuses=False),
        _answer_server,
        lambda notification: client.heard(notification),
    )
    client = Client(peer, identity)
    async with beside(peer.run):
        if era is None:
            await client.settle()
        elif era == "legacy":
            await client.initialize()
        yield client
