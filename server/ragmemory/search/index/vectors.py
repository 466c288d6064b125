"""Cosine similarity over all vectors: exact while they are few, else exact for those that the codes select.

Vectors of windows of a text in addition to that of the whole text were tried: with words in the score they
add nothing measurable (+.0005 nDCG@10) and take four times the memory.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragmemory.search.index.codes import STEP, nearest
from ragmemory.search.index.scores import best_of
from ragmemory.search.index.segments import as_float32, codes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ragmemory.search.index.rows import Rows

# Rows that the codes select: together with words, 98.6 % of the final top 10 of 100,000 chunks are those of
# an exact search. And the number of rows up to which the codes would save no time.
RESCORED = 1_000
ALL_EXACT = 16_000
# Searches the vectors of a large index, while another thread searches the words: numpy lets both run.
HELPER = ThreadPoolExecutor(1, "vectors")


class Cosines(NamedTuple):
    """The cosines of all rows with a query."""

    # The rows of the k highest above 0, best first; equal ones in the order of rows.
    best: Callable[[int], NDArray[np.int64]]
    at: Callable[[NDArray[np.int64]], NDArray[np.float32]]  # those of some rows


class VectorIndex:
    """(n, d) vectors of unit length. Immutable."""

    def __init__(
        self, rows: Rows, hidden: NDArray[np.int64] | None = None, removed: NDArray[np.float64] | None = None
    ) -> None:
        """`hidden` are some of the excluded rows, `removed` is the (d,) sum of the vectors of the others."""
        self._rows = rows
        self._hidden = rows.excluded if hidden is None else hidden
        self._removed = removed
        self._is_checked = False  # all codes of a large index, by the first search

    def begin(self, query: NDArray[np.float32], excluded: NDArray[np.int64]) -> Callable[[], Cosines]:
        """Search, in a large index in the background; the function that is returned waits for the result.

        `query` is (d,) float32 of unit length; `excluded` rows are never among the best.
        """
        if self._rows.counted <= ALL_EXACT:
            return partial(self._exact, query, excluded)
        search = partial(self._approximate, query, excluded)
        if self._is_checked:
            return HELPER.submit(search).result
        # The first search checks the files: two threads that do that wait for each other.
        self._is_checked = True
        return search

    def _approximate(self, query: NDArray[np.float32], excluded: NDArray[np.int64]) -> Cosines:
        near = nearest(self._rows, codes_of(query[None])[0], RESCORED, excluded, self._sample)
        cosines = self.cosines(near, query)
        return Cosines(lambda k: near[best_of(cosines, k)], partial(self.cosines, query=query))

    @cached_property
    def _sample(self) -> slice | NDArray[np.int64]:
        """Rows at regular distances."""
        every = slice(None, None, STEP)
        if not len(self._rows.excluded):
            return every
        # The distances are those of an index that has never held the others.
        return np.delete(np.arange(len(self._rows)), self._rows.excluded)[every]

    def _exact(self, query: NDArray[np.float32], excluded: NDArray[np.int64]) -> Cosines:
        # Three times as fast as `vectors @ query`, which is made for more than one column.
        cosines = np.vecdot(self._all, query) if len(self._rows) else np.empty(0, np.float32)
        cosines[excluded] = 0
        return Cosines(partial(best_of, cosines), cosines.__getitem__)

    @cached_property
    def _all(self) -> NDArray[np.float32]:
        """(n, d) float32: numpy computes with float16 forty times as slowly."""
        return np.concatenate([segment.vectors.all for segment, _ in self._rows], dtype=np.float32)

    def cosines(self, rows: NDArray[np.int64], query: NDArray[np.float32]) -> NDArray[np.float32]:
        """The exact cosines of some rows."""
        vectors = self._rows.take(rows, lambda segment: segment.vectors)
        cosines: NDArray[np.float32] = np.vecdot(as_float32(vectors), query)
        return cosines

    def mean_cosine(self, query: NDArray[np.float32]) -> float:
        """The cosine with the mean of all rows but the excluded ones; there are some."""
        return float(self.total @ query) / self._rows.counted

    @cached_property
    def total(self) -> NDArray[np.float64]:
        """(d,) the sum of the vectors of all rows but the excluded ones."""
        total: NDArray[np.float64] = np.sum([segment.total.all for segment, _ in self._rows], axis=0)
        total -= self._rows.total_of(self._hidden)
        return total if self._removed is None else total - self._removed
