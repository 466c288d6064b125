"""BM25 over the postings of all segments (Robertson and Zaragoza 2009).

The inverse document frequency is Lucene's, never negative.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragmemory.search.index.postings import count_among, frequencies_at, frequencies_of, rows_of
from ragmemory.search.index.scores import best_of, least_of_best
from ragmemory.search.index.sorted_arrays import is_among, is_first
from ragmemory.text.analysis import hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragmemory.search.index.postings import Packed
    from ragmemory.search.index.rows import Rows

# Postings of the rarest terms that are scored before the first check whether they suffice.
AT_ONCE = 1 << 16
# Finding a row among the postings of a term takes as long as scoring about this many of them.
LOOKUP = 4
# Terms whose ranges of postings are cached.
CACHED_TERMS = 5_000
# Added to the number of texts in the coverage of a question: in a memory of three notes every word of a note
# would be common, and every other word rare.
PSEUDO_TEXTS = 100


class BM25Index:
    """Immutable, and safe for several threads."""

    def __init__(self, rows: Rows, k1: float, b: float) -> None:
        self._rows = rows
        self._ranges_by_term: dict[str, TermRange] = {}
        self.k1 = k1
        self.b = b

    @property
    def texts(self) -> int:
        """The number of texts in the statistics."""
        return self._rows.counted

    @property
    def length(self) -> float:
        """The sum of their lengths."""
        total = sum(segment.total_length for segment, _ in self._rows)
        gone = self._rows.take(self._rows.excluded, lambda segment: segment.lengths)
        return total - float(gone.sum(dtype=np.float64))

    def search(self, terms: Sequence[str], excluded: NDArray[np.int64]) -> BM25Scores:
        """Score all rows. A term counts as often as it occurs in `terms`; `excluded` rows score 0."""
        total = self.texts
        counted = Counter(terms)
        sought = []
        places = self._look_up([*counted])
        segments = self._rows.segments
        # (segments, 2, terms): one check for all terms of a segment.
        ranges = [place.ranges for place in places]
        bounds = np.array(ranges, np.int64).reshape(len(ranges), len(segments), 2).transpose(1, 2, 0)
        found = [
            segment.postings.packed.slices(*where) for segment, where in zip(segments, bounds, strict=True)
        ]
        for number, (term, times) in enumerate(counted.items()):
            df = places[number].df
            weight = times * inverse_frequency(df, total) * (self.k1 + 1)
            share = times * inverse_frequency(max(1, df), total + PSEUDO_TEXTS)
            sought.append(QueryTerm(term, [parts[number] for parts in found], df, weight, share))
        return BM25Scores(self._rows, self._saturation, sought, excluded)

    def idf(self, terms: Sequence[str]) -> list[float]:
        """The inverse document frequency of each term."""
        return [inverse_frequency(df, self.texts) for df in self.frequencies(terms)]

    def rarity(self, terms: Sequence[str]) -> list[float]:
        """The inverse document frequency of each term relative to that of an unknown one, in (0, 1]."""
        texts = self.texts + PSEUDO_TEXTS
        most = inverse_frequency(0, texts)
        return [inverse_frequency(df, texts) / most for df in self.frequencies(terms)]

    def frequencies(self, terms: Sequence[str]) -> list[int]:
        """The number of chunks that contain each term, without excluded ones."""
        return [place.df for place in self._look_up(terms)]

    def count_many(self, terms: Sequence[str]) -> list[int]:
        """The `frequencies` of hundreds of terms, most of which are in no chunk: nothing is cached."""
        found: list[int] = self._count(self._ranges(hashes(terms))).tolist()
        return found

    def _look_up(self, terms: Sequence[str]) -> list[TermRange]:
        """Where the postings of each term are; cached, because a query asks for its terms several times."""
        known = self._ranges_by_term
        new = [term for term in terms if term not in known]
        if new:
            if len(known) > CACHED_TERMS:
                known = self._ranges_by_term = {}
                new = list(terms)
            ranges = self._ranges(hashes(new))
            frequencies = self._count(ranges).tolist()
            for term, where, df in zip(new, ranges.transpose(2, 0, 1).tolist(), frequencies, strict=True):
                known[term] = TermRange(where, df)
        return [known[term] for term in terms]

    def _ranges(self, names: NDArray[np.uint64]) -> NDArray[np.int64]:
        """(segments, 2, t) where the postings of the terms with these hashes begin and end."""
        found = [segment.postings.ranges(names) for segment in self._rows.segments]
        return np.array(found, np.int64).reshape(len(found), 2, len(names))

    def _count(self, ranges: NDArray[np.int64]) -> NDArray[np.int64]:
        """(t,) the number of postings in (segments, 2, t) `ranges`, without those of excluded rows."""
        counts: NDArray[np.int64] = (ranges[:, 1] - ranges[:, 0]).sum(axis=0)
        for number, _, rows in self._rows.split(self._rows.excluded):
            begins, ends = ranges[number]
            used = (begins < ends).nonzero()[0]
            found = self._rows.segments[number].postings.packed.slices(begins[used], ends[used])
            counts[used] -= count_among(found, rows)
        return counts

    def saturation(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """(k,) the frequency at which a term reaches half of its weight; it grows with the text's length."""
        return self._saturation.take(rows)

    @cached_property
    def _saturation(self) -> NDArray[np.float32]:
        """(n,) k1 (1 − b + b length / average)."""
        average = self.length / max(1, self.texts) or 1.0
        scale = np.float32(self.k1 * self.b / average)
        saturation = np.empty(len(self._rows), np.float32)
        for segment, where in self._rows:
            np.multiply(segment.lengths.all, scale, out=saturation[where])
        # Above 0 also for a text without words, whatever b is.
        saturation += max(np.float32(self.k1 * (1 - self.b)), np.finfo(np.float32).tiny)
        return saturation


