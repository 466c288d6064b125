"""The client: requests to one server, in the era it speaks.

It works through a `ClientChannel`: a connection (`connect`), or HTTP. `stdio` starts server processes and
connects to them, `http` connects to running servers.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ragmcp.client.core import ANONYMOUS, ANSWER_SECONDS, Core, negotiate
from ragmcp.client.handlers import NO_HANDLERS, Handlers
from ragmcp.concurrency import background_task, contain_cancellation
from ragmcp.errors import ConnectionClosed, WireError
from ragmcp.older_revisions import require_legacy
from ragmcp.peer import Peer, Waiter
from ragmcp.protocol.connection import Connection
from ragmcp.protocol.decoding import DECODE_ERRORS
from ragmcp.protocol.eras import HEADER_MISMATCH
from ragmcp.protocol.framing import MESSAGE_BYTES
from ragmcp.protocol.jsonrpc import Id, Notification, Request
from ragmcp.protocol.schema import base
from ragmcp.protocol.schema.content import ResourceContents
from ragmcp.protocol.schema.tools import ListToolsResult, ToolCall, ToolCallResult, ToolInfo
from ragmcp.streams import Stream

if TYPE_CHECKING:
    from ragmcp.client.subscriptions import Subscription
    from ragmcp.protocol.schema import completion, prompts, resources
    from ragmcp.protocol.schema.subscriptions import Filter

log = logging.getLogger(__name__)

EraName: TypeAlias = Literal["modern", "legacy"]

# (done, total or None, message or None)
OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]


class Client(Core):
    """One server, as its client sees it.

    `server` (its name and version), `revision`, `capabilities` and `instructions` are what was negotiated.
    Requests raise WireError if the server refused, ConnectionClosed, RequestTimedOut, RemoteProtocolError
    for an unusable answer, NotEncodable; over HTTP also ServerUnreachable, HttpRefused.
    """

    def __init__(self, identity: base.Implementation, handlers: Handlers) -> None:
        super().__init__(identity, handlers)
        self.admit_tool: Callable[[ToolInfo], None] = lambda _: None
        """Raises ValueError if the transport cannot call the tool."""
        self.left_out: list[str] = []
        """A sentence for each listed tool that cannot be used."""
        self._tokens = itertools.count(1)
        self._on_progress: dict[Id | UnsetType, OnProgress] = {}
        self._subscriptions: set[Subscription] = set()

    # Tools

    async def list_tools(self) -> list[ToolInfo]:
        """All tools that can be used, from every page."""
        listed = await self.list_all("tools/list", ListToolsResult, lambda page: page.tools)
        tools, self.left_out = [], []
        for each in listed:
            try:
                tool = msgspec.json.decode(each, type=ToolInfo)
                self.admit_tool(tool)
            except (ValueError, *DECODE_ERRORS) as reason:
                self.left_out.append(f"The tool {_name(each)} is left out: {reason}")
                log.warning(self.left_out[-1])
            else:
                tools.append(tool)
        return tools

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = ANSWER_SECONDS,
        on_progress: OnProgress | None = None,
    ) -> ToolCallResult:
        """Call a tool and wait; cancelling the wait cancels the call. A tool that fails gives `is_error`.

        `timeout` is in seconds, None for no limit. In the modern era it does not include the time in which a
        user answers the server's questions.
        """
        token = UNSET if on_progress is None else next(self._tokens)
        if on_progress is not None:
            self._on_progress[token] = on_progress
        params = ToolCall(meta=self.meta(token), name=name, arguments=arguments or {})
        try:
            return await self._call(params, timeout)
        finally:
            self._on_progress.pop(token, None)

    async def _call(self, params: ToolCall, timeout: float | None) -> ToolCallResult:
        try:
            return await self.request("tools/call", params, ToolCallResult, timeout)
        except WireError as error:
            if error.code != HEADER_MISMATCH:
                raise
        # The tool has changed since it was listed: it wants other headers. (Client Behavior)
        await self.list_tools()
        return await self.request("tools/call", params, ToolCallResult, timeout)

    # Resources, prompts, completion

    async def list_resources(self) -> list[resources.ResourceInfo]:
        """All resources, from every page."""
        from ragmcp.protocol.schema.resources import ListResourcesResult

        return await self.list_all("resources/list", ListResourcesResult, lambda page: page.resources)

    async def list_resource_templates(self) -> list[resources.ResourceTemplate]:
        """All templates, from every page."""
        from ragmcp.protocol.schema.resources import ListResourceTemplatesResult

        return await self.list_all(
            "resources/templates/list", ListResourceTemplatesResult, lambda page: page.resource_templates
        )

    async def read_resource(self, uri: str) -> list[ResourceContents]:
        """The contents of a resource."""
        from ragmcp.protocol.schema import resources

        params = resources.ResourceParams(meta=self.meta(), uri=uri)
        return (await self.request("resources/read", params, resources.ReadResourceResult)).contents

    async def list_prompts(self) -> list[prompts.PromptInfo]:
        """All prompts, from every page."""
        from ragmcp.protocol.schema.prompts import ListPromptsResult

        return await self.list_all("prompts/list", ListPromptsResult, lambda page: page.prompts)

    async def get_prompt(self, name: str, arguments: Mapping[str, str] = {}) -> prompts.GetPromptResult:
        """The messages of a prompt."""
        from ragmcp.protocol.schema import prompts

        params = prompts.GetPromptParams(meta=self.meta(), name=name, arguments=dict(arguments))
        return await self.request("prompts/get", params, prompts.GetPromptResult)

    async def complete(
        self, reference: completion.Reference, argument: str, value: str, others: Mapping[str, str] = {}
    ) -> completion.Completion:
        """Values for an `argument`; `value` is the text typed so far, `others` are arguments already set."""
        from ragmcp.protocol.schema import completion

        params = completion.CompleteParams(
            meta=self.meta(),
            ref=reference,
            argument=completion.Argument(name=argument, value=value),
            context=completion.Context(arguments=dict(others)),
        )
        return (await self.request("completion/complete", params, completion.CompleteResult)).completion

    # Changes, log messages, ping

    @asynccontextmanager
    async def subscribe(self, filter: Filter) -> AsyncIterator[Subscription]:
        """The changes at the server while the block runs: `async for change in subscription`."""
        from ragmcp.client.subscriptions import Subscription

        subscription = Subscription(self, filter)
        self._subscriptions.add(subscription)
        try:
            async with subscription.kept():
                yield subscription
        finally:
            self._subscriptions.discard(subscription)
            subscription.end()

    async def set_log_level(self, level: base.LogLevel) -> None:
        """Get log messages of this severity and above, through `Handlers.on_log`."""
        self.log_level = level
        if not self.modern:
            await require_legacy("client").set_log_level(self, level)

    async def ping(self) -> None:
        """Wait until the server answers. The modern era has no ping: this calls `server/discover`."""
        method = "server/discover" if self.modern else "ping"
        await self.request(method, base.Params(meta=self.meta()), base.Result)

    # Messages from the server

    def handle_notification(self, notification: Notification) -> None:
        """Handle a notification from the server."""
        match notification.method:
            case "notifications/progress":
                progress = msgspec.json.decode(notification.params, type=base.ProgressParams)
                if on_progress := self._on_progress.get(progress.progress_token):
                    on_progress(progress.progress, progress.total, progress.message)
            case "notifications/message" if self.handlers.on_log is not None:
                from ragmcp.protocol.schema.logging import LogMessage

                self.handlers.on_log(msgspec.json.decode(notification.params, type=LogMessage))
            case "notifications/elicitation/complete" if self.handlers.on_visited is not None:
                from ragmcp.protocol.schema.input import ElicitationComplete

                done = msgspec.json.decode(notification.params, type=ElicitationComplete)
                self.handlers.on_visited(done.elicitation_id)
            case _:
                for subscription in self._subscriptions:
                    subscription.take(notification)

    async def answer(self, request: Request) -> base.Wire:
        """Answer a legacy server. Raises RemoteProtocolError for what we do not declare."""
        if request.method == "ping":
            return base.EmptyResult()
        return await contain_cancellation(self.handlers.answer(request.method, request.params))


def _name(tool: Raw) -> str:
    """The name of a tool that may be anything."""
    decoded = msgspec.json.decode(tool)
    return str(decoded.get("name") if isinstance(decoded, dict) else decoded)


@asynccontextmanager
async def connect(
    stream: Stream,
    identity: base.Implementation = ANONYMOUS,
    *,
    message_bytes: int = MESSAGE_BYTES,
    era: EraName | None = None,
    handlers: Handlers = NO_HANDLERS,
) -> AsyncIterator[Client]:
    """A client on `stream`. `era` None: probe the server; "modern": no probe; "legacy": handshake only.

    Raises ConnectionClosed, RequestTimedOut, WireError, UnsupportedRevision, UnreadableAnswer.
    """
    client = Client(identity, handlers)
    connection = Connection[Waiter](message_bytes, refuses=False)
    peer = Peer(stream, connection, client.answer, client.handle_notification, handlers.on_stray)
    client.channel = peer
    async with background_task(peer.run):
        try:
            if era is None:
                await negotiate(client.discover, client.initialize)
            elif era == "legacy":
                await client.initialize()
            yield client
        except ConnectionClosed as error:
            if error.reason or not stream.fault:
                raise
            raise ConnectionClosed(error.method, stream.fault) from None
