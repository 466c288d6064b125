"""The server: what is answered to a call. Every transport ends in `result = await server.handle(call)`.

Not the connection: who is asking, under which revision and through what, is settled before a `Call`
exists. No state is kept between calls.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
from msgspec import UNSET, Raw, Struct

from ragmcp.concurrency import beside
from ragmcp.connection import Connection
from ragmcp.eras import (
    ANNOTATIONS_SINCE,
    MODERN_REVISIONS,
    STRUCTURED_SINCE,
    Era,
    Session,
    Terms,
)
from ragmcp.errors import (
    InvalidParams,
    MethodNotFound,
    MissingCapability,
    RemoteProtocolError,
    ToolError,
    ToolNotFound,
)
from ragmcp.jsonrpc import Id, Request
from ragmcp.peer import Peer, Stream
from ragmcp.schema import (
    SERVER_INFO,
    CallToolParams,
    CallToolResult,
    DiscoverResult,
    EmptyResult,
    Implementation,
    InitializeParams,
    InitializeResult,
    ListParams,
    ListToolsResult,
    Params,
    ProgressParams,
    Result,
    ServerCapabilities,
    TextContent,
    ToolInfo,
)
from ragmcp.tools import Tool, invalid_params

log = logging.getLogger(__name__)

# A tool list changes with the program only; five minutes spare a host the question without hiding an update.
FRESH_MS = 300_000

Notify = Callable[[str, Any], Awaitable[None]]


class Call:
    """One request, and a way to talk back while it is being answered."""

    __slots__ = ("_notify", "_terms", "id", "method", "params")

    def __init__(self, id: Id, method: str, params: Params, terms: Terms, notify: Notify) -> None:
        self.id = id
        self.method = method
        self.params = params
        self._terms = terms
        self._notify = notify

    @property
    def era(self) -> Era:
        """Modern (stateless) or legacy (after a handshake)."""
        return self._terms.era

    @property
    def revision(self) -> str:
        """The protocol revision of this request."""
        return self._terms.revision

    @property
    def client(self) -> Implementation:
        """Who says to be asking."""
        return self._terms.client

    def require(self, capability: str) -> None:
        """Raises MissingCapability unless the client has declared `capability`."""
        if capability not in self._terms.capabilities:
            raise MissingCapability({capability: {}})

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification; waits while the client does not read."""
        await self._notify(method, params)

    async def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the work is, if the client asked to be told."""
        token = self.params.meta.progress_token
        if token is not UNSET:
            news = ProgressParams(
                progress_token=token,
                progress=done,
                total=UNSET if total is None else total,
                message=UNSET if message is None else message,
            )
            await self.notify("notifications/progress", news)


class Server:
    """A named set of tools."""

    def __init__(
        self, name: str, version: str, tools: Iterable[Tool], instructions: str | None = None
    ) -> None:
        self.info = Implementation(name=name, version=version)
        self._tools = {tool.name: tool for tool in tools}
        self._capabilities = ServerCapabilities(tools={})
        self._instructions = UNSET if instructions is None else instructions
        self._meta = Raw(msgspec.json.encode({SERVER_INFO: self.info}))

    async def handle(self, call: Call) -> Result:
        """Answer one call. Raises RemoteProtocolError where the call could not be made."""
        return await METHODS[call.method].answer(self, call)

    async def _initialize(self, call: Call) -> Result:
        return InitializeResult(
            protocol_version=call.revision,
            capabilities=self._capabilities,
            server_info=self.info,
            instructions=self._instructions,
        )

    async def _ping(self, _: Call) -> Result:
        return EmptyResult()

    async def _discover(self, _: Call) -> Result:
        return DiscoverResult(
            supported_versions=list(MODERN_REVISIONS),
            capabilities=self._capabilities,
            instructions=self._instructions,
            result_type="complete",
            ttl_ms=FRESH_MS,
            cache_scope="public",
            meta=self._meta,
        )

    async def _list_tools(self, call: Call) -> Result:
        assert isinstance(call.params, ListParams)
        if call.params.cursor is not UNSET:
            raise InvalidParams("$.cursor", "there is one page only, and no cursor leads to another")
        tools = [_as_known_to(call.revision, tool.info) for tool in self._tools.values()]
        if call.era is Era.LEGACY:
            return ListToolsResult(tools=tools)
        return ListToolsResult(
            tools=tools, result_type="complete", ttl_ms=FRESH_MS, cache_scope="public", meta=self._meta
        )

    async def _call_tool(self, call: Call) -> Result:
        assert isinstance(call.params, CallToolParams)
        tool = self._tools.get(call.params.name)
        if tool is None:
            raise ToolNotFound(call.params.name, tuple(self._tools))
        failed = False
        try:
            done = await tool.run(call, call.params.arguments)
            content, structured = done.content, done.structured
        except RemoteProtocolError:
            raise
        except Exception as error:
            failed = True
            content, structured = _failure(call, tool, error)
        if call.era is Era.MODERN:
            return CallToolResult(
                content=content,
                structured_content=structured,
                is_error=failed,
                result_type="complete",
                meta=self._meta,
            )
        if call.revision < STRUCTURED_SINCE:
            structured = UNSET
        return CallToolResult(content=content, structured_content=structured, is_error=failed)


def _failure(call: Call, tool: Tool, error: Exception) -> tuple[list[Any], Any]:
    if not isinstance(error, ToolError):
        log.error("The tool %s failed", tool.name, exc_info=error)
        error = ToolError("INTERNAL_ERROR", f"{tool.name} failed unexpectedly; the server's log says more.")
    data = {"errorCode": error.code, "details": error.details, "requestId": call.id}
    return [TextContent(text=str(error))], data


def _as_known_to(revision: str, info: ToolInfo) -> ToolInfo:
    """Without the fields that came later than `revision`."""
    if revision < ANNOTATIONS_SINCE:
        info = msgspec.structs.replace(info, annotations=UNSET)
    if revision < STRUCTURED_SINCE:
        info = msgspec.structs.replace(info, output_schema=UNSET)
    return info


class Method(Struct, frozen=True):
    """What a method takes, when it exists, and who answers it."""

    params: msgspec.json.Decoder[Any]
    eras: frozenset[Era]
    answer: Callable[[Server, Call], Awaitable[Result]]


def _method(params: type[Params], answer: Callable[[Server, Call], Awaitable[Result]], *eras: Era) -> Method:
    return Method(msgspec.json.Decoder(params), frozenset(eras), answer)


METHODS = {
    "initialize": _method(InitializeParams, Server._initialize, Era.LEGACY),
    "ping": _method(Params, Server._ping, Era.LEGACY),
    "server/discover": _method(Params, Server._discover, Era.MODERN),
    "tools/list": _method(ListParams, Server._list_tools, *Era),
    "tools/call": _method(CallToolParams, Server._call_tool, *Era),
}

_any_params = msgspec.json.Decoder(Params)


def open_call(request: Request, session: Session, notify: Notify) -> Call:
    """The call that a request makes. Raises RemoteProtocolError where it makes none."""
    method = METHODS.get(request.method)
    try:
        params = (method.params if method else _any_params).decode(request.params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_params(error) from None
    if method is None and params.meta.protocol_version is UNSET:
        raise MethodNotFound(request.method)
    terms = session.admit(request.method, params)
    if method is None or terms.era not in method.eras:
        raise MethodNotFound(request.method)
    return Call(request.id, request.method, params, terms, notify)


async def serve(
    server: Server,
    stream: Stream,
    *,
    message_bytes: int,
    on_listening: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Answer everything that comes through `stream` until it ends.

    `message_bytes` is the longest message read; `on_listening` runs beside, once the first answer has left.
    """
    session = Session()
    first = anyio.Event()

    async def handle(request: Request) -> Result:
        first.set()
        result = await server.handle(open_call(request, session, peer.notify))
        peer.connection.batches = session.batches
        return result

    async def warm_up() -> None:
        await first.wait()
        await anyio.lowlevel.checkpoint()  # The answer itself leaves before anything else is done.
        try:
            await (on_listening or anyio.lowlevel.checkpoint)()
        except Exception:
            log.exception("Warming up failed")

    peer = Peer(stream, Connection(message_bytes, refuses=True), handle)
    async with beside(warm_up):
        await peer.run()
