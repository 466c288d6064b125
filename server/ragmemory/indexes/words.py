"""BM25 over postings in numpy: a log-structured list of immutable segments, newest last.

Every batch of chunks becomes a segment; a segment at least a quarter the size of the one before is merged into
it, so there are few, and each posting is copied a few times at most. Saving writes one segment; loading maps it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ragmemory.indexes.matrix import Matrix
from ragmemory.indexes.postings import Segment
from ragmemory.indexes.scores import DenseScores

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

LENGTHS = "lengths.npy"
MERGE_RATIO = 4


class WordIndex:
    """BM25 as of Robertson and Zaragoza (2009), with the inverse document frequency of Lucene (never negative)."""

    def __init__(self, segments: list[Segment], lengths: Matrix, k1: float, b: float) -> None:
        self.segments = segments
        self.lengths = lengths  # (n,) float32: terms of each row, weighted as its term frequencies are
        self.total = float(sum(part.sum(dtype="float64") for part in lengths.parts))
        self.k1 = k1
        self.b = b

    @classmethod
    def empty(cls, k1: float, b: float) -> WordIndex:
        import numpy as np

        return cls([], Matrix(np.empty(0, np.float32)), k1, b)

    @classmethod
    def load(cls, folder: Path, k1: float, b: float) -> WordIndex:
        """Raises OSError, ValueError."""
        lengths = Matrix.load(folder / LENGTHS)
        return cls([Segment.load(folder)] if len(lengths) else [], lengths, k1, b)

    def save(self, folder: Path) -> None:
        """Raises OSError."""
        self._merge(all_of_them=True)
        self.lengths.save(folder / LENGTHS)
        for segment in self.segments:
            segment.save(folder)

    def __len__(self) -> int:
        return len(self.lengths)

    def add(self, counted: Sequence[dict[str, float]]) -> None:
        """Append one row for each text, given as its terms' weighted frequencies."""
        import numpy as np

        if not counted:
            return
        lengths = np.array([sum(counts.values()) for counts in counted], np.float32)
        self.segments.append(Segment.build(counted, first_row=len(self)))
        self.lengths.add(lengths)
        self.total += float(lengths.sum(dtype="float64"))
        self._merge()

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Drop all other rows."""
        self._merge(all_of_them=True)
        self.segments = [segment.keep(rows, len(self)) for segment in self.segments]
        self.lengths.keep(rows)
        self.total = float(self.lengths.mapped.sum(dtype="float64"))

    def search(self, terms: Sequence[str]) -> DenseScores:
        """Duplicates in `terms` count as often as they are there."""
        import numpy as np

        scores = np.zeros(len(self), np.float32)
        weights: dict[str, int] = defaultdict(int)
        for term in terms:
            weights[term] += 1
        for term, weight in weights.items():
            found = [postings for segment in self.segments if (postings := segment.postings(term))]
            idf = self.idf(sum(len(rows) for rows, _ in found))
            for rows, frequencies in found:
                saturation = frequencies / (frequencies + self._norms(rows))
                scores[rows] += np.float32(weight * idf * (self.k1 + 1)) * saturation
        return DenseScores(scores)

    def idf(self, document_frequency: int) -> float:
        """log(1 + (n − df + ½) / (df + ½))."""
        import math

        return math.log1p((len(self) - document_frequency + 0.5) / (document_frequency + 0.5))

    def document_frequency(self, term: str) -> int:
        return sum(len(found[0]) for segment in self.segments if (found := segment.postings(term)))

    def _norms(self, rows: NDArray[np.int32]) -> NDArray[np.float32]:
        import numpy as np

        average = self.total / max(1, len(self)) or 1.0
        return np.float32(self.k1) * (
            np.float32(1 - self.b) + np.float32(self.b / average) * self.lengths.take(rows)
        )

    def _merge(self, *, all_of_them: bool = False) -> None:
        while len(self.segments) > 1:
            older, newer = self.segments[-2:]
            if not all_of_them and len(older) > MERGE_RATIO * len(newer):
                return
            self.segments[-2:] = [Segment.merge(older, newer)]
