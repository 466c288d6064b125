"""Deeper searching: comparing texts with a query by their meaning."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ragmcp.server.call import Call
from ragmcp.server.tools import Tool, tool
from ragmemory.limits import MAX_COMPARED_TEXTS
from ragmemory.mcp.errors import Memory, wire_errors

Query = Annotated[str, Meta(description="A question or keywords.", min_length=1)]
Texts = Annotated[
    list[str], Meta(description="What is compared with it, such as sentences.", max_length=MAX_COMPARED_TEXTS)
]


class Similarities(Struct, frozen=True):
    similarities: list[float]  # in [-1, 1], in the order of the texts


def search_tools(memory: Memory) -> list[Tool]:
    """The toolset `search`."""

    @tool(read_only=True)
    async def Compare(call: Call, query: Query, texts: Texts) -> Similarities:
        """Compare texts with a query by meaning. Nothing is stored."""
        with wire_errors():
            return Similarities(await (await memory()).similarities(query, texts))

    return [Compare]
