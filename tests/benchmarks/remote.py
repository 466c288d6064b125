"""Remote indexes against the index of a process: nDCG@10, equal hits and scores, times, recall of HNSW.

`python -m tests.benchmarks.remote [collection …]`, and all of these in one memory: Qdrant makes a graph only
for some 20,000 chunks or more. pgvector runs in a real PostgreSQL; Qdrant is the one that
RAGCHAT_TEST_QDRANT names, else its engine in this process, behind HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import numpy as np

from ragcommon.contract.search import Hit
from ragmemory.app import make_service
from ragmemory.embedders.local import LocalEmbedder
from ragmemory.search.remote.vector_store import Sought
from ragmemory.service import MemoryService
from tests.benchmarks.ndcg import FOLDER, TOP_K, Collection, ndcg
from tests.benchmarks.report import table
from tests.support.memories import ORIGIN, settings_for
from tests.support.postgres import postgres
from tests.support.remote import catch_up, qdrant_url, remote_index

COLLECTIONS = ("cranfield", "cisi", "xquad_de")
NEIGHBOURS, WANTED = 10, 150


async def load(memory: MemoryService, collection: Collection) -> None:
    async with anyio.create_task_group() as tasks:
        for one in collection.documents:
            if one["text"].strip():
                metadata = {"uri": one["id"], "title": one["title"]}
                tasks.start_soon(memory.writer.inject, one["text"], metadata, ORIGIN)


def together(collections: Sequence[Collection]) -> Collection:
    """All documents and queries, as one collection."""
    documents, queries, judged = [], dict[str, str](), dict[str, dict[str, float]]()
    for one in collections:
        documents += [{**document, "id": f"{one.name}/{document['id']}"} for document in one.documents]
        queries |= {f"{one.name}/{query}": text for query, text in one.queries.items()}
        for query, relevant in one.judged.items():
            judged[f"{one.name}/{query}"] = {f"{one.name}/{name}": how for name, how in relevant.items()}
    return Collection("together", documents, queries, judged)


async def measure(url: str, collection: Collection) -> list[list[str]]:
    """One line for each index; all follow the same memory, one after the other."""
    rows, derived = [], list[list[Hit]]()
    for kind in ("", "pgvector", "Qdrant"):
        with tempfile.TemporaryDirectory() as folder:
            async with AsyncExitStack() as stack:
                index_url = await qdrant_url(stack) if kind == "Qdrant" else kind
                settings = settings_for(
                    Path(folder), memory__path=url, index__url=index_url, index__timeout_seconds=120
                )
                memory = await stack.enter_async_context(make_service(settings, LocalEmbedder()))
                if not kind:
                    await load(memory, collection)
                began = time.perf_counter()
                await memory.search.query("warm up", 1)
                if kind:
                    await catch_up(memory)
                built = time.perf_counter() - began
                values, times, found = [], [], []
                for query, judged in collection.judged.items():
                    began = time.perf_counter()
                    hits = (await memory.search.query(collection.queries[query], TOP_K)).hits
                    times.append(time.perf_counter() - began)
                    found.append(hits)
                    values.append(ndcg(list(dict.fromkeys(hit.uri for hit in hits)), judged))
                derived = derived or found
                recall = await hnsw_recall(memory, collection) if kind else None
        rows.append(
            [
                f"{collection.name}, {kind or 'in the process'}",
                f"{statistics.fmean(values):.4f}",
                *_compared(derived, found),
                f"{recall:.3f}" if recall is not None else "–",
                f"{statistics.median(times) * 1e3:.1f}",
                f"{built:.1f}",
            ]
        )
    return rows


def _compared(derived: Sequence[Sequence[Hit]], found: Sequence[Sequence[Hit]]) -> list[str]:
    shared, total, apart = 0, 0, 0.0
    for expected, hits in zip(derived, found, strict=True):
        scores = {hit.chunk_id: hit.score for hit in expected}
        both = [hit for hit in hits if hit.chunk_id in scores]
        shared, total = shared + len(both), total + len(expected)
        apart = max([apart, *(abs(hit.score - scores[hit.chunk_id]) for hit in both)])
    return [f"{shared / total:.4f}", f"{apart:.1e}"]


async def hnsw_recall(memory: MemoryService, collection: Collection) -> float:
    """The share of the exactly nearest that are among the candidates, on average over the queries."""
    embedder, index = LocalEmbedder(), remote_index(memory)
    rows = await memory.passages._engine.read("SELECT chunk_id, vector FROM embeddings ORDER BY chunk_id")
    ids = np.array([row[0] for row in rows])
    matrix = np.frombuffer(b"".join(row[1] for row in rows), "<f2").reshape(len(rows), -1).astype(np.float32)
    shares = []
    for query in collection.judged:
        vector = await embedder.embed_query(collection.queries[query], lambda words: [1.0] * len(words))
        if vector is None:
            continue
        nearest = set(ids[np.argsort(-(matrix @ vector), kind="stable")[:NEIGHBOURS]].tolist())
        sought = Sought(index.name, vector, (), None, WANTED, 1.0)
        shares.append(len(nearest.intersection(await index.vectors.candidates(sought))) / NEIGHBOURS)
    return statistics.fmean(shares)


def run(names: Sequence[str] = COLLECTIONS) -> None:
    logging.disable()
    warnings.simplefilter("ignore")
    present = [Collection.load(name) for name in names if (FOLDER / name / "corpus.jsonl").exists()]
    lines = []
    with postgres() as url:
        for collection in [*present, together(present)]:
            lines += asyncio.run(measure(f"{url}&schema=bench_{secrets.token_hex(4)}", collection))
    table(
        "Remote indexes against the index of a process",
        [
            "collection",
            "nDCG@10",
            "shared hits",
            "scores apart",
            "recall@10 of HNSW",
            "ms a query",
            "s to build",
        ],
        lines,
    )


if __name__ == "__main__":
    run(sys.argv[1:] or COLLECTIONS)
