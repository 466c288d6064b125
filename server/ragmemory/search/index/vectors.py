"""Cosine similarity over all vectors: exact while they are few, else exact for those that the codes select.

A code has one bit for each dimension of a vector, its sign: a fast filter for vectors that may be near a
query. 100,000 vectors of 256 dimensions are 3 MB of codes instead of 50 MB of floats, whose scan is bound by
the speed of memory.

Vectors of windows of a text in addition to that of the whole text were tried: with words in the score they
add nothing measurable (+.0005 nDCG@10) and take four times the memory.
"""

from __future__ import annotations

from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragmemory.search.index.scores import best_of
from ragmemory.search.index.segments import as_float32, codes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ragmemory.search.index.rows import Rows
    from ragmemory.search.index.segments import Segment

    Distances = NDArray[np.unsignedinteger[Any]]
    Codes = NDArray[np.uint64]

# Rows that the codes select, whose cosines are then exact: together with words, 98.6 % of the final top 10 of
# 100,000 chunks are those of an exact search.
RESCORED = 1_000
# Rows up to which all cosines are computed: the codes would save no time.
ALL_EXACT = 16_000
# Rows compared at a time: intermediate arrays stay in the processor's cache.
BLOCK = 1 << 17
# Rows that the first half of the bits selects. Of a million chunks, the top 8 of a whole search agree with
# those of an exact one as often (96.4 %) as with 40,000 rows, and hardly less often with 3,000 (95.8 %).
SHORTLIST = 7_000
# Every STEP-th row is sampled to estimate the distance that selects the SHORTLIST. Odd, because similar rows
# may follow one another at regular intervals.
STEP = 15
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
        near = _nearest(self._rows, codes_of(query[None])[0], RESCORED, excluded, self._sample)
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


def _nearest(
    rows: Rows, words: Codes, k: int, excluded: NDArray[np.int64], sample: slice | NDArray[np.int64]
) -> NDArray[np.int64]:
    """The k rows that differ from `words`, the (w,) code of a query, in the fewest bits, ascending.

    More if several tie. They are the nearest of about SHORTLIST rows that are nearest by half of the bits;
    `sample` is every STEP-th row.
    """
    half = -(-len(words) // 2)
    # Bytes where they can hold the distances: a third faster to add to than two bytes.
    distances: Distances = np.empty(len(rows), np.min_scalar_type(64 * half + 1))
    for segment, where in rows:
        part, codes = distances[where], _columns(segment)[:half]
        for start in range(0, len(part), BLOCK):
            stop = start + BLOCK
            _count_differences(part[start:stop], codes[:, start:stop], words[:half])
    distances[excluded] = np.iinfo(distances.dtype).max
    if half == len(words):
        return _lowest(distances, k, 64 * half)
    farthest = _farthest(distances[sample].copy(), SHORTLIST // STEP, 64 * half)
    shortlist = np.flatnonzero(distances <= farthest)
    total = distances.take(shortlist).astype(np.uint16)
    more = np.empty_like(total)
    for number, where, own in rows.split(shortlist):
        rest = _columns(rows.segments[number])[half:].take(own, axis=1)
        _count_differences(more[where], rest, words[half:])
    total += more
    return shortlist[_lowest(total, k, 64 * len(words))]


def _count_differences(distances: Distances, codes: Codes, words: Codes) -> None:
    """Set each of the (n,) distances to in how many bits a column of the (w, n) codes differs from (w,)."""
    np.add.reduce(np.bitwise_count(codes ^ words[:, None]), 0, distances.dtype, out=distances)


def _columns(segment: Segment) -> Codes:
    """(w, n) the codes of a segment."""
    return segment.codes.all.reshape(-1, len(segment))


def _lowest(distances: Distances, k: int, bits: int) -> NDArray[np.int64]:
    """The indices of the k lowest distances, ascending; more if several tie. `bits` bounds the distances."""
    return np.flatnonzero(distances <= _farthest(distances, k, bits))


def _farthest(distances: Distances, k: int, bits: int) -> int:
    """The k-th lowest distance; `bits` if there are fewer."""
    # There are few different distances: bisecting them is faster than counting, sorting or partitioning.
    return bisect_left(range(bits), k, key=lambda most: int(np.count_nonzero(distances <= most)))
