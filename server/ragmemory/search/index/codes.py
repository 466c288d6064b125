"""One bit for each dimension of a vector, its sign: a fast filter for vectors that may be near a query.

100,000 vectors of 256 dimensions are 3 MB of codes instead of 50 MB of floats, whose scan is bound by the
speed of memory.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from ragmemory.search.index.segments import codes_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.search.index.rows import Rows

    Distances = NDArray[np.unsignedinteger[Any]]

# Rows compared at a time: intermediate arrays stay in the processor's cache. A million rows take 2.7 to
# 3.6 ms with this size, and 3.9 to 4.2 with a quarter of it.
BLOCK = 1 << 18
# Rows that half of the bits select in a larger index. Of a million chunks, the top 8 of a whole search agree
# with an exact search as often (97.7 %) as when all bits of all rows are compared, in half the time.
SHORTLIST = 20_000
# Every so many-th row is looked at to find the distance that selects the SHORTLIST: an odd number, since
# similar rows may follow one another at regular distances.
STEP = 15


def nearest(rows: Rows, query: NDArray[np.float32], k: int, excluded: NDArray[np.int64]) -> NDArray[np.int64]:
    """The k rows that differ from the query in the fewest bits, ascending; more if several tie.

    In a large index these are the k nearest of about SHORTLIST rows that are nearest by half of the bits.
    """
    import numpy as np

    words = codes_of(query[None])[0]
    half = len(words) if len(rows) <= 2 * SHORTLIST else -(-len(words) // 2)
    # Bytes where they can hold the distances: a third faster to add to than two bytes.
    distances: Distances = np.empty(len(rows), np.min_scalar_type(64 * half + 1))
    for segment, where in rows:
        codes = segment.codes.all.reshape(len(words), len(segment))
        _count_differences(distances[where], codes[:half], words[:half])
    distances[excluded] = np.iinfo(distances.dtype).max
    if half == len(words):
        return _lowest(distances, k, 64 * half)
    farthest = _farthest(distances[::STEP].copy(), SHORTLIST // STEP, 64 * half)
    shortlist = np.flatnonzero(distances <= farthest)
    distances = distances.take(shortlist).astype(np.uint16)
    more = np.empty_like(distances)
    for number, where, own in rows.split(shortlist):
        segment = rows.segments[number]
        codes = segment.codes.all.reshape(len(words), len(segment))
        _count_differences(more[where], codes[half:].take(own, axis=1), words[half:])
    distances += more
    return shortlist[_lowest(distances, k, 64 * len(words))]


def _count_differences(distances: Distances, codes: NDArray[np.uint64], words: NDArray[np.uint64]) -> None:
    """Set each of the (n,) distances to in how many bits a column of the (w, n) codes differs from (w,)."""
    import numpy as np

    size = min(BLOCK, len(distances))
    bits, counts = np.empty(size, np.uint64), np.empty(size, np.uint8)
    for start in range(0, len(distances), BLOCK):
        block = distances[start : start + BLOCK]
        different, count = bits[: len(block)], counts[: len(block)]
        for number, (column, word) in enumerate(zip(codes, words, strict=True)):
            np.bitwise_xor(column[start : start + BLOCK], word, out=different)
            if number:
                np.bitwise_count(different, out=count)
                np.add(block, count, out=block)
            else:
                np.bitwise_count(different, out=block)


def _lowest(distances: Distances, k: int, bits: int) -> NDArray[np.int64]:
    """The indices of the k lowest distances, ascending; more if several tie. `bits` bounds the distances."""
    import numpy as np

    return np.flatnonzero(distances <= _farthest(distances, k, bits))


def _farthest(distances: Distances, k: int, bits: int) -> int:
    """The k-th lowest distance; `bits` if there are fewer."""
    import numpy as np

    # There are few different distances: bisecting them is faster than counting, sorting or partitioning.
    return bisect_left(range(bits), k, key=lambda most: int(np.count_nonzero(distances <= most)))
