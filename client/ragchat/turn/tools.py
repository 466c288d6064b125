"""The tools that a model may call: those of memory and of other servers, subject to the user's permission."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import anyio

from ragchat.errors import RagChatError
from ragchat.llm.types import ToolRequest
from ragchat.memory.types import ToolResult
from ragchat.servers.managed import ServerState
from ragchat.servers.tools import OfferedTool, may_be_of
from ragchat.turn.approval import Approve, Decision, PermissionRequest, decide
from ragchat.turn.retrieval import Memory
from ragchat.turn.tool_search import HOST, ToolSearch, as_function, cost
from ragcommon.concurrency import gathered
from ragcommon.hosts import SERVER_NAME

if TYPE_CHECKING:
    from ragchat.servers.manager import ServerManager

# Servers whose results are trusted: memory, whose passages are checked one by one, and the host's tool
# search.
OWN = (SERVER_NAME, HOST)
FORBIDDEN = "The user has forbidden this tool."
NOT_ALLOWED = "The user did not allow this call."
TIME_USED_UP = "The time for the tool calls of this turn is used up (tools.turn_seconds)."
CANNOT_ASK = "This call needs the user's permission, and the user cannot be asked here."


@dataclass(frozen=True)
class ToolCall:
    """A request with decoded arguments. `refusal` is the reason not to run it, or ""."""

    request: ToolRequest
    arguments: dict[str, Any] = field(default_factory=dict)
    refusal: str = ""
    tool: OfferedTool | None = None


class Toolbox:
    """The tools of memory named in `offered`, and those of `servers`.

    `seconds` is the deadline of a request to memory, `budget` the maximum tokens of tool descriptions in a
    prompt; `trust_read_only_hints` as for `decide`.
    """

    def __init__(
        self,
        memory: Memory,
        offered: Sequence[str],
        seconds: float,
        servers: ServerManager,
        *,
        budget: int,
        trust_read_only_hints: bool = False,
    ) -> None:
        self._memory = memory
        self.clock = servers.clock
        """It pauses while the user is prompted."""
        self.budget = budget
        self._search = ToolSearch(memory, budget)
        self._offered = offered
        self._seconds = seconds
        self._permissions = servers.permissions
        self._servers = servers
        self._trust_read_only_hints = trust_read_only_hints
        self._of_memory: list[OfferedTool] | None = None

    async def tools(self) -> dict[str, OfferedTool]:
        """The tools by name. Memory's tools are cached, and missing while memory is down."""
        await self._servers.ready()
        return {tool.name: tool for tool in (*await self._memory_tools(), *self._servers.tools())}

    async def _memory_tools(self) -> list[OfferedTool]:
        if self._of_memory is None and self._offered:
            try:
                with anyio.fail_after(self._seconds):
                    listed = await self._memory.tools()
            except (TimeoutError, RagChatError):
                return []
            self._of_memory = [
                OfferedTool(
                    tool.name, SERVER_NAME, SERVER_NAME, tool, True, partial(self._call_memory, tool.name)
                )
                for tool in listed
                if tool.name in self._offered
            ]
        return self._of_memory or []

    async def _call_memory(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        try:
            with anyio.fail_after(self._seconds):
                return await self._memory.call(name, arguments)
        except TimeoutError:
            return ToolResult(False, f"The tool did not answer within {self._seconds:g} s.")

    async def asking(self) -> set[str]:
        """The names of the tools that need the user's permission once the model has read untrusted text.

        Raises PermissionsUnusable.
        """
        return {
            name
            for name, tool in (await self.tools()).items()
            if decide(
                tool, self._permissions, ["a document"], trust_read_only_hints=self._trust_read_only_hints
            )
            is not Decision.RUN
        }

    async def costs(self) -> dict[str, tuple[int, int]]:
        """By server: the number of its tools, and the estimated tokens of their descriptions."""
        grouped: dict[str, list[OfferedTool]] = {}
        for tool in (await self.tools()).values():
            grouped.setdefault(tool.server, []).append(tool)
        return {server: (len(tools), cost(tools)) for server, tools in grouped.items()}

    async def descriptions(self) -> list[dict[str, Any]]:
        """The tools in the form of the chat-completions API, as many as fit into `budget`."""
        return [as_function(tool) for tool in await self._offered_now()]

    async def _offered_now(self) -> list[OfferedTool]:
        tools = [*(await self.tools()).values()]
        own = [tool for tool in tools if tool.server == SERVER_NAME]
        return self._search.offered(own, [tool for tool in tools if tool.server != SERVER_NAME])

    async def permit(
        self, request: ToolRequest, approve: Approve | None, untrusted: Sequence[str] = ()
    ) -> ToolCall:
        """Decode the arguments of a request and decide whether to run it; this may ask the user.

        `untrusted` as for `decide`. Raises PermissionsUnusable.
        """
        known = await self._known(request.name)
        tool = known.get(request.name)
        if tool is None:
            return ToolCall(request, refusal=self._missing(request.name, known))
        try:
            arguments = request.decoded()
        except ValueError as error:
            return ToolCall(request, refusal=f"The arguments are not a JSON object: {error}.")
        call = ToolCall(request, arguments, tool=tool)
        verdict = decide(
            tool, self._permissions, untrusted, trust_read_only_hints=self._trust_read_only_hints
        )
        if verdict is Decision.RUN:
            return call
        if verdict is Decision.REFUSE:
            return replace(call, refusal=FORBIDDEN)
        if approve is None:
            return replace(call, refusal=CANNOT_ASK)
        changes = self._permissions.changes(tool.identity, tool.info)
        with self.clock.stopped():
            allowed = await approve(PermissionRequest(tool, arguments, untrusted, changes))
        return replace(call, refusal=NOT_ALLOWED) if allowed is None else replace(call, arguments=allowed)

    async def _known(self, name: str) -> dict[str, OfferedTool]:
        """All tools by name, after waiting for the server that `name` may belong to."""
        await self._servers.wait_started(lambda server: may_be_of(server, name))
        return await self.tools() | {tool.name: tool for tool in await self._offered_now()}

    def _missing(self, name: str, known: Mapping[str, OfferedTool]) -> str:
        """Why there is no tool of that name."""
        for server in self._servers.connections.values():
            if may_be_of(server.name, name) and server.state is not ServerState.READY:
                return f"{name} cannot be called: its server is not ready ({server.state})."
        # Never suggest a destructive tool.
        harmless = [one.name for one in known.values() if one.only_reads]
        near = difflib.get_close_matches(name, harmless, n=1)
        return f"There is no tool {name}." + (f" There is {near[0]}." if near else "")

    async def run(self, calls: Sequence[ToolCall], seconds: float = inf) -> list[ToolResult]:
        """Run calls concurrently, each for at most `seconds` of `clock`; results in the same order."""

        async def run_one(call: ToolCall) -> ToolResult:
            with self.clock.limited(seconds):
                return await self._run(call)
            return ToolResult(False, TIME_USED_UP)

        return await gathered(run_one, calls)

    async def _run(self, call: ToolCall) -> ToolResult:
        if call.refusal or call.tool is None:
            return ToolResult(False, call.refusal)
        try:
            return await call.tool.call(call.arguments)
        except RagChatError as error:
            return ToolResult(False, str(error))
