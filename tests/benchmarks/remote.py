"""Remote indexes against the index of a process: nDCG@10, equal hits and scores, times, recall of HNSW.

`python -m tests.benchmarks.remote [collection …]`. pgvector runs in a real PostgreSQL; Qdrant is the one that
RAGCHAT_TEST_QDRANT names, else its client's local mode, which is exact and slow: its times mean nothing.
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
from ragmemory.service import MemoryService
from tests.benchmarks.ndcg import FOLDER, TOP_K, Collection, ndcg
from tests.benchmarks.report import table
from tests.support.memories import ORIGIN, settings_for
from tests.support.postgres import postgres
from tests.support.remote import catch_up, use_qdrant

COLLECTIONS = ("cranfield", "cisi", "xquad_de")
NEIGHBOURS = 10


async def load(memory: MemoryService, collection: Collection) -> None:
    async with anyio.create_task_group() as tasks:
        for one in collection.documents:
            if one["text"].strip():
                metadata = {"uri": one["id"], "title": one["title"]}
                tasks.start_soon(memory.writer.inject, one["text"], metadata, ORIGIN)


async def measure(url: str, name: str) -> list[list[str]]:
    """One line for each index; all follow the same memory, one after the other."""
    collection = Collection.load(name)
    rows, derived = [], list[list[Hit]]()
    for kind in ("", "pgvector", "http://127.0.0.1:6333"):
        with tempfile.TemporaryDirectory() as folder:
            settings = settings_for(Path(folder), memory__path=url, index__url=kind)
            async with AsyncExitStack() as stack:
                if kind.startswith("http"):
                    use_qdrant(stack)
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
                recall = await hnsw_recall(memory, collection) if kind == "pgvector" else None
        name_of_kind = {"": "in the process", "pgvector": "pgvector"}.get(kind, "Qdrant")
        rows.append(
            [
                f"{name}, {name_of_kind}",
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
    """The share of the exactly nearest that pgvector finds, on average over the queries."""
    engine, embedder = memory.passages._engine, LocalEmbedder()
    rows = await engine.read("SELECT chunk_id, vector FROM embeddings ORDER BY chunk_id")
    ids = np.array([row[0] for row in rows])
    matrix = np.frombuffer(b"".join(row[1] for row in rows), "<f2").reshape(len(rows), -1).astype(np.float32)
    shares = []
    for query in collection.judged:
        vector = await embedder.embed_query(collection.queries[query], lambda words: [1.0] * len(words))
        if vector is None:
            continue
        nearest = set(ids[np.argsort(-(matrix @ vector), kind="stable")[:NEIGHBOURS]].tolist())
        async with engine.reading() as connection:
            await connection.execute_fetchall(
                "SELECT set_config('hnsw.ef_search', '200', FALSE),"
                " set_config('enable_seqscan', 'off', FALSE)"
            )
            found = await connection.execute_fetchall(
                "SELECT chunk_id FROM remote_chunks ORDER BY vector OPERATOR(public.<#>)"
                " CAST(? AS public.halfvec) LIMIT ?",
                [str(vector.tolist()), NEIGHBOURS],
            )
        shares.append(len(nearest.intersection(row[0] for row in found)) / NEIGHBOURS)
    return statistics.fmean(shares)


def run(names: Sequence[str] = COLLECTIONS) -> None:
    logging.disable()
    warnings.simplefilter("ignore")
    present = [name for name in names if (FOLDER / name / "corpus.jsonl").exists()]
    lines = []
    with postgres() as url:
        for name in present:
            lines += asyncio.run(measure(f"{url}&schema=bench_{secrets.token_hex(4)}", name))
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
