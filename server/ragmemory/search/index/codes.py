"""One bit for each dimension of a vector, its sign: a fast filter for vectors that may be near a query.

100,000 vectors of 256 dimensions are 3 MB of codes instead of 50 MB of floats, whose scan is bound by the
speed of memory.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragmemory.search.index.rows import Rows
    from ragmemory.search.index.segments import Segment

    Distances = NDArray[np.unsignedinteger[Any]]
    Codes = NDArray[np.uint64]

# Rows compared at a time: intermediate arrays stay in the processor's cache.
BLOCK = 1 << 17
# Rows that half of the bits select. Of a million chunks, the top 8 of a whole search agree with an exact
# search as often (96.4 %) as with 40,000 rows, and hardly less often with 3,000 (95.8 %).
SHORTLIST = 7_000
# Every STEP-th row is sampled to estimate the distance that selects the SHORTLIST. Odd, because similar rows
# may follow one another at regular intervals.
STEP = 15


def nearest(
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
