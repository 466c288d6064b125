"""The server: what is answered to a call. Every transport ends in `result = await server.handle(call)`.

Not the connection: who is asking, under which revision and through what, is settled before a `Call`
exists. No state is kept between calls. What few servers offer lives in rooms of its own (ROOMS).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup
from msgspec import UNSET, Raw

from ragmcp.concurrency import beside, confined
from ragmcp.errors import (
    ConnectionClosed,
    InvalidParams,
    MethodNotFound,
    RemoteProtocolError,
    ToolError,
    ToolNotFound,
)
from ragmcp.peer import Channel, Peer
from ragmcp.protocol.connection import MOST_IN_PROGRESS, Connection
from ragmcp.protocol.eras import MODERN_REVISIONS, STRUCTURED_SINCE, Era, Session
from ragmcp.protocol.jsonrpc import Request
from ragmcp.protocol.schema.base import (
    SERVER_INFO,
    TASKS_EXTENSION,
    EmptyResult,
    Implementation,
    ListParams,
    Params,
    Result,
    RetryableParams,
)
from ragmcp.protocol.schema.content import TextContent
from ragmcp.protocol.schema.discovery import DiscoverResult, ServerCapabilities
from ragmcp.protocol.schema.initialize import InitializeParams, InitializeResult
from ragmcp.protocol.schema.tools import CallToolParams, CallToolResult, ListToolsResult
from ragmcp.protocol.validation import invalid_params
from ragmcp.server.call import FRESH_MS, Call, InputNeeded, Method, method
from ragmcp.server.tools import Tool
from ragmcp.streams import Stream
from ragmcp.tracing import loggable, traced

if TYPE_CHECKING:
    from ragmcp.protocol.schema.subscriptions import Change
    from ragmcp.server.completion import Completer
    from ragmcp.server.prompts import Prompt
    from ragmcp.server.resources import Resources
    from ragmcp.server.state_signing import Seal
    from ragmcp.server.subscriptions import Broadcast
    from ragmcp.server.tasks import Tasks

__all__ = ["Call", "Server", "open_call", "serve"]

log = logging.getLogger(__name__)

P = TypeVar("P", bound=RetryableParams)

CHANGES = {"listChanged": True}


class Server:
    """Tools, and what else a server can offer: resources, prompts, completion, log messages."""

    def __init__(
        self,
        name: str,
        version: str,
        tools: Iterable[Tool],
        instructions: str | None = None,
        *,
        resources: Resources | None = None,
        prompts: Iterable[Prompt] = (),
        complete: Completer | None = None,
        logs: bool = False,
    ) -> None:
        """`logs` says whether its tools send log messages to the client."""
        self.info = Implementation(name=name, version=version)
        self.tools = {tool.name: tool for tool in tools}
        self.prompts = {prompt.info.name: prompt for prompt in prompts}
        self.complete = complete
        self._resources = resources
        self._task_group: TaskGroup | None = None
        self.capabilities = ServerCapabilities(
            tools=CHANGES,
            resources=UNSET if resources is None else {"subscribe": True, **CHANGES},
            prompts=CHANGES if self.prompts else UNSET,
            completions=UNSET if complete is None else {},
            logging={} if logs else UNSET,
        )
        self._instructions = UNSET if instructions is None else instructions
        self._meta = Raw(msgspec.json.encode({SERVER_INFO: self.info}))

    @property
    def resources(self) -> Resources:
        """What there is to read; asked for only where the capability is declared."""
        assert self._resources is not None
        return self._resources

    @cached_property
    def tasks(self) -> Tasks:
        """The calls that go on by themselves; asked for only where the extension is declared."""
        from ragmcp.server.tasks import Tasks

        assert self._task_group is not None
        return Tasks(self._task_group)

    def allow_tasks(self, group: TaskGroup) -> None:
        """Let calls go on as tasks (SEP-2663), in `group`: its end is theirs."""
        self._task_group = group
        self.capabilities = msgspec.structs.replace(self.capabilities, extensions={TASKS_EXTENSION: {}})

    @cached_property
    def broadcast(self) -> Broadcast:
        """Tells clients what has changed."""
        from ragmcp.server.subscriptions import Broadcast

        return Broadcast()

    @cached_property
    def _seal(self) -> Seal:
        from ragmcp.server.state_signing import Seal

        return Seal()

    def announce(self, news: Change) -> None:
        """Tell all clients that want to know. Never waits."""
        self.broadcast.publish(news)

    def add_tool(self, tool: Tool) -> None:
        """Offer one more tool, or another one of that name, from now on."""
        self.tools[tool.name] = tool
        self._tools_changed()

    def remove_tool(self, name: str) -> None:
        """Offer it no longer. Raises KeyError."""
        del self.tools[name]
        self._tools_changed()

    def _tools_changed(self) -> None:
        from ragmcp.protocol.schema.subscriptions import list_changed

        self.announce(list_changed("tools"))

    async def handle(self, call: Call) -> Result:
        """Answer one call. Raises RemoteProtocolError where the call could not be made."""
        method = find_method(call.method)
        if method is None or (method.capability and not self._offers(method.capability)):
            raise MethodNotFound(call.method)
        try:
            answer = method.answer(self, call)
            result = await confined(
                answer if call.params.meta.traceparent is UNSET else traced(call.params.meta, answer)
            )
        except InputNeeded as needed:
            from ragmcp.server.input_required import paused

            result = paused(call, needed, self._seal)
        if call.era is Era.LEGACY:
            return result
        changes: dict[str, Any] = {}
        if result.result_type is UNSET:
            changes["result_type"] = "complete"
            if method.fresh_ms is not None:
                changes |= {"ttl_ms": method.fresh_ms, "cache_scope": method.cache_scope}
        if result.meta is UNSET:
            changes["meta"] = self._meta
        return msgspec.structs.replace(result, **changes)

    def _offers(self, capability: str) -> bool:
        return getattr(self.capabilities, capability) is not UNSET

    def resume(self, call: Call, type: type[P]) -> P:
        """The parameters of a call that may have been made before, with the answers given then.

        Raises InvalidParams for a state that is not ours.
        """
        params = call.params
        assert isinstance(params, type)
        if params.request_state is not UNSET:
            from ragmcp.server.input_required import resumed

            call.params = params = resumed(call, params, self._seal)
        return params

    # Legacy

    async def _initialize(self, call: Call) -> Result:
        return InitializeResult(
            protocol_version=call.revision,
            capabilities=self.capabilities,
            server_info=self.info,
            instructions=self._instructions,
        )

    async def _ping(self, _: Call) -> Result:
        return EmptyResult()

    # Modern

    async def _discover(self, _: Call) -> Result:
        return DiscoverResult(
            supported_versions=list(MODERN_REVISIONS),
            capabilities=self.capabilities,
            instructions=self._instructions,
        )

    # Tools

    async def _list_tools(self, call: Call) -> Result:
        assert isinstance(call.params, ListParams)
        if call.params.cursor is not UNSET:
            raise InvalidParams("$.cursor", "there is one page only, and no cursor leads to another")
        tools = [tool.info for tool in self.tools.values()]
        if call.revision < STRUCTURED_SINCE:
            from ragmcp.legacy.downgrade import tool_known_to

            tools = [tool_known_to(call.revision, tool) for tool in tools]
        return ListToolsResult(tools=tools)

    async def _call_tool(self, call: Call) -> Result:
        params = self.resume(call, CallToolParams)
        tool = self.tools.get(params.name)
        if tool is None:
            raise ToolNotFound(params.name, tuple(self.tools))
        if tool.background and self._task_group is not None and call.extension(TASKS_EXTENSION):
            return await self.tasks.run(call, self, lambda: _run_tool(call, tool, params.arguments))
        return await _run_tool(call, tool, params.arguments)


async def _run_tool(call: Call, tool: Tool, arguments: Raw) -> Result:
    failed = False
    try:
        done = await tool.run(call, arguments)
        content, structured = done.content, done.structured
    except (RemoteProtocolError, InputNeeded):
        raise
    except Exception as error:
        failed = True
        content, structured = _failure(call, tool, error)
    if call.revision < STRUCTURED_SINCE:
        from ragmcp.legacy.downgrade import content_known_to

        content, structured = content_known_to(call.revision, content), UNSET
    return CallToolResult(content=content, structured_content=structured, is_error=failed)


def _failure(call: Call, tool: Tool, error: Exception) -> tuple[list[Any], Any]:
    if not isinstance(error, ToolError):
        if isinstance(error, ConnectionClosed) and call.channel.closed.is_set():
            log.info("The client of %s left before it answered", tool.name)
        else:
            log.error("The tool %s failed", tool.name, exc_info=error)
        error = ToolError("INTERNAL_ERROR", f"{tool.name} failed unexpectedly; the server's log says more.")
    details = {**error.details, "hint": error.hint} if error.hint else error.details
    data = {"errorCode": error.code, "details": details, "requestId": call.id}
    return [TextContent(text=text) for text in (str(error), error.hint) if text], data


METHODS: dict[str, Method] = {
    "initialize": method(InitializeParams, Server._initialize, Era.LEGACY),
    "ping": method(Params, Server._ping, Era.LEGACY),
    "server/discover": method(Params, Server._discover, Era.MODERN, fresh_ms=FRESH_MS),
    "tools/list": method(ListParams, Server._list_tools, fresh_ms=FRESH_MS),
    "tools/call": method(CallToolParams, Server._call_tool),
}

# The rooms of all other methods, by the first word: imported when one is first asked for.
ROOMS = {
    "completion": "ragmcp.server.completion",
    "logging": "ragmcp.server.logging",
    "prompts": "ragmcp.server.prompts",
    "resources": "ragmcp.server.resources",
    "subscriptions": "ragmcp.server.subscriptions",
    "tasks": "ragmcp.server.tasks",
}


def find_method(name: str) -> Method | None:
    """The method of that name, None where there is none."""
    found = METHODS.get(name)
    if found is None and (room := ROOMS.get(name.partition("/")[0])):
        METHODS.update(import_module(room).METHODS)
        found = METHODS.get(name)
    return found


_any_params = msgspec.json.Decoder(Params)


def open_call(request: Request, session: Session, channel: Channel) -> Call:
    """The call that a request makes. Raises RemoteProtocolError where it makes none."""
    method = find_method(request.method)
    try:
        params = (method.params if method else _any_params).decode(request.params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_params(error) from None
    if method is None and params.meta.protocol_version is UNSET:
        raise MethodNotFound(request.method)
    terms = session.admit(request.method, params)
    if method is None or terms.era not in method.eras:
        raise MethodNotFound(request.method)
    return Call(request.id, request.method, params, terms, session, channel)


async def serve(
    server: Server,
    stream: Stream,
    *,
    message_bytes: int,
    on_listening: Callable[[], Awaitable[None]] | None = None,
    on_leaving: Callable[[], None] = lambda: None,
    in_progress: int = MOST_IN_PROGRESS,
) -> None:
    """Answer everything that comes through `stream` until it ends.

    `message_bytes` is the longest message read; `on_listening` runs beside, once the first answer has left,
    and is cancelled at the end; `on_leaving` is called just before that; `in_progress` is how many requests
    may be.
    """
    session = Session()
    first, greeted, listening = anyio.Event(), anyio.Event(), anyio.Event()

    async def handle(request: Request) -> Result:
        first.set()
        if greeted.is_set() and not listening.is_set():  # What changes after its first list, a client hears.
            await listening.wait()
        call = open_call(request, session, peer)
        if (trace := call.params.meta.traceparent) is not UNSET:
            log.info("%s, traceparent %s", call.method, loggable(trace))
        result = await server.handle(call)
        if session.terms is not None:
            peer.connection.batches = session.batches
            greeted.set()
        return result

    async def go_on() -> None:
        await first.wait()
        await anyio.lowlevel.checkpoint()  # The answer itself leaves before anything else is done.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tell, tasks)
            try:
                await (on_listening or anyio.lowlevel.checkpoint)()
            except Exception:
                log.exception("Warming up failed")

    async def tell(tasks: TaskGroup) -> None:
        await greeted.wait()
        from ragmcp.server.subscriptions import tell_legacy

        await tasks.start(tell_legacy, server, session, peer)
        listening.set()

    peer = Peer(stream, Connection(message_bytes, refuses=True, most=in_progress), handle)
    async with beside(go_on):
        await peer.run()
        on_leaving()
