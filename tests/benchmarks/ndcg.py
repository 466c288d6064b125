"""nDCG@10 of the judged collections, through the shipped chunking, embedder, indexes and fusion.

`python -m tests.benchmarks.ndcg [collection …]`. The collections stay where they are, in ../shared/retrieval.
Documents with a date are turns of conversations: each session is loaded as one text, and a turn is found by
the chunk that holds it. The functions of a collection of code are files of its language.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path

from ragconfig.settings import load_settings
from ragmemory.app import make_embedder
from ragmemory.embedders import Embedder
from ragmemory.ingest.bulk import context
from ragmemory.ingest.chunking import ChunkerInput, ChunkingSettings, split
from ragmemory.search.index.chunk_index import ChunkIndex
from ragmemory.search.queries import SearchRequest, parse
from ragmemory.search.retriever import Retriever
from ragmemory.settings import RankingSettings
from ragmemory.text.languages import language_of
from ragmemory.types.changes import Changes, Checkpoint
from tests.benchmarks.report import table

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "retrieval"
# The floor: SQLite's BM25 and wordllama over whole documents, combined, as measured beside the collections.
RECIPE = {
    "cisi": 0.433,
    "npl": 0.449,
    "cranfield": 0.412,
    "squad_dev": 0.899,
    "cosqa": 0.429,
    "locomo": 0.448,
    "xquad_en": 0.974,
    "xquad_de": 0.938,
    "xquad_zh": 0.961,
}
TOP_K = 10
# Collections of source code, and the extension of their language.
CODE = {"cosqa": "py"}
# Documents taken in at once, as the service gathers them.
BATCH = 500


@dataclass(frozen=True)
class Collection:
    name: str
    documents: list[dict[str, str]]
    queries: dict[str, str]
    judged: dict[str, dict[str, float]]  # query → document → relevance

    @property
    def is_of_turns(self) -> bool:
        return "date" in self.documents[0]

    @classmethod
    def load(cls, name: str) -> Collection:
        """Raises FileNotFoundError."""
        judged: dict[str, dict[str, float]] = defaultdict(dict)
        for line in (FOLDER / name / "qrels.tsv").read_text(encoding="utf-8").splitlines():
            query, document, relevance = line.split("\t")
            judged[query][document] = float(relevance)
        queries = {row["id"]: row["text"] for row in _rows(FOLDER / name / "queries.jsonl")}
        return cls(name, _rows(FOLDER / name / "corpus.jsonl"), queries, dict(judged))


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True)
class Loadable:
    """A text to load, and where the documents that are judged begin in it."""

    title: str
    text: str
    documents: list[tuple[int, str]]

    def between(self, start: int, end: int) -> list[str]:
        """The documents that a chunk holds, or is a part of."""
        found = [name for begin, name in self.documents if start <= begin < end]
        return found or [[name for begin, name in self.documents if begin <= start][-1]]


def loadable(collection: Collection) -> list[Loadable]:
    if not collection.is_of_turns:
        return [Loadable(one["title"], one["text"], [(0, one["id"])]) for one in collection.documents]
    texts = []
    for _, turns in groupby(collection.documents, lambda turn: turn["id"].rpartition(":")[0]):
        title, text = "", ""
        begins: list[tuple[int, str]] = []
        for turn in turns:
            title = f"Conversation, {turn['date']}"
            text = text or f"# {title}\n\n"
            begins.append((len(text) if begins else 0, turn["id"]))
            text += f"{turn['text']}\n"
        texts.append(Loadable(title, text, begins))
    return texts


@dataclass
class Loaded:
    """A collection in the indexes; of chunk id − 1 its documents."""

    retriever: Retriever
    embedder: Embedder
    documents: list[list[str]]


async def load(collection: Collection) -> Loaded:
    settings = load_settings(environ={})
    embedder = make_embedder(settings)
    max_tokens = settings.table("chunking", ChunkingSettings).max_tokens
    index = ChunkIndex(embedder.dimensions, settings.table("ranking", RankingSettings))
    loaded = Loaded(Retriever(index), embedder, [])
    every = loadable(collection)
    language = language_of(f"function.{CODE[collection.name]}") if collection.name in CODE else None
    for start in range(0, len(every), BATCH):
        batch = every[start : start + BATCH]
        sources = [
            ChunkerInput(document.text, is_markdown=not language, is_prose=not language, language=language)
            for document in batch
        ]
        ids, titles, headings, texts, surroundings = [], [], [], [], []
        found = split(sources, max_tokens=max_tokens, count=embedder.count_tokens)
        for source, chunk in chain.from_iterable(found):
            document = batch[source]
            loaded.documents.append(document.between(chunk.start, chunk.end))
            ids.append(len(loaded.documents))
            titles.append(document.title)
            headings.append(chunk.heading)
            texts.append(document.text[chunk.start : chunk.end])
            surroundings.append(chunk.surroundings)
        names = list(map(context, titles, headings, surroundings))
        embeddings = await embedder.embed_documents(texts, names)
        checkpoint = Checkpoint(len(loaded.documents))
        index.apply(Changes(checkpoint, ids, titles, headings, texts, surroundings, embeddings, []))
    return loaded


async def found_chunks(loaded: Loaded, query: str, top_k: int) -> list[int]:
    """The first hits as places in `loaded`, best first."""
    retriever, embedder = loaded.retriever, loaded.embedder
    vector = await embedder.embed_query(query, retriever.word_weights)
    found = retriever.search(SearchRequest(parse(query), vector, embedder, None, set(), top_k), None)
    return [one.chunk_id - 1 for one in found]


async def found_documents(loaded: Loaded, query: str) -> list[str]:
    """The documents of the first TOP_K hits, best first, each once."""
    found = await found_chunks(loaded, query, TOP_K)
    return list(dict.fromkeys(chain.from_iterable(loaded.documents[place] for place in found)))


def ndcg(found: list[str], judged: dict[str, float]) -> float:
    """With linear gain, cut after TOP_K."""

    def gain(relevances: Iterable[float]) -> float:
        return sum(relevance / math.log2(rank + 2) for rank, relevance in enumerate(relevances))

    ideal = gain(sorted(judged.values(), reverse=True)[:TOP_K])
    return gain(judged.get(document, 0.0) for document in found[:TOP_K]) / ideal if ideal else 0.0


def reciprocal_rank(found: list[str], judged: dict[str, float]) -> float:
    """One divided by the rank of the first relevant document; 0 if there is none."""
    ranks = (rank for rank, document in enumerate(found, 1) if judged.get(document, 0.0) > 0)
    return 1 / next(ranks, math.inf)


async def measure(name: str) -> list[str]:
    """One line of the table."""
    collection = Collection.load(name)
    began = time.perf_counter()
    loaded = await load(collection)
    ready = time.perf_counter()
    found = [
        (await found_documents(loaded, collection.queries[query]), judged)
        for query, judged in collection.judged.items()
    ]
    values = [ndcg(documents, judged) for documents, judged in found]
    ranks = [reciprocal_rank(documents, judged) for documents, judged in found]
    done = time.perf_counter()
    return [
        name,
        f"{len(collection.documents):,} / {len(loaded.documents):,} / {len(values):,}",
        f"{sum(values) / len(values):.3f}",
        f"{RECIPE[name]:.3f}" if name in RECIPE else "–",
        f"{sum(ranks) / len(ranks):.3f}",
        f"{len(loaded.documents) / (ready - began):,.0f}",
        f"{(done - ready) / len(values) * 1e3:.2f}",
    ]


def run(names: Iterable[str] = RECIPE) -> None:
    present = [name for name in names if (FOLDER / name / "corpus.jsonl").exists()]
    if not present:
        print(f"nDCG@10: the judged collections are not in {FOLDER}; nothing to measure.")
        return
    table(
        "nDCG@10, the first 10 hits as documents",
        [
            "collection",
            "documents / chunks / queries",
            "nDCG@10",
            "recipe",
            "MRR@10",
            "chunks/s in",
            "ms a query",
        ],
        [asyncio.run(measure(name)) for name in present],
    )


if __name__ == "__main__":
    run(sys.argv[1:] or RECIPE)
