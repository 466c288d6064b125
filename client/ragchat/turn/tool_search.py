"""Tools that a model searches for instead of getting all descriptions in every prompt.

The tool descriptions of twenty servers would fill most of a model's context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ragchat.errors import RagChatError
from ragchat.llm import tokens
from ragchat.memory.types import ToolResult
from ragchat.servers.tools import OfferedTool
from ragchat.turn.retrieval import Memory
from ragmcp.protocol.schema.tools import ToolAnnotations, ToolInfo

# The tools that one search returns at most.
MAX_FOUND = 5
# For the model, then for the user.
NOT_OFFERED = "Also found, but without room to describe them, so you cannot call them: {names}."
NO_ROOM = "There is no room for these tools within tools.description_tokens: {names}."
# The server name of the host's own tools.
HOST = ""
FIND_TOOLS = ToolInfo(
    name="find_tools",
    description="Find tools of the connected servers by what they do. You can then call those it returns.",
    input_schema={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What the tool should do."}},
        "required": ["query"],
    },
    annotations=ToolAnnotations(read_only_hint=True),
)


class ToolSearch:
    """Offers all tools if their descriptions fit into `budget` tokens, otherwise a search for them.

    Tools that a search has found stay offered while they fit, latest first. Tools that do not fit are named
    in the result of the search as not callable.
    """

    def __init__(self, memory: Memory, budget: int) -> None:
        self._memory = memory
        self._budget = budget
        self._tools: Sequence[OfferedTool] = ()
        self._room = 0  # tokens left for tools found by further searches
        self._found: list[str] = []  # by name, the latest last

    def offered(self, always: Sequence[OfferedTool], others: Sequence[OfferedTool]) -> list[OfferedTool]:
        """The tools that the model gets: `always`, and as many of `others` as fit."""
        if cost([*always, *others]) <= self._budget:
            return [*always, *others]
        self._tools = others
        search = OfferedTool(FIND_TOOLS.name, HOST, HOST, FIND_TOOLS, True, self._find)
        offered, by_name = [*always, search], {tool.name: tool for tool in others}
        self._room = room = self._budget - cost(offered)
        for name in reversed(self._found):
            if name in by_name and (taken := cost([by_name[name]])) <= room:
                offered.append(by_name[name])
                room -= taken
        return offered

    async def _find(self, arguments: dict[str, Any]) -> ToolResult:
        query = str(arguments.get("query", ""))
        texts = [f"{tool.name.replace('_', ' ')}: {tool.info.description or ''}" for tool in self._tools]
        try:
            scores = (await self._memory.compare(query, texts)).similarities
        except RagChatError:  # Without memory, compare by words instead of meaning.
            scores = [_shared_words(query, text) for text in texts]
        ranked = sorted(zip(scores, self._tools, strict=True), key=lambda pair: pair[0], reverse=True)
        found, left_out = list[OfferedTool](), list[str]()
        for _, tool in ranked[:MAX_FOUND]:
            if (taken := cost([tool])) <= self._room:
                found.append(tool)
                self._room -= taken
            else:
                left_out.append(tool.name)
        names = [tool.name for tool in reversed(found)]
        self._found = [*(name for name in self._found if name not in names), *names]
        result = ToolResult(True, msgspec.json.encode([as_function(tool) for tool in found]).decode())
        if left_out:
            without = ", ".join(left_out)
            text = f"{result.text}\n{NOT_OFFERED.format(names=without)}"
            return replace(result, text=text, notes=[NO_ROOM.format(names=without)])
        return result


def as_function(tool: OfferedTool) -> dict[str, Any]:
    """A tool in the form of the chat-completions API."""
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.info.description or "",
            "parameters": tool.info.input_schema,
        },
    }


def cost(tools: Sequence[OfferedTool]) -> int:
    """An estimate of the tokens that their descriptions take."""
    return tokens.about([as_function(tool) for tool in tools])


def _shared_words(query: str, text: str) -> float:
    return len({*query.lower().split()} & {*text.lower().split()})
