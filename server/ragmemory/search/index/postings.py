"""An inverted index in CSR form: sorted terms, and the rows and frequencies of each.

A posting is one uint32: the row in the upper 20 bits, the weighted frequency in eighths in the lower 12. This
is half the size of two arrays, and is searched and merged as it is, since postings ascend with their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ragmemory.search.index.columns import Column
from ragmemory.search.index.sorted_arrays import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragmemory.search.index.lexicon import Terms

    Packed = NDArray[np.uint32]

FREQUENCY_BITS = 12
FREQUENCY_MASK = (1 << FREQUENCY_BITS) - 1
MAX_ROWS = 1 << (32 - FREQUENCY_BITS)
# A frequency is a multiple of this and at most 511.875. More occurrences hardly change a BM25 score.
FREQUENCY_UNIT = 0.125
# Finding a row among postings takes as long as looking at about this many of them.
LOOKUP = 32
# Postings that are merged at a time: this bounds the memory of a merge.
MERGED_AT_ONCE = 1 << 19


@dataclass(frozen=True)
class Postings:
    terms: Column  # (t,) uint64 hashes, ascending
    ends: Column  # (t,) uint32: where the postings of a term end, and those of the next begin
    packed: Column  # (p,) uint32, ascending within a term

    @classmethod
    def build(cls, terms: Terms, weights: NDArray[np.float32]) -> Postings:
        """One row for each text; `weights` is (t,) float32, the weight of each occurrence."""
        used = np.flatnonzero(np.bincount(terms.numbers, minlength=len(terms.names)))
        names, places = np.unique(terms.names[used], return_inverse=True)
        place_of = np.empty(len(terms.names), np.int64)
        place_of[used] = places
        # Term and row as one number, so that one sort counts all of them.
        keys = place_of[terms.numbers] * terms.texts + terms.owners
        order = np.argsort(keys)
        keys = keys[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        frequencies = np.add.reduceat(weights[order], starts) if len(starts) else weights[:0]
        places, rows = np.divmod(keys[starts], max(1, terms.texts))
        ends = np.cumsum(np.bincount(places, minlength=len(names)), dtype=np.uint32)
        return cls(Column(names), Column(ends), Column(pack(rows, frequencies)))

    def ranges(self, names: NDArray[np.uint64]) -> NDArray[np.int64]:
        """(2, t) where in `packed` the postings of the terms with these hashes begin and end."""
        if not len(self.terms):
            return np.zeros((2, len(names)), np.int64)
        at, is_known = self.terms.find(names)
        return bounds_of(self.ends, at) * is_known


def bounds_of(ends: Column, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(2, k) where some of consecutive ranges begin and end, given the ends of all."""
    bounds = ends.take(np.concatenate([np.maximum(rows - 1, 0), rows])).astype(np.int64).reshape(2, -1)
    bounds[0, rows == 0] = 0
    return bounds


def pack(rows: NDArray[np.integer], frequencies: NDArray[np.float32]) -> Packed:
    """Each row must be below MAX_ROWS."""
    eighths = np.clip(np.rint(frequencies / FREQUENCY_UNIT), 1, FREQUENCY_MASK).astype(np.uint32)
    packed: Packed = (rows.astype(np.uint32) << np.uint32(FREQUENCY_BITS)) | eighths
    return packed


def rows_of(packed: Packed) -> Packed:
    """(p,) the rows, ascending."""
    return packed >> np.uint32(FREQUENCY_BITS)


def frequencies_of(packed: Packed) -> NDArray[np.float32]:
    """(p,) the weighted frequencies."""
    eighths = packed & np.uint32(FREQUENCY_MASK)
    return eighths.astype(np.float32) * np.float32(FREQUENCY_UNIT)


