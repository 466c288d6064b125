"""Results of other servers' tools as passages that can be numbered, quoted and cited."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from math import inf
from typing import Any

from msgspec.structs import replace as with_changes

from ragchat.answer import Candidate
from ragchat.llm import tokens
from ragchat.llm.types import ToolRequest
from ragchat.memory.types import ToolResult
from ragchat.research.search import is_generated
from ragchat.turn.approval import Approve
from ragchat.turn.passages import shortened
from ragchat.turn.tools import OWN, Toolbox, ToolCall
from ragcommon.contract.search import Hit

# The line or field with the address of the text that follows it, as in web search results.
_ADDRESS = re.compile(
    r"""(?:^|[{,])[\s"'*-]*(?:url|link|source|href)["'*\s]*[:=]["'*\s]*(https?://[^\s"'<>)\]*]+)""",
    re.IGNORECASE | re.MULTILINE,
)
_WEB = ("https://", "http://")
# The maximum distance of a title above an address.
TITLE_CHARACTERS = 200


class EvidenceTools:
    """A `Toolbox` whose descriptions and results together take about `room` tokens at most.

    Results are passages. `asks`: also offer tools that need the user's permission.
    """

    def __init__(self, toolbox: Toolbox, room: int, *, asks: bool) -> None:
        self._toolbox = toolbox
        self.clock = toolbox.clock
        self._asks = asks
        self._room = room

    async def descriptions(self) -> list[dict[str, Any]]:
        """As for `Toolbox`; empty if there is no room for results."""
        described = await self._toolbox.descriptions()
        hidden = set() if self._asks else await self._toolbox.asking()
        offered = [one for one in described if one["function"]["name"] not in hidden]
        return offered if tokens.prompt_at_most(offered) < self._room else []

    async def permit(
        self, request: ToolRequest, approve: Approve | None, untrusted: Sequence[str] = ()
    ) -> ToolCall:
        """As for `Toolbox`."""
        return await self._toolbox.permit(request, approve, untrusted)

    async def run(self, calls: Sequence[ToolCall], seconds: float = inf) -> list[ToolResult]:
        """As for `Toolbox`, but what other servers returned becomes hits."""
        results = await self._toolbox.run(calls, seconds)
        # A quarter: descriptions and later rounds need room too.
        share = self._room // 4 // max(1, len(calls))
        cited = [_as_evidence(call, result, share) for call, result in zip(calls, results, strict=True)]
        self._room -= sum(tokens.at_most(result.text) for result in cited)
        return cited


def _as_evidence(call: ToolCall, result: ToolResult, budget: int) -> ToolResult:
    if result.hits:
        return with_changes(result, hits=[hit for hit in result.hits if not is_generated(hit)])
    from_server = call.tool is not None and call.tool.server not in OWN
    if not (from_server and result.ok and result.text.strip()):
        return result
    hits = [*passages_of(result.text, call.request.name, call.arguments)]
    cut = [candidate.hit for candidate in shortened([Candidate(hit, True, "") for hit in hits], budget)]
    return ToolResult(True, "".join(hit.text for hit in cut), [hit for hit in cut if hit.text.strip()])


def passages_of(text: str, tool: str, arguments: dict[str, Any]) -> Iterator[Hit]:
    """A tool's result as passages. The source is the address in the arguments of the call, if there is one.

    Otherwise the result is split at the addresses in it, and the source of each part is `mcp:tool#address`:
    the address is only the server's claim.
    """
    asked = [value for value in arguments.values() if isinstance(value, str) and value.startswith(_WEB)]
    found = [] if asked else [*_ADDRESS.finditer(text)]
    starts = [0, *(_paragraph_start(text, address.start()) for address in found[1:]), len(text)]
    sources = [f"mcp:{tool}#{address[1]}" for address in found] or [*asked[:1], f"mcp:{tool}"]
    for start, end, source in zip(starts, starts[1:], sources, strict=False):
        if part := text[start:end].strip("\n"):
            # A stored chunk has a positive id.
            number = -int(hashlib.sha256(f"{source}\n{part}".encode()).hexdigest()[:12], 16)
            last = part.count("\n") + 1
            place = [(1, f"(as {tool} says)" if found else f"({tool})")]
            yield Hit(1, 1.0, number, "", source, tool, "", 1, last, part, {}, places=place)


def _paragraph_start(text: str, position: int) -> int:
    """The start of the paragraph of an address, which may begin with a title; `position` if it is far."""
    start = text.rfind("\n\n", 0, position + 1) + 1
    return start if start > 0 and position - start <= TITLE_CHARACTERS else position
