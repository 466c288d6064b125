"""The result of searching one index: its best rows, and the score of any row. `ranking` fuses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Rows in a block of `best`: the block maxima of 100,000 rows fit into the L1 cache.
BLOCK = 128


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
        scores: NDArray[np.float32] = self.scores[rows]
        return scores


def best_of(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The places of the k highest scores above 0, best first; equal scores in the order of places."""
    import numpy as np

    least = least_of_best(scores, k)
    places = np.flatnonzero(scores >= least if least > 0 else scores > 0)
    return places[np.argsort(-scores[places], kind="stable")[:k]]


def least_of_best(scores: NDArray[np.float32], k: int) -> np.float32:
    """A score, at least 0, that the k best reach and few others do: 5 times argpartition's speed."""
    import numpy as np

    blocks = len(scores) // BLOCK
    if blocks <= k:
        return np.float32(0)
    # Block b holds every row b + i · blocks: comparing side by side is four times as fast.
    maxima = scores[: blocks * BLOCK].reshape(BLOCK, blocks).max(axis=0)
    # Partitioning takes ten times as long if most of the numbers are equal.
    maxima = maxima[maxima > 0]
    kth = len(maxima) - k
    return np.partition(maxima, kth)[kth] if kth >= 0 else np.float32(0)
