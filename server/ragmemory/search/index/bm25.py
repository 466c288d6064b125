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
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from ragmemory.search.index.postings import frequencies_at, frequencies_of, rows_of
from ragmemory.search.index.scores import best_of, least_of_best
from ragmemory.text.analysis import hashes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.search.index.postings import Packed
    from ragmemory.search.index.rows import Rows

    # Where the postings of a term begin and end in each segment.
    Ranges = Sequence[Sequence[int]]

# Postings of the rarest terms that are scored before the first check whether they suffice.
AT_ONCE = 1 << 18
# Finding a row among the postings of a term takes as long as scoring about this many of them.
LOOKUP = 16
# Terms whose places are cached.
CACHED_TERMS = 5_000
# Added to the number of texts in the coverage of a question: in a memory of three notes every word of a note
# would be common, and every other word rare.
PSEUDO_TEXTS = 100


class BM25Index:
    """Immutable, and safe for several threads."""

    def __init__(self, rows: Rows, k1: float, b: float) -> None:
        self._rows = rows
        self._ranges: dict[str, Ranges] = {}
        self.k1 = k1
        self.b = b

    def search(self, terms: Sequence[str], excluded: NDArray[np.int64]) -> BM25Scores:
        """Score all rows. A term counts as often as it occurs in `terms`; `excluded` rows score 0."""
        import numpy as np

        total = len(self._rows)
        counted = Counter(terms)
        sought = []
        ranges = self._look_up([*counted])
        segments = self._rows.segments
        # (segments, 2, terms): one check for all terms of a segment.
        bounds = np.array(ranges, np.int64).reshape(len(ranges), len(segments), 2).transpose(1, 2, 0)
        found = [
            segment.postings.packed.slices(*where) for segment, where in zip(segments, bounds, strict=True)
        ]
        for number, (term, times) in enumerate(counted.items()):
            df = frequency(ranges[number])
            weight = times * inverse_frequency(df, total) * (self.k1 + 1)
            share = times * inverse_frequency(max(1, df), total + PSEUDO_TEXTS)
            sought.append(SoughtTerm(term, [parts[number] for parts in found], df, weight, share))
        return BM25Scores(self._rows, self._saturation, sought, excluded)

    def idf(self, terms: Sequence[str]) -> list[float]:
        """The inverse document frequency of each term."""
        return [inverse_frequency(df, len(self._rows)) for df in self.frequencies(terms)]

    def rarity(self, terms: Sequence[str]) -> list[float]:
        """The inverse document frequency of each term beside that of an unknown one, in (0, 1]."""
        texts = len(self._rows) + PSEUDO_TEXTS
        most = inverse_frequency(0, texts)
        return [inverse_frequency(df, texts) / most for df in self.frequencies(terms)]

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        """The number of chunks that contain each term; excluded ones count, too."""
        return [frequency(ranges) for ranges in self._look_up(terms)]

    def count_many(self, terms: Sequence[str]) -> list[int]:
        """The `frequencies` of hundreds of terms, most of which are in no chunk: nothing is cached."""
        import numpy as np

        names = hashes(terms)
        counts = np.zeros(len(terms), np.int64)
        for segment, _ in self._rows:
            begins, ends = segment.postings.ranges(names)
            counts += ends - begins
        found: list[int] = counts.tolist()
        return found

    def _look_up(self, terms: Sequence[str]) -> list[Ranges]:
        """Where the postings of each term are; cached, because a query asks for its terms several times."""
        known = self._ranges
        new = [term for term in terms if term not in known]
        if new:
            if len(known) > CACHED_TERMS:
                known = self._ranges = {}
                new = list(terms)
            names = hashes(new)
            found = [segment.postings.ranges(names).T.tolist() for segment, _ in self._rows]
            for number, term in enumerate(new):
                known[term] = [ranges[number] for ranges in found]
        return [known[term] for term in terms]

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
    name: str
    found: Sequence[Packed]  # segment by segment
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
        self.terms = sorted(terms, key=lambda term: term.df)
        self._scores = np.zeros(len(rows), np.float32)
        # How many of the terms the scores hold.
        self._added = 0
        self._excluded = excluded
        self._add(bisect_right(list(accumulate(term.df for term in self.terms)), AT_ONCE))

    def best(self, k: int) -> NDArray[np.int64]:
        """The rows of the k highest scores above 0, best first; equal scores in the order of rows."""
        import numpy as np

        while rest := self.terms[self._added :]:
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
            for term in self.terms[self._added :]:
                frequencies = frequencies_at(term.found[number], own)
                scores[where] += np.float32(term.weight) * (frequencies / (frequencies + saturation))
        return scores

    def _add(self, count: int) -> None:
        """Add the next terms to the scores of all rows."""
        import numpy as np

        terms = self.terms[self._added : self._added + count]
        self._added += count
        for number, (_, where) in enumerate(self._rows if terms else ()):
            # All terms at once: most have few postings, and calls of numpy take longer than those.
            parts = [term.found[number] for term in terms]
            packed = np.concatenate(parts)
            rows, frequencies = rows_of(packed).astype(np.intp), frequencies_of(packed)
            shares = frequencies / (frequencies + self._saturation[where].take(rows))
            scores, bounds = self._scores[where], accumulate(map(len, parts), initial=0)
            # As fast as np.add.at, which holds the interpreter's lock: the vectors are searched meanwhile.
            for term, (start, stop) in zip(terms, pairwise(bounds), strict=True):
                own = rows[start:stop]
                scores[own] = scores.take(own) + np.float32(term.weight) * shares[start:stop]
        self._scores[self._excluded] = 0

    def held(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(t, k) whether each row contains each of `terms`; `rows` ascend."""
        import numpy as np

        held = np.zeros((len(self.terms), len(rows)), np.bool_)
        for number, where, own in self._rows.split(rows):
            for term, among in zip(self.terms, held, strict=True):
                among[where] = frequencies_at(term.found[number], own)
        return held

    def coverage(self, held: NDArray[np.bool_]) -> NDArray[np.float32]:
        """(k,) the weighted share of the question's terms in each of k rows, given what these hold."""
        import numpy as np

        shares = np.array([term.share for term in self.terms], np.float32)
        covered: NDArray[np.float32] = shares @ held / np.float32(shares.sum() or 1)
        return covered


def frequency(ranges: Ranges) -> int:
    """In how many rows a term occurs."""
    return sum(end - begin for begin, end in ranges)


def inverse_frequency(df: int, n: int) -> float:
    """log(1 + (n − df + ½) / (df + ½))."""
    return math.log1p((max(0, n - df) + 0.5) / (df + 0.5))
