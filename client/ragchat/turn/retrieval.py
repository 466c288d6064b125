"""Asking memory once for a turn, within a deadline: what it has, or why there is nothing.

Memory that is down, slow or empty is a state here, not an error: a model can go on without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from ragchat.errors import MemoryTimedOut, RagChatError
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.passages import judge
from ragchat.types import Candidate

if TYPE_CHECKING:
    from ragchat.memory.types import QueryResult, Stats
    from ragmcp.client.client import ToolCallResult
    from ragmcp.protocol.schema.tools import ToolInfo


class Memory(Protocol):
    """The part of `MemoryClient` that a turn needs. Its methods raise RagChatError."""

    async def query(
        self, text: str, top_k: int = ..., filter: dict[str, Any] | None = ...
    ) -> QueryResult: ...
    async def stats(self) -> Stats: ...
    async def tools(self) -> list[ToolInfo]: ...
    async def call(self, name: str, arguments: dict[str, Any]) -> ToolCallResult: ...


@dataclass(frozen=True)
class Retrieval:
    """`candidates` are all hits, marked as used where they are relevant; `notice` is for the user."""

    candidates: list[Candidate]
    notice: str = ""
    empty: bool = False  # there is no document at all
    failure: RagChatError | None = None  # why memory could not be asked


async def retrieve(memory: Memory, query: str, limits: RetrievalLimits) -> Retrieval:
    """Ask memory once; a second, small question only tells an empty memory from one without an answer."""
    try:
        with anyio.fail_after(limits.seconds):
            found = await memory.query(query, limits.top_k)
            empty = not found.hits and (await memory.stats()).documents == 0
    except TimeoutError:
        return _failed(MemoryTimedOut("Query", limits.seconds))
    except RagChatError as error:
        return _failed(error)
    candidates = [judge(hit, limits.min_score) for hit in found.hits]
    return Retrieval(candidates, found.notice, empty)


def _failed(error: RagChatError) -> Retrieval:
    return Retrieval([], f"{error} This answer goes without it. {error.hint}".rstrip(), failure=error)
