"""Conversations as whole chat exports, a file a session: what a model reads of what `Query` returns."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from ragmcp.server.core import Server
from ragmemory.app import make_service
from ragmemory.mcp.toolsets import make_tools
from ragmemory.service import MemoryService
from tests.benchmarks.ndcg import FOLDER, Collection, loadable
from tests.benchmarks.report import table
from tests.support.in_memory import open_memory
from tests.support.memories import LOCAL, ORIGIN, settings_for

NAME = "locomo"
# What a model reads of a result, in characters.
READ = 6_000
# Hits that are asked for: the default, and enough to fill that.
TOP_K = (8, 100)


async def measure(top_k: int) -> list[str]:
    """One line of the table."""
    collection = Collection.load(NAME)
    said = {one["id"]: f"> {one['text']}".strip() for one in collection.documents}
    with tempfile.TemporaryDirectory() as folder:
        async with make_service(settings_for(Path(folder)), LOCAL) as service:
            for number, session in enumerate(loadable(collection)):
                uri = f"file:///exports/session-{number}.md"
                await service.writer.inject(session.text, {"uri": uri, "title": session.title}, ORIGIN)

            async def memory() -> MemoryService:
                return service

            async with open_memory(Server("ragmemory", "1", make_tools(memory, ["memory"]))) as client:
                shares, characters, began = [], 0, time.perf_counter()
                for query, judged in collection.judged.items():
                    arguments = {"query": collection.queries[query], "top_k": top_k}
                    found = (await client.call_tool("Query", arguments, timeout=60)).text
                    characters += min(len(found), READ)
                    relevant = [said[one] for one, relevance in judged.items() if relevance > 0]
                    shares.append(sum(turn in found[:READ] for turn in relevant) / max(1, len(relevant)))
                took = (time.perf_counter() - began) / len(shares)
    return [
        str(top_k),
        f"{sum(shares) / len(shares):.3f}",
        f"{characters / len(shares):,.0f}",
        f"{took * 1e3:.1f}",
    ]


def run() -> None:
    if not (FOLDER / NAME / "corpus.jsonl").exists():
        print(f"Conversations: {NAME} is not in {FOLDER}; nothing to measure.")
        return
    table(
        f"LoCoMo, a file a session: the answering turns in the first {READ:,} characters of Query's text",
        ["top_k", "share (goal .85)", "characters read", "ms a query"],
        [asyncio.run(measure(top_k)) for top_k in TOP_K],
    )
