"""Reciprocal rank fusion of several searches. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragchat.answer import Candidate
from ragcommon.contract.search import Hit

# The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).
K = 60


def fused(rankings: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    """The fused ranking, each passage once, without documents written by a model."""
    scores: dict[int, float] = {}
    best: dict[int, Candidate] = {}
    for ranking in rankings:
        evidence = [candidate for candidate in ranking if not is_generated(candidate.hit)]
        for rank, candidate in enumerate(evidence, 1):
            key = candidate.hit.chunk_id
            scores[key] = scores.get(key, 0.0) + 1 / (K + rank)
            if key not in best or candidate.hit.score > best[key].hit.score:
                best[key] = candidate
    return [best[key] for key in sorted(scores, key=scores.__getitem__, reverse=True)]


def is_generated(hit: Hit) -> bool:
    """Whether a model wrote the document, such as an earlier report, which is not evidence."""
    return hit.metadata.get("generated") is True
