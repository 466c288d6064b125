"""How well the judgement tells questions that passages answer from those that they do not.

`python -m tests.benchmarks.grounding [--fit]`. Each question of the judged collections is asked three times:
with its paragraph in memory, without it (near), and without its whole article (far). The first table fits on
one family of collections and judges the other one; `--fit` prints the coefficients fitted on all of them.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ragchat.grounding.evidence import gather
from ragchat.grounding.judging import INTERCEPT, SIGNALS, signals_of
from ragchat.grounding.question import Question
from ragchat.memory.client import MemoryClient
from ragchat.offline.windows import ranked
from ragcommon.contract.search import Hit
from ragcommon.text.rules import with_words_replaced
from tests.benchmarks.ndcg import FOLDER, Collection
from tests.benchmarks.report import table
from tests.support.memory import memory_in

# XQuAD is made of questions of SQuAD: those are asked in one family only.
FAMILIES = {"XQuAD": ("xquad_en", "xquad_de", "xquad_zh"), "SQuAD": ("squad_dev",)}
ARTICLE = 5  # paragraphs of each article in XQuAD, one after the other
QUESTIONS = 400
TOP_K = 100  # the most, to go past a long article
COMPARED = 30  # as many as a turn asks for
BATCH = 100
CLAIMED = (0.9, 0.85, 0.8, 0.7)
# What an answerable, a near and a far question weigh in the fit: the near ones are the harder half.
WEIGHTS = (1.0, 0.7, 0.3)
RIDGE = 1e-3

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    intercept: float
    coefficients: Numbers  # in the order of SIGNALS

    def logits(self, signals: Numbers) -> Numbers:
        return np.asarray(self.intercept + signals @ self.coefficients)


SHIPPED = Model(INTERCEPT, np.array(list(SIGNALS.values())))


def _present(names: Sequence[str]) -> list[str]:
    return [name for name in names if (FOLDER / name / "corpus.jsonl").exists()]


def _articles(collection: Collection) -> Callable[[str], object]:
    titles = {document["id"]: document["title"] for document in collection.documents}
    places = {document["id"]: place for place, document in enumerate(collection.documents)}
    return lambda document: titles[document] or places[document] // ARTICLE


async def _ask(memory: MemoryClient, text: str, kept: Sequence[Callable[[str], bool]]) -> list[list[float]]:
    """The signals of the best passages of the documents that each of `kept` keeps."""
    found = await memory.query(text, TOP_K)
    question = Question.of(text, with_words_replaced(text, found.corrections), found.weights)
    rows = []
    for keeps in kept:
        kept_hits = [hit for hit in found.hits if keeps(_document(hit))][:COMPARED]
        hits = [replace(hit, rank=rank) for rank, hit in enumerate(kept_hits, 1)]
        if hits and question.judged:
            best = ranked(await gather(question, hits, memory))
            signals = signals_of(question, [window.evidence for window in best])
            rows.append([signals[name] for name in SIGNALS])
    return rows


def _document(hit: Hit) -> str:
    return hit.uri.rpartition("/")[2]


async def measure(collection: Collection, left_out: frozenset[str], most: int = QUESTIONS) -> Numbers:
    """Signals by question, by variant (answerable, near, far) and by signal."""
    article_of = _articles(collection)
    queries = [query for query in collection.judged if query not in left_out]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        async with memory_in(Path(folder)) as memory:
            for start in range(0, len(collection.documents), BATCH):
                batch = collection.documents[start : start + BATCH]
                await asyncio.gather(*(memory.inject(one["text"], _metadata(one)) for one in batch))
            for query in queries[:: max(1, len(queries) // most)][:most]:
                answers = {document for document, gain in collection.judged[query].items() if gain > 0}
                articles = set(map(article_of, answers))
                keepers: list[Callable[[str], bool]] = [
                    lambda _: True,
                    lambda document, answers=answers: document not in answers,  # type: ignore[misc]
                    lambda document, articles=articles: article_of(document) not in articles,  # type: ignore[misc]
                ]
                rows = await _ask(memory, collection.queries[query], keepers)
                if len(rows) == len(keepers):
                    found.append(rows)
    return np.array(found)


def _metadata(document: Mapping[str, str]) -> dict[str, str]:
    return {"title": document["title"], "uri": f"kept://collection/{document['id']}"}


def fit(sets: Sequence[Numbers]) -> Model:
    """A logistic regression by Newton's method. Each collection weighs the same."""
    rows = np.concatenate([one[:, variant] for one in sets for variant in range(3)])
    answers = np.concatenate([np.full(len(one), variant == 0) for one in sets for variant in range(3)])
    weights = np.concatenate([np.full(len(one), weight / len(one)) for one in sets for weight in WEIGHTS])
    weights /= weights.sum()
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    inputs = np.column_stack([np.ones(len(rows)), (rows - mean) / spread])
    ridge = RIDGE * np.eye(inputs.shape[1])
    ridge[0, 0] = 0
    fitted = np.zeros(inputs.shape[1])
    for _ in range(30):
        probabilities = 1 / (1 + np.exp(-inputs @ fitted))
        gradient = inputs.T @ (weights * (probabilities - answers)) + ridge @ fitted
        curvature = (inputs.T * (weights * probabilities * (1 - probabilities))) @ inputs + ridge
        fitted -= np.linalg.solve(curvature, gradient)
    coefficients = fitted[1:] / spread
    return Model(float(fitted[0] - coefficients @ mean), coefficients)


