"""Segments: what the index holds of the chunks in a range of ids, as immutable arrays in memory or in a file.

New chunks become small segments in memory, which are merged into larger ones and written to files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ragmemory.search.index.columns import Column, ColumnWriter, open_columns
from ragmemory.search.index.errors import MergeStopped
from ragmemory.search.index.lexicon import joined
from ragmemory.search.index.postings import FREQUENCY_UNIT, Postings, PostingsMerger, bounds_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragmemory.search.index.lexicon import Analysed

    Arrays = Iterator[NDArray[Any]]

# Rows that a merge copies at a time.
COPIED_AT_ONCE = 1 << 12


@dataclass(frozen=True, eq=False)
class Segment:
    """Row r of every column is the chunk `chunk_ids[r]`."""

    after: int  # holds every chunk of the store with after < id <= upto, unless it was removed
    upto: int
    total_length: float  # the sum of `lengths`, exactly
    chunk_ids: Column  # (n,) int64, ascending
    lengths: Column  # (n,) float32: the sum of each chunk's term frequencies
    vectors: Column  # (n, d) float16, of unit length
    codes: Column  # (d / 64 · n,) uint64: one bit a dimension, column by column
    total: Column  # (d,) float64: the sum of the vectors, exactly
    words: Column  # (w,) uint16: the hashes of each chunk's words, in order
    word_ends: Column  # (n,) uint32: where the words of a chunk end, and those of the next begin
    postings: Postings
    path: Path | None = None  # None: in memory
    checksum: int = 0  # of the file

    def __len__(self) -> int:
        return len(self.chunk_ids)

    @classmethod
    def build(
        cls,
        ids: tuple[int, int, Sequence[int]],
        embeddings: Sequence[bytes],
        texts: Analysed,
        others: Sequence[tuple[Analysed, float]],
        dimensions: int,
    ) -> Segment:
        """A segment in memory.

        `ids` are `after`, `upto` and the chunk ids; `embeddings` are little-endian float16; `others` are
        the titles and the surroundings, analysed in this order after the texts, and how many times an
        occurrence in them counts.
        """
        after, upto, chunk_ids = ids
        vectors = np.frombuffer(b"".join(embeddings), "<f2").reshape(len(chunk_ids), dimensions)
        # A damaged vector must not affect the scores of others.
        vectors = np.where(np.isfinite(vectors), vectors, np.float16(0))
        full = vectors.astype(np.float32)
        fields = [texts.terms, *(other.terms for other, _ in others)]
        terms = joined(fields)
        counts = np.array([1.0, *(weight for _, weight in others)], np.float32)
        weights = np.repeat(counts, [len(field.numbers) for field in fields])
        lengths = rounded(np.bincount(terms.owners, weights, len(chunk_ids)))
        sizes = np.bincount(texts.stems.owners, minlength=len(chunk_ids))
        return cls(
            after=after,
            upto=upto,
            total_length=float(lengths.sum(dtype=np.float64)),
            chunk_ids=Column(np.array(chunk_ids, np.int64)),
            lengths=Column(lengths),
            vectors=Column(vectors),
            codes=Column(codes_of(full).T.ravel()),
            total=Column(full.sum(axis=0, dtype=np.float64)),
            words=Column(shortened(texts.stems.names)[texts.stems.numbers]),
            word_ends=Column(np.cumsum(sizes).astype(np.uint32)),
            postings=Postings.build(terms, weights),
        )

    @classmethod
    def open(cls, path: Path) -> Segment:
        """Map a file. Raises OSError, DamagedFile."""
        columns, facts, checksum = open_columns(path)
        segment = cls._of(columns, facts, path, checksum)
        for column in (segment.vectors, segment.words):
            column.expect_single_rows()
        return segment

    def numbered(self, after: int, upto: int, chunk_ids: Sequence[int]) -> Segment:
        """The same chunks with these ids."""
        return replace(self, after=after, upto=upto, chunk_ids=Column(np.array(chunk_ids, np.int64)))

    def total_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """(d,) the sum of the vectors of some rows, exactly.

        They are multiples of 2⁻²⁴ of at most 1, so a sum does not depend on the order, nor on what was added
        and subtracted before.
        """
        if len(rows) == len(self):
            return self.total.all
        total = np.zeros(len(self.total))
        for start in range(0, len(rows), COPIED_AT_ONCE):
            vectors = as_float32(self.vectors.take(rows[start : start + COPIED_AT_ONCE]))
            total += vectors.sum(axis=0, dtype=np.float64)
        return total

    @classmethod
    def _of(
        cls, columns: dict[str, Column], facts: dict[str, Any], path: Path | None = None, checksum: int = 0
    ) -> Segment:
        postings = Postings(*(columns.pop(name) for name in ("terms", "ends", "packed")))
        fields: dict[str, Any] = {**facts, **columns}
        return cls(**fields, postings=postings, path=path, checksum=checksum)

    @classmethod
    def merge(cls, segments: Sequence[Segment], live: Sequence[NDArray[np.int64] | None]) -> Segment:
        """Merge neighbours in memory. `live` are the rows of each that stay; None means all."""
        columns, facts = _merged(segments, live)
        return cls._of({name: Column(np.concatenate(list(parts))) for name, parts in columns}, facts)

    @classmethod
    def write(
        cls,
        path: Path,
        segments: Sequence[Segment],
        live: Sequence[NDArray[np.int64] | None],
        is_stopped: Callable[[], bool],
    ) -> Segment:
        """Merge neighbours into a new file, in bounded memory.

        Raises OSError, DamagedFile, MergeStopped; then the file may exist, incomplete.
        """

        def until_stopped(parts: Arrays) -> Arrays:
            for part in parts:
                if is_stopped():
                    raise MergeStopped
                yield part

        columns, facts = _merged(segments, live)
        writer = ColumnWriter(path)
        try:
            for name, parts in columns:
                writer.add(name, until_stopped(parts))
            writer.finish(facts)
        finally:
            writer.close()
        return cls.open(path)


def _merged(
    segments: Sequence[Segment], live: Sequence[NDArray[np.int64] | None]
) -> tuple[Iterable[tuple[str, Arrays]], dict[str, Any]]:
    """The columns of the merged segment, each in parts, and its facts."""
    rows = [
        np.arange(len(segment)) if keep is None else keep
        for segment, keep in zip(segments, live, strict=True)
    ]
    pairs = list(zip(segments, rows, strict=True))
    lengths = np.concatenate([segment.lengths.all[keep] for segment, keep in pairs])
    facts = {
        "after": segments[0].after,
        "upto": segments[-1].upto,
        "total_length": float(lengths.sum(dtype=np.float64)),
    }
    first = np.cumsum([0, *map(len, rows)])
    numbers = []
    for (segment, keep), start in zip(pairs, first, strict=False):
        numbers.append(np.full(len(segment), -1, np.int64))
        numbers[-1][keep] = start + np.arange(len(keep))
    merger = PostingsMerger([segment.postings for segment in segments], numbers)
    sizes = [np.diff(segment.word_ends.all, prepend=np.uint32(0))[keep] for segment, keep in pairs]
    # Most rows stay: it is faster to subtract the others.
    totals = [
        segment.total.all - segment.total_of(np.flatnonzero(number < 0))
        for segment, number in zip(segments, numbers, strict=True)
    ]
    columns: dict[str, Arrays] = {
        "chunk_ids": (segment.chunk_ids.all[keep] for segment, keep in pairs),
        "lengths": iter([lengths]),
        "vectors": _vectors(pairs),
        "codes": _codes(pairs),
        "total": iter([np.sum(totals, axis=0)]),
        "words": _words(pairs),
        "word_ends": iter([np.cumsum(np.concatenate(sizes), dtype=np.uint32)]),
        "terms": merger.terms(),
        "ends": merger.ends(),
        "packed": merger.packed(),
    }
    return columns.items(), facts


def _vectors(pairs: Sequence[tuple[Segment, NDArray[np.int64]]]) -> Arrays:
    for segment, rows in pairs:
        yield segment.vectors.slice(0, 0)
        for start in range(0, len(rows), COPIED_AT_ONCE):
            yield segment.vectors.take(rows[start : start + COPIED_AT_ONCE])
            segment.vectors.forget()


def _codes(pairs: Sequence[tuple[Segment, NDArray[np.int64]]]) -> Arrays:
    width = max((len(segment.codes) // len(segment) for segment, _ in pairs if len(segment)), default=0)
    yield pairs[0][0].codes.slice(0, 0)
    for column in range(width):
        for segment, rows in pairs:
            start = column * len(segment)
            yield segment.codes.slice(start, start + len(segment))[rows]
            segment.codes.forget()


def _words(pairs: Sequence[tuple[Segment, NDArray[np.int64]]]) -> Arrays:
    for segment, rows in pairs:
        yield segment.words.slice(0, 0)
        for start in range(0, len(rows), COPIED_AT_ONCE):
            yield words_of(segment, rows[start : start + COPIED_AT_ONCE])[0]
            segment.words.forget()


def words_of(segment: Segment, rows: NDArray[np.int64]) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """The words of some rows of a segment, one row after the other, and the number of words of each."""
    begins, ends = bounds_of(segment.word_ends, rows)
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):  # Neighbours, as in most merges.
        return segment.words.slice(int(begins[0]), int(ends[-1])), ends - begins
    return np.concatenate([segment.words.slice(0, 0), *segment.words.slices(begins, ends)]), ends - begins


def rounded(lengths: NDArray[Any]) -> NDArray[np.float32]:
    """Multiples of FREQUENCY_UNIT, like the frequencies: sums of them are exact."""
    return (np.rint(lengths / FREQUENCY_UNIT) * FREQUENCY_UNIT).astype(np.float32)


def shortened(names: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """The last 16 bits of each hash."""
    return names.astype(np.uint16)


def as_float32(vectors: NDArray[np.float16]) -> NDArray[np.float32]:
    """Exactly the same numbers, if they are finite. Eight times as fast as `astype`, which uses no SIMD."""
    # Sign, exponent and fraction keep their order; they move to the places they have in float32.
    bits = vectors.view("<i2").astype(np.int32)
    bits <<= 13
    bits &= np.int32(-0x7000_0001)  # clear the copies of the sign between the sign and the exponent
    # The bias of the exponent is 127 instead of 15.
    converted: NDArray[np.float32] = bits.view(np.float32)
    converted *= np.float32(2.0**112)
    return converted


def codes_of(vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """The sign bits of vectors: (n, d) float32 → (n, ⌈d / 64⌉) uint64, padded with zeros."""
    bits = np.packbits(vectors > 0, axis=1)
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64)
