"""From two indexes' scores to one order, and to a score that means the same for every question. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Pairs = NDArray[np.uint32]


# Pairs of a passage that are compared before all of them.
SAMPLE = 8


class RankingSettings(Struct, frozen=True):
    """The table [ranking]."""

    candidates: int
    alpha: float
    k1: float
    b: float
    title_weight: float
    pair_weight: float
    duplicate_overlap: float


class Scored(Struct, frozen=True):
    """One found chunk, before the store adds its text."""

    chunk_id: int
    score: float  # in [0, 1]: how sure we are that it is relevant
    cosine: float
    bm25: float


def fuse(cosines: Floats, bm25: Floats, alpha: float) -> Floats:
    """Convex combination of both, each min-max normalised over the candidates (Bruch et al. 2023).

    Better than reciprocal rank fusion on every collection we measured: ranks forget by how much.
    """
    fused: Floats = alpha * normalised(cosines) + (1 - alpha) * normalised(bm25)
    return fused


def normalised(scores: Floats) -> Floats:
    """To [0, 1]; if all are equal, to 1 where above 0."""
    import numpy as np

    low, high = scores.min(), scores.max()
    if high <= low:
        return (scores > 0).astype(np.float32)
    spread: Floats = (scores - low) / (high - low)
    return spread


def pair_scores(counts: Floats, saturation: Floats, k1: float) -> Floats:
    """BM25 of neighbouring words, their document frequency taken among the candidates.

    `counts` is (candidates, pairs), `saturation` (candidates,) of the texts' lengths.
    """
    import numpy as np

    df = (counts > 0).sum(axis=0)
    idf = np.log1p((len(counts) - df + 0.5) / (df + 0.5)).astype(np.float32)
    scores: Floats = (k1 + 1) * (counts / (counts + saturation[:, None])) @ idf
    return scores


def relevance(coverage: Floats, cosines: Floats | None, usual: float, held: NDArray[np.bool_]) -> Floats:
    """How likely each passage is relevant, in [0, 1], whatever the question and the size of the memory.

    `coverage` is the share of the question's words that a passage holds, `usual` the mean cosine over the
    whole memory, `held` says who holds what was quoted. The numbers are a logistic regression over all judged
    collections, whole and cut to 1, 3 and 10 documents: their own questions against those of others.
    Passages come best first, and none gets more than one before it.
    """
    import numpy as np

    scores: Floats
    if cosines is None:
        scores = logistic(12.8 * np.sqrt(coverage) - 7.5)
    else:
        by_words = logistic(11.3 * np.sqrt(coverage) + 5.4 * cosines - 8.7)
        # Without a word in common it must stand out: the unrelated exceed the mean by .4 once in a hundred.
        by_meaning = logistic(15 * (cosines - usual - 0.45))
        scores = np.maximum(by_words, by_meaning)
    scores[held] = (1 + scores[held]) / 2
    ordered: Floats = np.minimum.accumulate(scores)
    return ordered


def logistic(x: NDArray[np.floating[Any]]) -> Floats:
    import numpy as np

    y: Floats = (1 / (1 + np.exp(-x))).astype(np.float32)
    return y


def without_duplicates(passages: Iterable[tuple[int, Pairs]], overlap: float, wanted: int) -> list[int]:
    """The first `wanted` passages that are no near copy of one before (Broder 1997).

    A passage is a number and the hashes of its pairs of neighbouring words, ascending, each once; of two near
    copies, those in both are at least `overlap` of those in either (Jaccard). Vectors are no measure of this:
    two invoices that differ in their sum alone have a cosine of .99.
    """
    kept: list[int] = []
    seen: list[tuple[set[int], Pairs]] = []

    def is_new(pairs: Pairs, sample: set[int]) -> bool:
        # Of hashes, the least are a fair sample: of two copies' samples nearly all are the same.
        near = (other for least, other in seen if len(sample & least) > len(sample) // 4)
        return not any(is_copy(pairs, other, overlap) for other in near)

    for number, pairs in passages:
        if len(kept) == wanted:
            break
        sample = set(pairs[:SAMPLE].tolist())
        if is_new(pairs, sample):
            kept.append(number)
            seen.append((sample, pairs))
    return kept


def is_copy(pairs: Pairs, other: Pairs, overlap: float) -> bool:
    """Jaccard similarity, spared where the sizes alone rule it out."""
    import numpy as np

    if not min(len(pairs), len(other)) >= overlap * max(len(pairs), len(other)) > 0:
        return False
    shared = len(np.intersect1d(pairs, other, assume_unique=True))
    return shared >= overlap * (len(pairs) + len(other) - shared)
