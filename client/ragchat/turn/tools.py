"""The tools of memory that a model may call: read-only ones at once, others with the user's approval."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from msgspec import UnsetType

from ragchat.errors import RagChatError
from ragchat.memory.types import ToolResult
from ragchat.turn.retrieval import Memory
from ragchat.types import ToolRequest

if TYPE_CHECKING:
    from ragmcp.protocol.schema.tools import ToolInfo

Approve = Callable[[str, dict[str, Any]], Awaitable[bool]]


@dataclass(frozen=True)
class ToolCall:
    """A request with its arguments decoded. `refusal` says why it is not carried out, "" if it is."""

    request: ToolRequest
    arguments: dict[str, Any] = field(default_factory=dict)
    refusal: str = ""


class Toolbox:
    """The tools named in `offered`, as far as memory has them. `seconds` is the deadline of each request."""

    def __init__(self, memory: Memory, offered: Sequence[str], seconds: float) -> None:
        self._memory = memory
        self._offered = offered
        self._seconds = seconds
        self._tools: dict[str, ToolInfo] | None = None

    async def tools(self) -> dict[str, ToolInfo]:
        """The offered tools by name. Listed once; none while memory is down."""
        if self._tools is None and self._offered:
            try:
                with anyio.fail_after(self._seconds):
                    listed = await self._memory.tools()
            except (TimeoutError, RagChatError):
                return {}
            self._tools = {tool.name: tool for tool in listed if tool.name in self._offered}
        return self._tools or {}

    async def descriptions(self) -> list[dict[str, Any]]:
        """The tools in the form of the chat-completions API."""
        return [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description or "",
                    "parameters": tool.input_schema,
                },
            }
            for tool in (await self.tools()).values()
        ]

    async def permit(self, request: ToolRequest, approve: Approve | None) -> ToolCall:
        """Decode the arguments of a request and decide whether to carry it out; this may ask the user."""
        tool = (await self.tools()).get(request.name)
        if tool is None:
            return ToolCall(request, refusal=f"There is no tool {request.name}.")
        try:
            arguments = msgspec.json.decode(request.arguments or "{}", type=dict[str, Any])
        except msgspec.MsgspecError as error:
            return ToolCall(request, refusal=f"The arguments are not a JSON object: {error}.")
        if not _reads_only(tool) and not (approve and await approve(request.name, arguments)):
            return ToolCall(request, arguments, refusal="The user did not allow this call.")
        return ToolCall(request, arguments)

    async def run(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Carry out calls at the same time. Returns the results in the order of the calls."""
        results: dict[int, ToolResult] = {}

        async def run_one(index: int, call: ToolCall) -> None:
            results[index] = await self._run(call)

        async with anyio.create_task_group() as group:
            for index, call in enumerate(calls):
                group.start_soon(run_one, index, call)
        return [results[index] for index in range(len(calls))]

    async def _run(self, call: ToolCall) -> ToolResult:
        if call.refusal:
            return ToolResult(False, call.refusal)
        try:
            with anyio.fail_after(self._seconds):
                return await self._memory.call(call.request.name, call.arguments)
        except TimeoutError:
            return ToolResult(False, f"The tool did not answer within {self._seconds:g} s.")
        except RagChatError as error:
            return ToolResult(False, str(error))


def _reads_only(tool: ToolInfo) -> bool:
    hints = tool.annotations
    return not isinstance(hints, UnsetType) and hints.read_only_hint is True