def frequencies_at(found: Sequence[Packed], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """(t, k) the weighted frequency of each of t terms in each of `rows`; 0 without a posting."""
    least = rows.astype(np.uint32) << np.uint32(FREQUENCY_BITS)
    # The first posting of the row or a later one, else the last of all; without postings, one of no row.
    nearest = [
        packed.take(packed.searchsorted(least), mode="clip") if len(packed) else ~least for packed in found
    ]
    eighths = np.array(nearest, np.uint32).reshape(len(found), len(rows)) ^ least
    # The frequency alone is left of a posting of the row, and more than any frequency of another posting.
    eighths[eighths > FREQUENCY_MASK] = 0
    return frequencies_of(eighths)


def count_among(found: Sequence[Packed], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """(t,) in how many of `rows`, which ascend, each of t terms occurs."""
    counts = np.zeros(len(found), np.int64)
    among = np.zeros(int(rows[-1]) + 1, np.bool_)
    among[rows] = True
    for number, packed in enumerate(found):
        if len(packed) > LOOKUP * len(rows):
            counts[number] = np.count_nonzero(frequencies_at([packed], rows))
        else:
            theirs = rows_of(packed)
            counts[number] = np.count_nonzero(among[theirs[: theirs.searchsorted(len(among))]])
    return counts


class PostingsMerger:
    """Merges the postings of several segments.

    `numbers` has an (n,) int64 array for each segment: the new row of each of its rows, -1 if it is dropped.
    Rows of a later segment become later rows. Read the columns in the order of the methods. They come in
    parts, some of them empty, so that the caller can stop in between.
    """

    def __init__(self, parts: Sequence[Postings], numbers: Sequence[NDArray[np.int64]]) -> None:
        self._parts = parts
        self._numbers = numbers

    def terms(self) -> Iterator[NDArray[np.uint64]]:
        nothing = np.empty(0, np.uint64)
        yield nothing
        names = [part.terms.all for part in self._parts]
        terms = distinct(np.concatenate(names))
        yield nothing
        # (terms, segments) the number of postings after the merge.
        table = np.zeros((len(terms), len(names)), np.int32)
        for column, (part, numbers) in enumerate(zip(self._parts, self._numbers, strict=True)):
            counts = _counts(part, numbers)
            yield nothing
            table[np.searchsorted(terms, names[column]), column] = counts
            yield nothing
        used = table.any(axis=1)
        if not used.all():
            terms, table = terms[used], table[used]
        self._terms, self._table = terms, table
        self._ends = np.cumsum(self._table.sum(axis=1))
        yield self._terms

    def ends(self) -> Iterator[NDArray[np.uint32]]:
        yield self._ends.astype(np.uint32)

    def packed(self) -> Iterator[Packed]:
        """Term by term, about MERGED_AT_ONCE postings at a time; at least one array."""
        yield np.empty(0, np.uint32)
        total = int(self._ends[-1]) if len(self._ends) else 0
        cuts = np.searchsorted(self._ends, np.arange(MERGED_AT_ONCE, total, MERGED_AT_ONCE), side="left") + 1
        bounds = distinct(np.concatenate([[0], cuts, [len(self._terms)]])).tolist()
        for start, stop in pairwise(bounds):
            yield self._block(start, stop)

    def _block(self, start: int, stop: int) -> Packed:
        """The postings of some neighbouring terms."""
        counts = self._table[start:stop]
        # Within a term, the postings of the segments follow one another.
        begins = (np.cumsum(counts) - counts.ravel()).reshape(counts.shape)
        block = np.empty(int(counts.sum()), np.uint32)
        for column, (part, numbers) in enumerate(zip(self._parts, self._numbers, strict=True)):
            found = _renumbered(self._slice(part, start, stop), numbers)
            part.packed.forget()
            count = counts[:, column]
            places = np.arange(len(found)) + np.repeat(begins[:, column] - (np.cumsum(count) - count), count)
            block[places] = found
        return block

    def _slice(self, part: Postings, start: int, stop: int) -> Packed:
        """The postings in one segment of the terms from `start` to `stop`."""
        terms, ends = part.terms.all, part.ends.all
        first = int(np.searchsorted(terms, self._terms[start]))
        last = int(np.searchsorted(terms, self._terms[stop - 1], side="right"))
        if first == last:
            return part.packed.slice(0, 0)
        return part.packed.slice(int(ends[first - 1]) if first else 0, int(ends[last - 1]))


def _renumbered(packed: Packed, numbers: NDArray[np.int64]) -> Packed:
    rows = numbers[rows_of(packed)]
    kept = rows >= 0
    if not kept.all():
        rows, packed = rows[kept], packed[kept]
    eighths = packed & np.uint32(FREQUENCY_MASK)
    return (rows.astype(np.uint32) << np.uint32(FREQUENCY_BITS)) | eighths


def _counts(part: Postings, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """(t,) the number of postings of each term that stay."""
    ends: NDArray[np.integer] = part.ends.all.astype(np.int64)
    if (numbers < 0).any():
        kept = np.zeros(len(part.packed) + 1, np.int32)
        for start in range(0, len(part.packed), MERGED_AT_ONCE):
            block = part.packed.slice(start, min(start + MERGED_AT_ONCE, len(part.packed)))
            kept[start + 1 : start + 1 + len(block)] = numbers[rows_of(block)] >= 0
        np.cumsum(kept, out=kept)
        ends = kept[ends]
    return np.diff(ends, prepend=0)
