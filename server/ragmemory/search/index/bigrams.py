"""The words of each chunk in their order, to see which words of a question stand side by side in it.

This is the ordered half of the sequential dependence model (Metzler and Croft 2005). Words are kept as 16
bits of a hash: two neighbours make 32, so chance hits are rare, and a chunk of 130 words takes 260 bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragmemory.search.index.ascending import distinct
from ragmemory.text.analysis import hashes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.search.index.rows import Rows
    from ragmemory.search.index.segments import Segment


class Texts:
    """Several texts, one after the other. `hashes` is (words,) uint16; `ends` (texts,) int64."""

    def __init__(self, hashes: NDArray[np.uint16], ends: NDArray[np.int64]) -> None:
        self.hashes = hashes
        self.ends = ends

    def count_pairs(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """(texts, pairs) float32: how often the second stem of a pair follows the first."""
        import numpy as np

        counts = np.zeros((len(self.ends), len(pairs)), np.float32)
        for column, pair in enumerate(pairs):
            first, second = shortened(hashes(pair))
            at = np.flatnonzero(self.hashes[:-1] == first)
            at = at[self.hashes[at + 1] == second]
            owners = np.searchsorted(self.ends, at, side="right")
            inside = at + 1 < self.ends[owners]
            counts[:, column] = np.bincount(owners[inside], minlength=len(self.ends))
        return counts

    def pairs(self, number: int) -> NDArray[np.uint32]:
        """The hashes of all pairs of neighbours in one text, ascending, each once."""
        import numpy as np

        words = self.hashes[self.ends[number - 1] if number else 0 : self.ends[number]]
        return distinct((words[:-1].astype(np.uint32) << np.uint32(16)) | words[1:])


class SequenceIndex:
    """The words of every chunk. Immutable."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def texts(self, rows: NDArray[np.int64]) -> Texts:
        """The words of some rows, which ascend."""
        import numpy as np

        words, sizes = [np.empty(0, np.uint16)], [np.empty(0, np.int64)]
        for number, _, own in self._rows.split(rows):
            found, counts = words_of(self._rows.segments[number], own)
            words.append(found)
            sizes.append(counts)
        return Texts(np.concatenate(words), np.cumsum(np.concatenate(sizes)))


def words_of(segment: Segment, rows: NDArray[np.int64]) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """The words of some rows of a segment, one row after the other, and how many each has."""
    import numpy as np

    ends = segment.word_ends.take(rows).astype(np.int64)
    begins = np.where(rows > 0, segment.word_ends.take(np.maximum(rows - 1, 0)), 0).astype(np.int64)
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):  # neighbours, as in most merges
        return segment.words.slice(int(begins[0]), int(ends[-1])), ends - begins
    return segment.words.take_ranges(begins, ends), ends - begins


def shortened(names: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Their last 16 bits."""
    import numpy as np

    return names.astype(np.uint16)
