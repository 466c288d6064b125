"""The result of searching one index: its best rows, and the score of any row. `ranking` fuses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Scores in a block of `best_of`, whose maxima alone are partitioned.
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
        scores: NDArray[np.float32] = self.scores[rows]
        return scores


def best_of(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The places of the k highest scores above 0, best first; equal scores in the order of places."""
    import numpy as np

    table = _blocks(scores)
    maxima = table.max(axis=0) if table.size else scores[:0]
    least = _kth(maxima, k)
    if least > 0:
        # Only these blocks, and the places after the last block, can hold such a score.
        blocks = np.flatnonzero(maxima >= least)
        number, block = np.divmod(np.flatnonzero(table[:, blocks] >= least), len(blocks))
        rest = np.flatnonzero(scores[table.size :] >= least) + table.size
        places = np.sort(np.concatenate([number * len(maxima) + blocks[block], rest]))
    else:
        places = np.flatnonzero(scores > 0)
    return places[np.argsort(-scores[places], kind="stable")[:k]]


def least_of_best(scores: NDArray[np.float32], k: int) -> np.float32:
    """A score, at least 0, that the k best reach and few others do: 5 times argpartition's speed."""
    table = _blocks(scores)
    return _kth(table.max(axis=0) if table.size else scores[:0], k)


def _blocks(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """(BLOCK, b) column c is block c, which holds every place c + i · b: all but the last places."""
    # Comparing blocks side by side is four times as fast as one after the other.
    blocks = len(scores) // BLOCK
    return scores[: blocks * BLOCK].reshape(BLOCK, blocks)


def _kth(maxima: NDArray[np.float32], k: int) -> np.float32:
    """The k-th highest of the numbers above 0; 0 if there are fewer."""
    import numpy as np

    # Partitioning takes ten times as long if most of the numbers are equal.
    positive = maxima[maxima > 0]
    at = len(positive) - k
    return np.partition(positive, at)[at] if at >= 0 else np.float32(0)
