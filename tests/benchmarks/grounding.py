"""How the threshold of grounded answers trades right answers against false claims.

`python -m tests.benchmarks grounding`. Each question of `../shared/answers` is asked offline. A row says, for
one threshold (`offline.answer.GROUNDED`), how many answers are grounded and hold the gold answer, how many
unknown questions are declined, and the precision and recall of `grounded`.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragchat.ingest.loading import load_files
from ragchat.memory.client import MemoryClient
from ragchat.offline.answer import evidence
from ragchat.offline.evidence import Question
from ragchat.offline.windows import best_windows
from ragconfig.text_rules import with_words_replaced
from tests.benchmarks.report import table
from tests.support.memory import memory_in

FOLDER = Path(__file__).parents[3] / "shared" / "answers"
THRESHOLDS = (0.25, 0.3, 0.35, 0.39, 0.45, 0.5, 0.6, 0.75)
TOP_K = 8


@dataclass(frozen=True)
class _Judged:
    kind: str
    is_known: bool
    has_gold: bool  # the quotations contain the gold answer
    evidence: float


def _folded(text: str) -> str:
    return " ".join(text.replace("*", "").replace("`", "").split()).casefold()


async def _judged(memory: MemoryClient, case: dict[str, Any]) -> _Judged:
    found = await memory.query(case["q"], TOP_K)
    text = with_words_replaced(case["q"], found.corrections)
    asked = Question.of(text, text, found.weights)
    windows = best_windows(asked, found.hits)
    quoted = _folded("\n".join(window.text for window in windows))
    gold = case.get("gold", [])
    answers = [gold] if isinstance(gold, str) else gold
    has_gold = any(_folded(answer) in quoted for answer in answers)
    return _Judged(case["kind"], not case.get("unknown"), has_gold, evidence(asked, windows))


async def measure() -> list[_Judged]:
    """Every question that does not follow another one."""
    cases = json.loads((FOLDER / "questions.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        async with memory_in(Path(folder)) as memory:
            await load_files(memory, [FOLDER / "documents"])
            return [await _judged(memory, case) for case in cases if "after" not in case]


def _row(judged: Sequence[_Judged], threshold: float) -> list[str]:
    grounded = [one for one in judged if one.evidence >= threshold]
    right = sum(one.has_gold for one in grounded)
    return [
        f"{threshold:.2f}",
        f"{sum(one.has_gold for one in grounded if one.kind == 'fact')}",
        f"{right}",
        *(
            f"{sum(one.evidence < threshold for one in judged if one.kind == kind)}"
            for kind in ("unknown-near", "unknown-far")
        ),
        f"{right / (len(grounded) or 1):.3f}",
        f"{right / sum(one.is_known for one in judged):.3f}",
    ]


def run() -> None:
    if not (FOLDER / "questions.json").exists():
        print(f"Grounded answers: the questions are not in {FOLDER}; nothing to measure.")
        return
    judged = asyncio.run(measure())
    table(
        "Grounded answers by threshold",
        ["threshold", "right facts", "right", "near declined", "far declined", "precision", "recall"],
        [_row(judged, threshold) for threshold in THRESHOLDS],
    )
