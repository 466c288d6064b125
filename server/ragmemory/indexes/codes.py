"""One bit a dimension: which vectors lie on the same sides of the axes as a query. A sieve, not a score.

100,000 vectors of 256 dimensions are 3 MB of codes instead of 100 MB of floats, whose scan is bound by the
speed of memory.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from ragmemory.indexes.matrix import Matrix

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

FILE = "codes.npy"
# Rows at a time: what is made of them on the way stays in the processor's cache.
BLOCK = 1 << 14


class CodeIndex:
    """One column for each 64 dimensions, each (n,) uint64: by columns it is six times as fast as by rows."""

    def __init__(self, columns: list[Matrix]) -> None:
        self.columns = columns

    @classmethod
    def empty(cls, dimensions: int) -> CodeIndex:
        import numpy as np

        return cls([Matrix(np.empty(0, np.uint64)) for _ in range(-(-dimensions // 64))])

    @classmethod
    def load(cls, folder: Path) -> CodeIndex:
        """Raises OSError, ValueError."""
        import numpy as np

        return cls([Matrix(column) for column in np.load(folder / FILE)])

    def save(self, folder: Path) -> None:
        """Raises OSError."""
        import numpy as np

        np.save(folder / FILE, np.stack([np.concatenate(column.parts) for column in self.columns]))

    def __len__(self) -> int:
        return len(self.columns[0])

    def add(self, vectors: NDArray[np.float32]) -> None:
        for column, part in zip(self.columns, codes_of(vectors).T, strict=True):
            column.add(part)

    def kept(self, rows: NDArray[np.int64]) -> CodeIndex:
        """One with these rows alone."""
        return CodeIndex([column.kept(rows) for column in self.columns])

    def nearest(self, query: NDArray[np.float32], k: int, closed: NDArray[np.int64]) -> NDArray[np.int64]:
        """The k rows that differ from the query in the fewest bits, ascending; more where several tie."""
        import numpy as np

        distances = np.zeros(len(self), np.uint16)
        for column, word in zip(self.columns, codes_of(query[None])[0], strict=True):
            for rows, block in column.blocks(BLOCK):
                distances[rows] += np.bitwise_count(block ^ word)
        distances[closed] = np.iinfo(np.uint16).max
        # There are few different distances: bisecting them is faster than counting, sorting or partitioning.
        most = 64 * len(self.columns)
        farthest = bisect_left(range(most), k, key=lambda bits: int(np.count_nonzero(distances <= bits)))
        return np.flatnonzero(distances <= farthest)


def codes_of(vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """(n, d) → (n, d / 64), filled up with zero bits."""
    import numpy as np

    bits = np.packbits(vectors > 0, axis=1)
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)
