"""The tools of memory that a model may call by itself, and the calls of one round, run at the same time.

Who may be called is decided here: read-only tools at once, any other only with the user's approval.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from msgspec import UnsetType

from ragchat.errors import RagChatError
from ragchat.turn.retrieval import Memory
from ragchat.types import Hit, ToolRequest

if TYPE_CHECKING:
    from ragmcp.protocol.schema.tools import ToolInfo

Approve = Callable[[str, dict[str, Any]], Awaitable[bool]]


@dataclass(frozen=True)
class Call:
    """A request with its arguments read; `refusal` says why it is not carried out."""

    request: ToolRequest
    arguments: dict[str, Any] = field(default_factory=dict)
    refusal: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a call: passages of memory, or any other text."""

    call: Call
    ok: bool
    text: str
    hits: list[Hit] = field(default_factory=list)


class Toolbox:
    """The offered tools; those of a memory that is down are left out."""

    def __init__(self, memory: Memory, offered: Sequence[str], seconds: float) -> None:
        self._memory = memory
        self._offered = offered
        self._seconds = seconds
        self._tools: dict[str, ToolInfo] | None = None

    async def tools(self) -> dict[str, ToolInfo]:
        """The offered tools by name; asked for once."""
        if self._tools is None and self._offered:
            try:
                with anyio.fail_after(self._seconds):
                    listed = await self._memory.tools()
            except (TimeoutError, RagChatError):
                return {}
            self._tools = {tool.name: tool for tool in listed if tool.name in self._offered}
        return self._tools or {}

    async def descriptions(self) -> list[dict[str, Any]]:
        """The tools as the chat-completions API wants them."""
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

    async def permit(self, request: ToolRequest, approve: Approve | None) -> Call:
        """Read a request's arguments and decide on it; this may ask the user."""
        tool = (await self.tools()).get(request.name)
        if tool is None:
            return Call(request, refusal=f"There is no tool {request.name}.")
        try:
            arguments = msgspec.json.decode(request.arguments or "{}", type=dict[str, Any])
        except msgspec.MsgspecError as error:
            return Call(request, refusal=f"The arguments are not a JSON object: {error}.")
        if not _reads_only(tool) and not (approve and await approve(request.name, arguments)):
            return Call(request, arguments, refusal="The user did not allow this call.")
        return Call(request, arguments)

    async def run(self, calls: Sequence[Call]) -> list[Outcome]:
        """Carry out the calls of one round at the same time; the outcomes in the order of the calls."""
        outcomes: dict[int, Outcome] = {}

        async def one(place: int, call: Call) -> None:
            outcomes[place] = await self._outcome(call)

        async with anyio.create_task_group() as group:
            for place, call in enumerate(calls):
                group.start_soon(one, place, call)
        return [outcomes[place] for place in range(len(calls))]

    async def _outcome(self, call: Call) -> Outcome:
        if call.refusal:
            return Outcome(call, False, call.refusal)
        try:
            with anyio.fail_after(self._seconds):
                answer = await self._memory.call(call.request.name, call.arguments)
        except TimeoutError:
            return Outcome(call, False, f"The tool did not answer within {self._seconds:g} s.")
        except RagChatError as error:
            return Outcome(call, False, str(error))
        return Outcome(call, answer.ok, answer.text, answer.hits)


def _reads_only(tool: ToolInfo) -> bool:
    hints = tool.annotations
    return not isinstance(hints, UnsetType) and hints.read_only_hint is True
