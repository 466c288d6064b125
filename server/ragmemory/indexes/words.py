"""BM25 over postings in numpy: a log-structured list of immutable segments, newest last.

Every batch of chunks becomes a segment, and is merged into the one before while that is less than MERGE_RATIO
times as long: so there are few, and a posting is copied a few times. Saving writes one, loading maps it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragmemory.indexes.ascending import is_among
from ragmemory.indexes.matrix import Matrix
from ragmemory.indexes.postings import Segment
from ragmemory.indexes.scores import DenseScores

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.indexes.lexicon import Terms

# The rows that hold a term, and how often each does, segment by segment.
Found = Sequence[tuple["NDArray[np.int32]", "NDArray[np.float32]"]]
# For each term of a question what it weighs, and the rows that hold it, segment by segment.
Covering = Sequence[tuple[float, Sequence["NDArray[np.int32]"]]]

LENGTHS = "lengths.npy"
MERGE_RATIO = 4
# Terms whose postings are kept at hand.
REMEMBERED = 5_000
# Texts imagined beside the real ones when it is told how much of a question is covered: in a memory of three
# notes every word there is would be common, and every other one rare.
IMAGINED = 100


class WordIndex:
    """BM25 (Robertson and Zaragoza 2009); its inverse document frequency is Lucene's, never negative."""

    def __init__(self, segments: list[Segment], lengths: Matrix, k1: float, b: float) -> None:
        self.segments = segments
        self._found: tuple[list[Segment], dict[str, Found]] = segments, {}
        self.lengths = lengths  # (n,) float32: the sum of each row's term frequencies
        self.total = sum(float(part.sum(dtype="float64")) for part in lengths.parts)
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
        return cls([Segment.load(folder)], lengths, k1, b)

    def save(self, folder: Path) -> None:
        """Raises OSError."""
        self.lengths.save(folder / LENGTHS)
        self._whole().save(folder)

    def __len__(self) -> int:
        return len(self.lengths)

    def add(self, terms: Terms, weights: NDArray[np.float32]) -> None:
        """Append one row for each text; `weights` says how much each occurrence counts."""
        import numpy as np

        lengths = np.bincount(terms.owners, weights, terms.texts).astype(np.float32)
        segments = [*self.segments, Segment.build(terms, weights, first_row=len(self))]
        while len(segments) > 1 and len(segments[-2]) < MERGE_RATIO * len(segments[-1]):
            segments[-2:] = [Segment.merge(*segments[-2:])]
        self.segments = segments
        self._found = segments, {}
        self.lengths.add(lengths)
        self.total += float(lengths.sum(dtype="float64"))

    def kept(self, rows: NDArray[np.int64]) -> WordIndex:
        """One with these rows alone."""
        segment = self._whole().kept(rows, len(self))
        return WordIndex([segment], self.lengths.kept(rows), self.k1, self.b)

    def search(self, terms: Sequence[str], closed: NDArray[np.int64]) -> WordScores:
        """A term that is asked twice counts twice; `closed` rows are not to be among the best."""
        import numpy as np

        scores = np.zeros(len(self), np.float32)
        covering = []
        for term, times in Counter(terms).items():
            found = self._find(term)
            df = sum(len(rows) for rows, _ in found)
            weight = np.float32(times * inverse_frequency(df, len(self)) * (self.k1 + 1))
            for rows, frequencies in found:
                impacts = weight * (frequencies / (frequencies + self.saturation(rows)))
                np.add.at(scores, rows, impacts)  # twice the speed of scores[rows] += impacts
            telling = times * inverse_frequency(max(1, df), len(self) + IMAGINED)
            covering.append((telling, [rows for rows, _ in found]))
        scores[closed] = 0
        return WordScores(scores, covering)

    def idf(self, term: str) -> float:
        """How rare a term is. Safe to call while another thread adds rows."""
        return inverse_frequency(sum(len(rows) for rows, _ in self._find(term)), len(self))

    def _find(self, term: str) -> Found:
        """The postings of a term in each segment. A question looks each of its terms up twice."""
        segments, found = self._found
        postings = found.get(term)
        if postings is None:
            if len(found) > REMEMBERED:
                found.clear()
            postings = found[term] = [segment.postings(term) for segment in segments]
        return postings

    def saturation(self, rows: NDArray[np.integer]) -> NDArray[np.float32]:
        """The frequency that gives half the weight, by length of text: k1 (1 − b + b length / average)."""
        import numpy as np

        average = self.total / max(1, len(self)) or 1.0
        scale = np.float32(self.k1 * self.b / average)
        return np.float32(self.k1 * (1 - self.b)) + scale * self.lengths.take(rows)

    def _whole(self) -> Segment:
        whole = Segment.empty()
        for segment in self.segments:
            whole = Segment.merge(whole, segment)
        return whole


class WordScores(DenseScores):
    """BM25, and how much of the question a row covers."""

    def __init__(self, scores: NDArray[np.float32], covering: Covering) -> None:
        super().__init__(scores)
        self._covering = covering

    def coverage(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The share of the question's terms that each of `rows` holds, in [0, 1]; rare ones weigh more."""
        import numpy as np

        covered = np.zeros(len(rows), np.float32)
        for weight, parts in self._covering:
            for holding in parts:
                covered[is_among(rows, holding)] += weight
        return covered / np.float32(sum(weight for weight, _ in self._covering) or 1)


def inverse_frequency(df: int, n: int) -> float:
    """log(1 + (n − df + ½) / (df + ½))."""
    return math.log1p((max(0, n - df) + 0.5) / (df + 0.5))
