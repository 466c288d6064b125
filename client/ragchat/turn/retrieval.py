"""The one query to memory of a turn, with its deadline.

Memory that is down, slow or empty is a state here rather than an error: a model can answer without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio

from ragchat.answer import Candidate
from ragchat.errors import MemoryTimedOut, RagChatError
from ragchat.memory.matching import Catalogue
from ragchat.memory.types import ToolResult
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.passages import as_candidate
from ragcommon.concurrency import gathered
from ragcommon.contract.documents import DocumentPart
from ragcommon.contract.search import Comparison, QueryResult
from ragmcp.protocol.schema.tools import ToolInfo


class Memory(Catalogue, Protocol):
    """The part of `MemoryClient` that a turn needs. Its methods raise RagChatError."""

    async def query(
        self, text: str, top_k: int = ..., filter: dict[str, Any] | None = ...
    ) -> QueryResult: ...
    async def compare(self, query: str, texts: Sequence[str], words: Sequence[str] = ...) -> Comparison: ...
    async def part(
        self, document: str, start_line: int, end_line: int | None, cursor: str, tokens: int
    ) -> DocumentPart: ...
    async def tools(self) -> list[ToolInfo]: ...
    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult: ...


@dataclass(frozen=True)
class Retrieval:
    """`candidates` are all hits, marked as used if relevant; `notice` is for the user."""

    candidates: list[Candidate]
    notice: str = ""
    empty: bool = False  # memory has no documents
    corrections: Mapping[str, str] = field(default_factory=dict)  # of misspelt words of the query
    weights: Mapping[str, float] = field(default_factory=dict)  # of its content words, by rarity in memory
    failure: RagChatError | None = None  # why memory did not answer
    beginning: int = 0  # the chunk with the beginning of the document that is asked about
    of_day: bool = False  # that document is the note of the day that is asked about
    goes_on: bool = False  # the question follows one that did not ask for the notes of a time


async def retrieve(memory: Memory, query: str, limits: RetrievalLimits) -> Retrieval:
    """Query memory once. Raises nothing: errors are in `failure`."""
    try:
        with anyio.fail_after(limits.seconds):
            found = await memory.query(query, limits.top_k)
    except TimeoutError:
        return _failed(MemoryTimedOut("Query", limits.seconds))
    except RagChatError as error:
        return _failed(error)
    candidates = [as_candidate(hit, limits.min_score) for hit in found.hits]
    return Retrieval(candidates, found.notice, found.empty, found.corrections, found.weights)


async def retrieve_all(memory: Memory, queries: Sequence[str], limits: RetrievalLimits) -> list[Retrieval]:
    """Like `retrieve`, for several queries concurrently."""
    return await gathered(lambda query: retrieve(memory, query, limits), queries)


def _failed(error: RagChatError) -> Retrieval:
    return Retrieval([], f"{error} This answer does without memory. {error.hint}".rstrip(), failure=error)
