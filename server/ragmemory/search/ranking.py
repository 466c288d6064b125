"""The score of a hit: fuse BM25 and cosine, and estimate a relevance comparable between questions. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from ragmemory.settings import RankingSettings

    Floats = NDArray[np.float32]
    Pairs = NDArray[np.uint32]


# Passages that share at least this part of their word pairs are versions of one text.
VERSION_SHARE = 0.9
# Versions of one text that a search returns.
MAX_VERSIONS = 3
# Word pairs of each passage that are compared first.
SAMPLE = 8
# In a question with more telling words than this, each word matters less: it mostly describes one thing.
FOCUSED_WORDS = 6
# `balance` gives the cosines the weight `alpha` of the settings if the best passages by words cover this much
# of the question.
USUAL_COVERAGE = 0.75
# The highest weight of the cosines: they never decide alone.
MAX_ALPHA = 0.8


class Scored(Struct, frozen=True):
    """A found chunk, before the store adds its text."""

    chunk_id: int
    score: float  # in [0, 1]: the estimated relevance
    words: frozenset[str]  # the content words of the query that it contains, its title and headings included


def fuse(cosines: Floats, bm25: Floats, alpha: float) -> Floats:
    """Convex combination of both, each min-max normalised over the candidates (Bruch et al. 2023).

    Better than reciprocal rank fusion on every collection we measured: ranks ignore differences of scores.
    """
    return alpha * normalised(cosines) + (1 - alpha) * normalised(bm25)


def focus(words: Sequence[str]) -> float:
    """In (0, 1]: how much each telling word of a question matters: little in an abstract of a hundred."""
    return min(1.0, FOCUSED_WORDS / max(1, len(words)))


def balance(settings: RankingSettings, trust: float, coverage: float) -> float:
    """The weight of the cosines: higher where no passage has the question's words.

    `trust` is the root of the share of words that the model knows, times their focus; `coverage` the
    √IDF-weighted share of the question's words in the best passage by words.
    """
    alpha = settings.alpha + settings.alpha_uncovered * trust * (USUAL_COVERAGE - coverage)
    return min(max(alpha, 0.0), MAX_ALPHA)


def normalised(scores: Floats) -> Floats:
    """Min-max normalisation to [0, 1]; if all scores are equal, 1 for those above 0."""
    low, high = scores.min(), scores.max()
    if high <= low:
        return (scores > 0).astype(np.float32)
    spread: Floats = (scores - low) / (high - low)
    return spread


def pair_scores(counts: Floats, saturation: Floats, k1: float) -> Floats:
    """BM25 of neighbouring words, with their document frequency among the candidates.

    `counts` is (candidates, pairs), `saturation` is (candidates,): see `BM25Index.saturation`.
    """
    df = (counts > 0).sum(axis=0)
    idf = np.log1p((len(counts) - df + 0.5) / (df + 0.5)).astype(np.float32)
    # Not `@`: OpenBLAS once warned of an invalid value in such a small product, which had none.
    scores: Floats = np.vecdot((k1 + 1) * (counts / (counts + saturation[:, None])), idf)
    return scores


def relevance(
    coverage: Floats, cosines: Floats | None, mean_cosine: float, is_boosted: NDArray[np.bool_]
) -> Floats:
    """The probability that each passage is relevant, comparable between questions and memories of any size.

    `coverage` is the weighted share of the question's words in each passage, `mean_cosine` the mean over the
    whole memory, `is_boosted` whether a passage contains the quoted phrases. The coefficients come from a
    logistic regression over all judged collections, whole and cut to 1, 3 and 10 documents: their own
    questions against those of others.
    """
    scores: Floats
    if cosines is None:
        scores = logistic(12.8 * np.sqrt(coverage) - 7.5)
    else:
        by_words = logistic(11.3 * np.sqrt(coverage) + 5.4 * cosines - 8.7)
        # Without a common word the cosine must stand out: 1 % of unrelated passages exceed the mean by .4.
        by_meaning = logistic(15 * (cosines - mean_cosine - 0.45))
        scores = np.maximum(by_words, by_meaning)
    scores[is_boosted] = (1 + scores[is_boosted]) / 2
    return scores


def logistic(x: NDArray[np.floating[Any]]) -> Floats:
    # Beyond 50 nothing changes; damaged embeddings may give any value.
    y: Floats = (1 / (1 + np.exp(-np.clip(x, -50, 50)))).astype(np.float32)
    return y


def without_copies(passages: Iterable[tuple[int, Pairs]], wanted: int) -> list[int]:
    """The first `wanted` passages without copies, and with at most MAX_VERSIONS of one text (Broder 1997).

    A passage is a number and the distinct hashes of its pairs of neighbouring words, ascending. Copies have
    the same. Versions differ in a few: the sum of an invoice, or the "not" of a later contract, may be what
    the question asks for; but a notice that is there twelve times with other numbers must not hide the rest.
    """
    kept: list[int] = []
    seen: list[tuple[set[int], Pairs]] = []
    for number, pairs in passages:
        if len(kept) == wanted:
            break
        sample = set(pairs[:SAMPLE].tolist())
        # The lowest hashes are a fair sample: the samples of versions are nearly equal.
        near = [other for least, other in seen if len(sample & least) > len(sample) // 4]
        alike = [share for other in near if (share := shared_part(pairs, other)) >= VERSION_SHARE]
        if len(alike) < MAX_VERSIONS and 1 not in alike:
            kept.append(number)
            seen.append((sample, pairs))
    return kept


def shared_part(pairs: Pairs, other: Pairs) -> float:
    """The Jaccard similarity, or 0 where the sizes alone rule out that it reaches VERSION_SHARE."""
    if not min(len(pairs), len(other)) >= VERSION_SHARE * max(len(pairs), len(other)) > 0:
        return 0.0
    shared = len(np.intersect1d(pairs, other, assume_unique=True))
    return shared / (len(pairs) + len(other) - shared)
