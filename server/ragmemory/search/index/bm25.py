"""BM25 over the postings of all segments (Robertson and Zaragoza 2009).

The inverse document frequency is Lucene's, never negative.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from ragmemory.search.index.postings import frequencies_at, frequencies_of, holds, rows_of
from ragmemory.search.index.scores import best_of, least_of_best
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
# Postings of the rarest terms that are scored before the first check whether they suffice.
AT_ONCE = 1 << 18
# Finding a row among the postings of a term takes as long as scoring about this many of them.
LOOKUP = 16
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
        total = len(self._rows)
        sought = []
        for term, times in Counter(terms).items():
            found = self._find(term)
            df = sum(map(len, found))
            weight = times * inverse_frequency(df, total) * (self.k1 + 1)
            share = times * inverse_frequency(max(1, df), total + PSEUDO_TEXTS)
            sought.append(SoughtTerm(found, df, weight, share))
        return BM25Scores(self._rows, self._saturation, sought, excluded)

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
        # Above 0 also for a text without words, whatever b is.
        saturation += max(np.float32(self.k1 * (1 - self.b)), np.finfo(np.float32).tiny)
        return saturation


@dataclass(frozen=True)
class SoughtTerm:
    found: Found
    df: int
    weight: float  # more than it can add to any score
    share: float  # of the coverage


class BM25Scores:
    """BM25 scores, and the coverage of the question.

    Terms are added to the scores of all rows from the rarest on, until the others together cannot lift a row
    among the best (MaxScore; Turtle and Flood 1995). Those are looked up for the rows that come near: most
    postings of a question to a large memory are never scored.
    """

    def __init__(
        self,
        rows: Rows,
        saturation: NDArray[np.float32],
        terms: Sequence[SoughtTerm],
        excluded: NDArray[np.int64],
    ) -> None:
        import numpy as np

        self._rows = rows
        self._saturation = saturation
        self._terms = sorted(terms, key=lambda term: term.df)
        self._scores = np.zeros(len(rows), np.float32)
        # How many of the terms the scores hold.
        self._added = 0
        self._excluded = excluded
        self._add(bisect_right(list(accumulate(term.df for term in self._terms)), AT_ONCE))

    def best(self, k: int) -> NDArray[np.int64]:
        """The rows of the k highest scores above 0, best first; equal scores in the order of rows."""
        import numpy as np

        while rest := self._terms[self._added :]:
            least = float(least_of_best(self._scores, k))
            # The most that the commonest term can add, the two commonest, and so on.
            bounds = list(accumulate(term.weight for term in reversed(rest)))
            needed = len(rest) - bisect_left(bounds, least)
            if not needed:
                rows = np.flatnonzero(self._scores >= least - bounds[-1])
                if len(rows) <= rest[0].df // LOOKUP:
                    return rows[best_of(self.at(rows), k)]
            self._add(max(1, needed))
        return best_of(self._scores, k)

    def at(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of some rows, which ascend."""
        import numpy as np

        scores: NDArray[np.float32] = self._scores[rows]
        for number, where, own in self._rows.split(rows):
            saturation = self._saturation[rows[where]]
            for term in self._terms[self._added :]:
                frequencies = frequencies_at(term.found[number], own)
                scores[where] += np.float32(term.weight) * (frequencies / (frequencies + saturation))
        return scores

    def _add(self, count: int) -> None:
        """Add the next terms to the scores of all rows."""
        import numpy as np

        terms = self._terms[self._added : self._added + count]
        self._added += count
        for number, (_, where) in enumerate(self._rows if terms else ()):
            # All terms at once: most have few postings, and calls of numpy take longer than those.
            parts = [term.found[number] for term in terms]
            packed = np.concatenate(parts)
            weights = np.array([term.weight for term in terms], np.float32)
            impacts = np.repeat(weights, [len(part) for part in parts])
            saturation, own = self._saturation[where], self._scores[where]
            for start in range(0, len(packed), BLOCK):
                block = packed[start : start + BLOCK]
                rows, frequencies = rows_of(block), frequencies_of(block)
                shares = frequencies / (frequencies + saturation.take(rows))
                # Twice the speed of own[rows] += …
                np.add.at(own, rows, impacts[start : start + BLOCK] * shares)
        self._scores[self._excluded] = 0

    def coverage(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """(k,) the weighted share of the question's terms that each row contains; `rows` ascend."""
        import numpy as np

        covered = np.zeros(len(rows), np.float32)
        for number, at, own in self._rows.split(rows):
            for term in self._terms:
                covered[at] += term.share * holds(term.found[number], own)
        return covered / np.float32(sum(term.share for term in self._terms) or 1)


def inverse_frequency(df: int, n: int) -> float:
    """log(1 + (n − df + ½) / (df + ½))."""
    return math.log1p((max(0, n - df) + 0.5) / (df + 0.5))
