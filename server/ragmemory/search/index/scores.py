"""The result of searching one index: its best rows, and the score of any row. `ranking` fuses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Among many scores, only the maximum of each block is partitioned.
BLOCK = 32


class Scores(Protocol):
    """The interface of exact and approximate scores."""

    def best(self, k: int) -> NDArray[np.int64]:
        """The rows of the k highest scores above 0, best first; equal scores in the order of rows."""

    def at(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of some rows."""


class DenseScores:
    """A score for every row."""

    def __init__(self, scores: NDArray[np.float32]) -> None:
        self.scores = scores

    def best(self, k: int) -> NDArray[np.int64]:
        return best_of(self.scores, k)

    def at(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.scores[rows]


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
