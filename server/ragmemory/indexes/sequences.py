"""The words of each chunk in their order, to see which words of a question stand side by side in it.

This is the ordered half of the sequential dependence model (Metzler and Croft 2005). Words are kept as 16
bits of a hash: two neighbours make 32, so chance hits are rare, and a chunk of 130 words takes 260 bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragmemory.indexes.ascending import distinct
from ragmemory.indexes.matrix import Matrix
from ragmemory.indexes.terms import hashes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.indexes.lexicon import Terms

HASHES, ENDS = "sequence_hashes.npy", "sequence_ends.npy"


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
    """`hashes` is (words,) uint16, row after row; `ends` (n,) int64 says where each row ends in it."""

    def __init__(self, hashes: Matrix, ends: Matrix) -> None:
        self.hashes = hashes
        self.ends = ends

    @classmethod
    def empty(cls) -> SequenceIndex:
        import numpy as np

        return cls(Matrix(np.empty(0, np.uint16)), Matrix(np.empty(0, np.int64)))

    @classmethod
    def load(cls, folder: Path) -> SequenceIndex:
        """Raises OSError, ValueError."""
        return cls(Matrix.load(folder / HASHES), Matrix.load(folder / ENDS))

    def save(self, folder: Path) -> None:
        """Raises OSError."""
        self.hashes.save(folder / HASHES)
        self.ends.save(folder / ENDS)

    def __len__(self) -> int:
        return len(self.ends)

    def add(self, stems: Terms) -> None:
        """Append one row for each text."""
        import numpy as np

        sizes = np.bincount(stems.owners, minlength=stems.texts)
        self.ends.add(len(self.hashes) + np.cumsum(sizes))
        self.hashes.add(shortened(stems.names)[stems.numbers])

    def kept(self, rows: NDArray[np.int64]) -> SequenceIndex:
        """One with these rows alone."""

        places, ends = self._places(rows)
        return SequenceIndex(self.hashes.kept(places), Matrix(ends))

    def texts(self, rows: NDArray[np.int64]) -> Texts:
        """The words of some rows."""
        places, ends = self._places(rows)
        return Texts(self.hashes.take(places), ends)

    def _places(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the words of `rows` are, one row after the other, and where each row ends in that."""
        import numpy as np

        if not len(rows):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        before = np.where(rows > 0, self.ends.take(np.maximum(rows - 1, 0)), 0)
        sizes = self.ends.take(rows) - before
        ends = np.cumsum(sizes)
        return np.arange(ends[-1]) + np.repeat(before - (ends - sizes), sizes), ends


def shortened(names: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Their last 16 bits."""
    import numpy as np

    return names.astype(np.uint16)