def auc(right: Numbers, wrong: Numbers) -> float:
    """How often one of the right ones is above one of the wrong ones."""
    above = (right[:, None] > wrong).mean() + (right[:, None] == wrong).mean() / 2
    return float(above)


def _row(name: str, model: Model, signals: Numbers) -> list[str]:
    answerable, near, far = model.logits(signals).T
    limits = [np.quantile(answerable, 1 - share) for share in CLAIMED]
    claimed = [f"{(near >= limit).mean():.0%} / {(far >= limit).mean():.1%}" for limit in limits]
    return [name, f"{auc(answerable, near):.3f}", f"{auc(answerable, far):.3f}", *claimed]


async def _measured() -> dict[str, dict[str, Numbers]]:
    families: dict[str, dict[str, Numbers]] = {}
    asked = frozenset[str]()
    for family, names in FAMILIES.items():
        collections = [Collection.load(name) for name in _present(names)]
        families[family] = {one.name: await measure(one, asked) for one in collections}
        asked |= frozenset(query for one in collections for query in one.judged)
    return {family: sets for family, sets in families.items() if sets}


def run(*, is_fit: bool = False) -> None:
    families = asyncio.run(_measured())
    if not families:
        print(f"Grounded answers: the judged collections are not in {FOLDER}; nothing to measure.")
        return
    columns = ["collection", "AUC near", "AUC far", *(f"at {share:.0%}" for share in CLAIMED)]
    rows = [
        _row(f"{name}, fitted on {family}", fit(list(families[family].values())), signals)
        for family in families
        for other, sets in families.items()
        if other != family
        for name, signals in sets.items()
    ]
    rows += [_row(name, SHIPPED, signals) for sets in families.values() for name, signals in sets.items()]
    table("Near and far unknowns called grounded, at shares of the answerable questions", columns, rows)
    if is_fit:
        most = max(map(len, families.values()))  # Each family weighs the same.
        model = fit([one for sets in families.values() for one in [*sets.values()] * (most // len(sets))])
        print(f"INTERCEPT = {model.intercept:.2f}")
        for name, value in zip(SIGNALS, model.coefficients, strict=True):
            print(f'    "{name}": {value:.2f},')


if __name__ == "__main__":
    run(is_fit="--fit" in sys.argv[1:])
