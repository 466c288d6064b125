"""Hits, turns, and a memory that answers from lists, for tests of the conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio
from msgspec.structs import replace

from ragchat import CLIENT_NAME
from ragchat.answer import Answer
from ragchat.errors import MemoryUnavailable, RagChatError
from ragchat.grounding.types import Citation, Unsupported
from ragchat.memory.client import MemoryClient
from ragchat.memory.types import DocumentText, ToolResult
from ragchat.servers.manager import ServerManager
from ragchat.turn.events import Event, Notice
from ragchat.turn.retrieval import Memory
from ragchat.turn.tools import Toolbox
from ragchat.turn.types import Trace, Turn
from ragcommon.contract.documents import DocumentPage, DocumentPart
from ragcommon.contract.search import Comparison, Hit, QueryResult
from ragconfig.settings import Settings, load_settings
from ragmcp.protocol.schema.tools import ToolAnnotations, ToolInfo

E = TypeVar("E")

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
QUERY_TOOL = ToolInfo(
    name="Query",
    description="Search.",
    input_schema=SCHEMA,
    annotations=ToolAnnotations(read_only_hint=True),
)
FORGET_TOOL = ToolInfo(name="Forget", description="Forget.", input_schema={"type": "object"})


def hit(text: str, *, score: float = 0.9, chunk_id: int = 1, title: str = "Notes", heading: str = "") -> Hit:
    return Hit(
        rank=1,
        score=score,
        chunk_id=chunk_id,
        document_id=f"doc{chunk_id}",
        uri=f"file:///notes/{chunk_id}.md",
        title=title,
        heading=heading,
        start_line=1,
        end_line=text.count("\n") + 1,
        text=text,
        metadata={},
        written_by=CLIENT_NAME,
    )


def turn(
    question: str,
    answer: str = "Yes.",
    *,
    turn_id: str = "t1",
    session_id: str = "s1",
    query: str = "",
    cited: Sequence[Citation] = (),
    created_at: str = "2026-01-01T00:00:00.000Z",
) -> Turn:
    return Turn(
        turn_id=turn_id,
        session_id=session_id,
        question=question,
        answer=Answer(answer, list(cited), grounded=True),
        timings={"total": 0.1},
        created_at=created_at,
        trace=Trace(query=query or question),
    )


# What the checks find in its answer, and how they say it.
FLAWED = replace(
    turn("How high is the pressure?"),
    answer=Answer(
        "It is 1.5 bar [9]. Hans Meier set it [1].",
        [Citation.of(1, hit("The pressure is set by hand."), "")],
        grounded=False,
        model="fake",
        unknown_citations=[9],
        unsupported=[Unsupported(["Hans Meier"], [1])],
    ),
)
FLAWS = ["! The answer cites [9], but no such passage was given.", "! Hans Meier: not in [1]."]


class ListMemory(MemoryClient):
    """A memory whose every query finds the same; `error` or `hang` make it fail instead."""

    def __init__(
        self,
        hits: Sequence[Hit] = (),
        *,
        notice: str = "",
        empty: bool = False,
        error: RagChatError | None = None,
        hang: bool = False,
        tools: Sequence[ToolInfo] = (),
        answers: Sequence[Hit] = (),
        corrections: Mapping[str, str] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.hits = [replace(one, rank=rank) for rank, one in enumerate(hits, 1)]
        self.notice = notice
        self.empty = empty
        self.error = error
        self.hang = hang
        self.offered = list(tools)
        self.answers = list(answers)  # what the tool Query finds
        self.corrections = dict(corrections or {})
        self.weights = dict(weights or {})
        self.asked: list[str] = []
        self.compared = 0
        self.called: list[tuple[str, dict[str, Any]]] = []
        self.at_once = 0
        self.most_at_once = 0

    async def query(self, text: str, top_k: int = 8, filter: dict[str, Any] | None = None) -> QueryResult:
        self.asked.append(text)
        assert filter is None
        if self.error is not None:
            raise self.error
        if self.hang:
            await anyio.sleep_forever()
        return QueryResult(self.hits[:top_k], self.empty, self.notice, self.corrections, weights=self.weights)

    async def part(self, *arguments: object) -> DocumentPart:
        raise MemoryUnavailable(f"it has passages only: {arguments}")

    async def compare(self, query: str, texts: Sequence[str], words: Sequence[str] = ()) -> Comparison:  # noqa: ARG002
        """The share of the query's words that each text has; no vectors of single words."""
        self.compared += 1
        asked = set(query.lower().strip("?").split())
        return Comparison([len(asked & set(text.lower().split())) / max(1, len(asked)) for text in texts])

    async def documents(self, *_: object, **__: object) -> DocumentPage:
        """None of them has a name."""
        return DocumentPage([], 0)

    async def show(self, document: str) -> DocumentText:
        """The passages of a document, one after the other."""
        text = "".join(hit.text for hit in self.hits if hit.document_id == document)
        return DocumentText(document, "", "", 1, len(text), "", "", text=text)

    async def tools(self) -> list[ToolInfo]:
        return self.offered

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        self.called.append((name, arguments))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await anyio.lowlevel.checkpoint()
        self.at_once -= 1
        if name != "Query":
            return ToolResult(True, "Done.")
        return ToolResult(True, "Found.", self.answers)


def settings_in(folder: Path, **flags: object) -> Settings:
    """Packaged settings with everything under `folder`, offline; keys with "__" for the dot."""
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    defaults = {"model.name": "offline", "model.retries": 0, "model.ollama_url": "http://127.0.0.1:9/v1"}
    return load_settings(None, {**defaults, **dotted}, {"RAGCHAT_HOME": str(folder)}, folder)


def notices(events: Sequence[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


def only(events: Sequence[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def make_toolbox(memory: Memory, *offered: str, budget: int = 10_000) -> Toolbox:
    """Tools of memory alone, none of which is allowed or forbidden."""
    return Toolbox(memory, offered, 5.0, no_servers(settings_in(Path("/nonexistent"))), budget=budget)


def no_servers(settings: Settings) -> ServerManager:
    """A manager without servers; the test opens memory itself."""
    return ServerManager(settings, only_memory=True)
