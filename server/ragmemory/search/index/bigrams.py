"""The words of each chunk in order, to count the neighbouring words of a question in it.

This is the ordered half of the sequential dependence model (Metzler and Croft 2005). A word is stored as 16
bits of its hash: a pair has 32 bits, so collisions are rare, and a chunk of 130 words takes 260 bytes.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from ragmemory.search.index.segments import shortened, words_of
from ragmemory.search.index.sorted_arrays import distinct
from ragmemory.text.analysis import hashes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ragmemory.search.index.rows import Rows


class WordSequences:
    """The words of several texts, one text after the other.

    `hashes` is (words,) uint16; `ends` is (texts,) int64, where the words of each text end.
    """

    def __init__(self, hashes: NDArray[np.uint16], ends: NDArray[np.int64]) -> None:
        self.ends = ends
        # (words - 1,) each word and the next, also where that belongs to the next text.
        self._pairs = _joined(hashes[:-1], hashes[1:])

    def count_pairs(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """(texts, pairs) float32: how often the second stem of each pair follows the first."""
        sought = shortened(hashes(chain.from_iterable(pairs))).reshape(-1, 2)
        found = [np.flatnonzero(self._pairs == pair) for pair in _joined(*sought.T)]
        at = np.concatenate(found)
        owners = self.ends.searchsorted(at, side="right")
        inside = at + 1 < self.ends[owners]
        columns = np.repeat(np.arange(len(pairs)), [len(places) for places in found])
        counts = np.zeros((len(self.ends), len(pairs)), np.float32)
        np.add.at(counts, (owners, columns), inside)
        return counts

    def pairs(self, number: int) -> NDArray[np.uint32]:
        """The distinct hashes of all pairs of neighbours in one text, ascending."""
        start = self.ends[number - 1] if number else 0
        return distinct(self._pairs[start : max(start, self.ends[number] - 1)])


def _joined(first: NDArray[np.uint16], second: NDArray[np.uint16]) -> NDArray[np.uint32]:
    """Each pair as one number."""
    return (first.astype(np.uint32) << np.uint32(16)) | second


class SequenceIndex:
    """The words of every chunk. Immutable."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def of(self, rows: NDArray[np.int64]) -> WordSequences:
        """The words of some rows; `rows` ascend."""
        words, sizes = [np.empty(0, np.uint16)], [np.empty(0, np.int64)]
        for number, _, own in self._rows.split(rows):
            found, counts = words_of(self._rows.segments[number], own)
            words.append(found)
            sizes.append(counts)
        return WordSequences(np.concatenate(words), np.cumsum(np.concatenate(sizes)))
