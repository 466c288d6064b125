"""The best of many scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Among many scores, only the maximum of each block is partitioned.
BLOCK = 32


def best_of(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The places of the k highest scores above 0, best first; equal scores in the order of places."""
    least = least_of_best(scores, k)
    places = np.flatnonzero(scores >= least if least > 0 else scores > 0)
    return places[np.argsort(-scores[places], kind="stable")[:k]]


def least_of_best(scores: NDArray[np.float32], k: int) -> np.float32:
    """A score that the k best reach and few others do; 0 if fewer than k are above 0.

    Of many scores only the maxima of blocks are partitioned, which is ten times as fast.
    """
    blocks = len(scores) // BLOCK
    if blocks >= 4 * k:  # So that few of the best share a block.
        # Column c is block c: it is faster to compare rows with each other than the numbers in a row.
        scores = scores[: blocks * BLOCK].reshape(BLOCK, blocks).max(axis=0)
    # Partitioning takes ten times as long if most of the numbers are equal.
    positive = scores[scores > 0]
    at = len(positive) - k
    return np.partition(positive, at)[at] if at >= 0 else np.float32(0)