class TermRange(NamedTuple):
    """Where the postings of a term are."""

    ranges: list[list[int]]  # where they begin and end in each segment
    df: int  # in how many rows that are not excluded it occurs


@dataclass(frozen=True)
class QueryTerm:
    name: str
    found: Sequence[Packed]  # segment by segment, also of excluded rows
    df: int  # without them
    weight: float  # more than it can add to any score
    share: float  # of the coverage


class BM25Scores:
    """BM25 scores, and the coverage of the question.

    Terms are added to the scores from the rarest on, until the rest together cannot bring a row that has only
    them among the best (MaxScore; Turtle and Flood 1995). The rest are looked up for the rows that may be
    among the best: most postings of a question to a large memory are never scored.
    """

    def __init__(
        self,
        rows: Rows,
        saturation: NDArray[np.float32],
        terms: Sequence[QueryTerm],
        excluded: NDArray[np.int64],
    ) -> None:
        self._rows = rows
        self._saturation = saturation
        self._excluded = excluded
        self.terms = sorted(terms, key=lambda term: term.df)
        # The number of terms added; the rows with any of them, ascending; and the scores of these rows.
        self._added = 0
        self._reached = np.empty(0, np.int32)
        self._scores = np.empty(0, np.float32)
        self._add(bisect_right(list(accumulate(term.df for term in self.terms)), AT_ONCE))

    def best(self, k: int) -> NDArray[np.int64]:
        """The rows of the k highest scores above 0, best first; equal scores in the order of rows."""
        while rest := self.terms[self._added :]:
            least = least_of_best(self._scores, k)
            most = sum(term.weight for term in rest)
            if most < least:
                near = np.flatnonzero(self._scores >= least - most)
                if len(near) <= rest[0].df // LOOKUP:
                    rows = self._reached[near].astype(np.int64)
                    more = self._sums(rest, self._frequencies(rest, rows), rows)
                    return rows[best_of(self._scores[near] + more, k)]
            self._add(1)
        return self._reached[best_of(self._scores, k)].astype(np.int64)

    def frequencies(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """(t, k) the weighted frequency of each of `terms` in each of `rows`, which ascend."""
        return self._frequencies(self.terms, rows)

    def at(self, rows: NDArray[np.int64], frequencies: NDArray[np.float32]) -> NDArray[np.float32]:
        """(k,) the scores of some rows, given their `frequencies`."""
        return self._sums(self.terms, frequencies, rows)

    def _add(self, count: int) -> None:
        """Add the next terms to the scores."""
        terms = self.terms[self._added : self._added + count]
        self._added += len(terms)
        rows, scores = self._scored(terms)
        rows = np.concatenate([self._reached, rows])
        # A stable sort merges ranges that already ascend, such as the rows of each term.
        order = np.argsort(rows, kind="stable")
        rows, scores = rows[order], np.concatenate([self._scores, scores])[order]
        firsts = np.flatnonzero(is_first(rows))
        self._reached, self._scores = rows[firsts], np.add.reduceat(scores, firsts)
        if len(self._excluded):
            allowed = ~is_among(self._reached, self._excluded)
            self._reached, self._scores = self._reached[allowed], self._scores[allowed]

    def _scored(self, terms: Sequence[QueryTerm]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The rows of all postings of some terms, term by term, and what each adds to the score of its row.

        All at once: for terms with few postings, calls of numpy cost more than the work. Common terms have
        hundreds of thousands, so arrays are kept small and short-lived.
        """
        parts = [part for term in terms for part in term.found]
        packed = np.concatenate([np.empty(0, np.uint32), *parts])
        starts = np.tile(self._rows.starts[:-1].astype(np.int32), len(terms))
        rows = np.repeat(starts, [len(part) for part in parts])
        rows += rows_of(packed).view(np.int32)
        frequencies = frequencies_of(packed)
        scores = self._saturation.take(rows)
        scores += frequencies
        np.divide(frequencies, scores, out=scores)
        scores *= np.repeat(_weights(terms), [sum(map(len, term.found)) for term in terms])
        return rows, scores

    def _frequencies(self, terms: Sequence[QueryTerm], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        frequencies = np.zeros((len(terms), len(rows)), np.float32)
        for number, where, own in self._rows.split(rows):
            frequencies[:, where] = frequencies_at([term.found[number] for term in terms], own)
        return frequencies

    def _sums(
        self, terms: Sequence[QueryTerm], frequencies: NDArray[np.float32], rows: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """(k,) what some terms add to the scores of some rows."""
        shares = frequencies / (frequencies + self._saturation.take(rows))
        # Not a product of matrices, in which equal columns may differ in their last bits.
        sums: NDArray[np.float32] = (_weights(terms)[:, None] * shares).sum(axis=0)
        return sums

    def coverage(self, held: NDArray[np.bool_], power: float = 1) -> NDArray[np.float32]:
        """(k,) the weighted share of the question's terms in each of k rows; `held` is (t, k), by term.

        The weights are powers of the inverse document frequencies.
        """
        shares = np.array([term.share for term in self.terms], np.float32) ** power
        return shares @ held / np.float32(shares.sum() or 1)


def _weights(terms: Sequence[QueryTerm]) -> NDArray[np.float32]:
    return np.array([term.weight for term in terms], np.float32)


def inverse_frequency(df: int, n: int) -> float:
    """log(1 + (n − df + ½) / (df + ½))."""
    return math.log1p((n - df + 0.5) / (df + 0.5))
