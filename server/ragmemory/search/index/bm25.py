"""BM25 over the postings of all segments (Robertson and Zaragoza 2009).

The inverse document frequency is Lucene's, never negative.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ragmemory.search.index.postings import frequencies_of, holds, rows_of
from ragmemory.search.index.scores import DenseScores
from ragmemory.text.analysis import hashes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.search.index.postings import Packed
    from ragmemory.search.index.rows import Rows

    # The postings of a term, segment by segment.
    Found = Sequence[Packed]

# Postings scored at a time: intermediate arrays stay in the processor's cache.
BLOCK = 1 << 15
# Terms whose postings are cached.
CACHED_TERMS = 5_000
# Added to the number of texts in the coverage of a question: in a memory of three notes every word of a note
# would be common, and every other word rare.
PSEUDO_TEXTS = 100


class BM25Index:
    """Immutable, and safe for several threads."""

    def __init__(self, rows: Rows, k1: float, b: float) -> None:
        self._rows = rows
        self._found: dict[str, Found] = {}
        self.k1 = k1
        self.b = b

    def search(self, terms: Sequence[str], excluded: NDArray[np.int64]) -> BM25Scores:
        """Score all rows. A term counts as often as it occurs in `terms`; `excluded` rows score 0."""
        import numpy as np

        scores = np.zeros(len(self._rows), np.float32)
        weights, covering = [], []
        for term, times in Counter(terms).items():
            found = self._find(term)
            df = sum(map(len, found))
            weights.append(times * inverse_frequency(df, len(self._rows)) * (self.k1 + 1))
            share = times * inverse_frequency(max(1, df), len(self._rows) + PSEUDO_TEXTS)
            covering.append((share, found))
        for number, (_, where) in enumerate(self._rows if covering else ()):
            # All terms at once: most have few postings, and calls of numpy take longer than those.
            parts = [found[number] for _, found in covering]
            packed = np.concatenate(parts)
            impacts = np.repeat(np.array(weights, np.float32), [len(part) for part in parts])
            saturation, own = self._saturation[where], scores[where]
            for start in range(0, len(packed), BLOCK):
                block = packed[start : start + BLOCK]
                rows, frequencies = rows_of(block), frequencies_of(block)
                shares = frequencies / (frequencies + saturation.take(rows))
                # Twice the speed of own[rows] += …
                np.add.at(own, rows, impacts[start : start + BLOCK] * shares)
        scores[excluded] = 0
        return BM25Scores(scores, self._rows, covering)

    def idf(self, term: str) -> float:
        """The inverse document frequency of a term."""
        return inverse_frequency(sum(map(len, self._find(term))), len(self._rows))

    def frequencies(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """(t,) the number of chunks that contain each term; excluded ones count, too."""
        import numpy as np

        counts = [segment.postings.frequencies(terms) for segment in self._rows.segments]
        return np.sum(counts, axis=0) if counts else np.zeros(len(terms), np.int64)

    def rarity(self, term: str) -> float:
        """The inverse document frequency of a term beside that of an unknown one, in (0, 1]."""
        df, texts = sum(map(len, self._find(term))), len(self._rows) + PSEUDO_TEXTS
        return inverse_frequency(df, texts) / inverse_frequency(0, texts)

    def contain(self, term: str, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(k,) which of `rows`, which ascend, contain a term."""
        import numpy as np

        contained = np.zeros(len(rows), np.bool_)
        for number, at, own in self._rows.split(rows):
            contained[at] = holds(self._find(term)[number], own)
        return contained

    def _find(self, term: str) -> Found:
        """The postings of a term; cached, because a query looks up each of its terms twice."""
        found = self._found.get(term)
        if found is None:
            if len(self._found) > CACHED_TERMS:
                self._found.clear()
            [name] = hashes([term])
            found = self._found[term] = [segment.postings.of(name) for segment in self._rows.segments]
        return found

    def saturation(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """(k,) the frequency at which a term reaches half of its weight; it grows with the text's length."""
        return self._saturation.take(rows)

    @cached_property
    def _saturation(self) -> NDArray[np.float32]:
        """(n,) k1 (1 − b + b length / average)."""
        import numpy as np

        total = sum(segment.total_length for segment, _ in self._rows)
        average = total / max(1, len(self._rows)) or 1.0
        scale = np.float32(self.k1 * self.b / average)
        saturation = np.empty(len(self._rows), np.float32)
        for segment, where in self._rows:
            np.multiply(segment.lengths.all, scale, out=saturation[where])
        saturation += np.float32(self.k1 * (1 - self.b))
        return saturation


class BM25Scores(DenseScores):
    """BM25 scores, and the coverage of the question."""

    def __init__(
        self, scores: NDArray[np.float32], rows: Rows, covering: Sequence[tuple[float, Found]]
    ) -> None:
        super().__init__(scores)
        self._rows = rows
        self._covering = covering  # the weight and the postings of each term

    def coverage(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """(k,) the weighted share of the question's terms that each row contains; `rows` ascend."""
        import numpy as np

        covered = np.zeros(len(rows), np.float32)
        for number, at, own in self._rows.split(rows):
            for weight, found in self._covering:
                covered[at] += weight * holds(found[number], own)
        return covered / np.float32(sum(weight for weight, _ in self._covering) or 1)


def inverse_frequency(df: int, n: int) -> float:
    """log(1 + (n − df + ½) / (df + ½))."""
    return math.log1p((max(0, n - df) + 0.5) / (df + 0.5))
