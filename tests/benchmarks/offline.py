"""How often an answer without any model contains the gold answer, through the real memory.

`python -m tests.benchmarks.offline [collection …]`. Each question of a collection with gold answers is asked
offline; its answer counts when its cards, read together, contain one of the gold answers letter for letter.
Beside it stand how often the answer was in the retrieved passages at all (the ceiling), how much is shown,
and how often a question that memory cannot answer (about programming, from another collection) is answered
all the same.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ragchat.answer import Answer
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.offline import answer_offline
from ragchat.turn.retrieval import Retrieval, retrieve
from tests.benchmarks.ndcg import FOLDER
from tests.benchmarks.report import table
from tests.support.memory import memory_in

COLLECTIONS = ("xquad_en", "xquad_de", "xquad_zh")
FOREIGN = "cosqa"
FOREIGN_QUESTIONS = 200
# As the packaged settings have it.
LIMITS = RetrievalLimits(top_k=8, min_score=0.3, seconds=60.0)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _contains(texts: Sequence[str], answers: Sequence[str]) -> bool:
    text = "\n".join(texts)
    return any(answer in text for answer in answers)


def _foreign_questions() -> list[str]:
    path = FOLDER / FOREIGN / "queries.jsonl"
    return [row["text"] for row in _rows(path)[:FOREIGN_QUESTIONS]] if path.exists() else []


class _Tally:
    """What happened to the questions of one collection."""

    def __init__(self) -> None:
        self.answered: list[bool] = []
        self.reachable: list[bool] = []
        self.grounded: list[bool] = []
        self.sizes: list[tuple[int, int]] = []  # cards, characters
        self.seconds: list[float] = []
        self.foreign: list[bool] = []

    def add(self, retrieval: Retrieval, answer: Answer, answers: Sequence[str]) -> None:
        quotes = [card.text for card in answer.cards]
        self.answered.append(_contains(quotes, answers))
        self.reachable.append(_contains([found.hit.text for found in retrieval.candidates], answers))
        self.grounded.append(answer.grounded)
        self.sizes.append((len(quotes), sum(map(len, quotes))))

    def row(self, name: str) -> list[str]:
        cards, characters = zip(*self.sizes, strict=True)
        return [
            name,
            f"{len(self.answered)}",
            f"{statistics.mean(self.answered):.3f}",
            f"{statistics.mean(self.reachable):.3f}",
            f"{statistics.mean(self.grounded):.3f}",
            f"{statistics.mean(self.foreign):.3f}" if self.foreign else "–",
            f"{statistics.mean(cards):.1f} / {statistics.mean(characters):.0f}",
            f"{statistics.median(self.seconds) * 1e3:.1f}",
        ]


async def measure(name: str) -> list[str]:
    """One line of the table."""
    tally = _Tally()
    with tempfile.TemporaryDirectory() as folder:
        async with memory_in(Path(folder)) as memory:
            for document in _rows(FOLDER / name / "corpus.jsonl"):
                metadata = {"uri": f"test:{document['id']}", "title": document["title"]}
                await memory.inject(document["text"], metadata)
            for question in _rows(FOLDER / name / "queries.jsonl"):
                began = time.perf_counter()
                retrieval = await retrieve(memory, question["text"], LIMITS)
                answer = await answer_offline(question["text"], question["text"], retrieval, memory, LIMITS)
                tally.seconds.append(time.perf_counter() - began)
                tally.add(retrieval, answer, question["answers"])
            for text in _foreign_questions():
                retrieval = await retrieve(memory, text, LIMITS)
                answer = await answer_offline(text, text, retrieval, memory, LIMITS)
                tally.foreign.append(answer.grounded)
    return tally.row(name)


def run(names: Iterable[str] = COLLECTIONS) -> None:
    present = [name for name in names if (FOLDER / name / "corpus.jsonl").exists()]
    if not present:
        print(f"Offline answers: the collections with gold answers are not in {FOLDER}; nothing to measure.")
        return
    table(
        "Answers without a model: how often they contain the gold answer",
        [
            "collection",
            "n",
            "contained",
            "in the hits",
            "grounded",
            "foreign grounded",
            "cards / signs",
            "ms",
        ],
        [asyncio.run(measure(name)) for name in present],
    )


if __name__ == "__main__":
    run(sys.argv[1:] or COLLECTIONS)
