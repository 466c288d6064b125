"""The whole index: its segments, the chunks removed from them, and its checkpoint in the store.

For the search see `retriever`, for the files `saving`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

from ragmemory.search.index.bigrams import SequenceIndex
from ragmemory.search.index.bm25 import BM25Index
from ragmemory.search.index.checking import Checking
from ragmemory.search.index.lexicon import Lexicon
from ragmemory.search.index.postings import MAX_ROWS
from ragmemory.search.index.rows import Rows
from ragmemory.search.index.segments import Segment
from ragmemory.search.index.sorted_arrays import is_among, union
from ragmemory.search.index.vectors import VectorIndex
from ragmemory.types.changes import Changes, Checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from ragmemory.search.index.columns import Column
    from ragmemory.settings import RankingSettings

# Neighbours in memory are merged while the older one is less than this many times as long: so segments stay
# few, and each chunk is copied only a few times.
MERGE_RATIO = 4


class Removed(NamedTuple):
    """Chunks that were removed from the store and are still in a segment."""

    ids: NDArray[np.int64]  # ascending
    total: NDArray[np.float64]  # (d,) the sum of their vectors, exactly

    @classmethod
    def none(cls) -> Removed:
        """No chunks."""
        return cls(np.empty(0, np.int64), np.zeros(1))


class ChunkIndex:
    """Changed by one thread at a time. `rows` and what searches them are replaced whole."""

    def __init__(self, dimensions: int, settings: RankingSettings) -> None:
        self.dimensions = dimensions
        self.settings = settings
        self.checkpoint = Checkpoint()
        self.hidden: list[tuple[int, int]] = []
        self._lexicon = Lexicon()
        self._set((), Removed.none().ids, Removed.none())

    def _set(self, segments: Iterable[Segment], removed_ids: NDArray[np.int64], summed: Removed) -> None:
        """Replace the segments and the removed chunks, of which some may be in no segment.

        `summed` are those whose vectors need not be summed again.
        """
        segments = tuple(sorted(segments, key=lambda segment: (segment.after, segment.upto)))
        rows = Rows(segments)
        gone = rows.with_ids(removed_ids) if len(removed_ids) else removed_ids
        removed_ids = rows.take(gone, _ids) if len(gone) else gone
        new = gone[~is_among(removed_ids, summed.ids)]
        removed = Removed(removed_ids, summed.total + rows.total_of(new))
        hidden = Removed.none().ids
        if self.hidden:
            ranges = np.concatenate([np.arange(first, last + 1) for first, last in self.hidden])
            hidden = np.setdiff1d(rows.with_ids(ranges), gone, assume_unique=True)
        # Only now: what reads the files above may find damage, and then nothing has changed.
        self.segments, self.removed = segments, removed
        self.rows = Rows(segments, union(gone, hidden) if len(hidden) else gone)
        self.bm25 = BM25Index(self.rows, self.settings.k1, self.settings.b)
        self.vectors = VectorIndex(self.rows, hidden, removed.total)
        self.sequences = SequenceIndex(self.rows)
        self.checking = Checking(self.rows)

    def __len__(self) -> int:
        return self.rows.counted

    # Follow the store

    def apply(self, changes: Changes, built: Segment | None = None) -> None:
        """Apply what the store has written since `checkpoint`; `built` has the same chunks, without ids."""
        self.hidden = changes.hidden
        removed = union(self.removed.ids, np.array(changes.removed, np.int64))
        after, upto = self.checkpoint.chunk_id, changes.checkpoint.chunk_id
        if built is not None:
            built = built.numbered(after, upto, changes.chunk_ids)
        elif after < upto:
            built = self.segment(after, upto, changes)
        segments = self.segments if built is None else [*self.segments, built]
        self._set(segments, removed, self.removed)
        self.checkpoint = changes.checkpoint

    def gaps(self) -> Iterator[tuple[int, int]]:
        """The ranges of ids, up to `checkpoint`, that no segment covers: (after, upto)."""
        covered = 0
        for segment in self.segments:
            if segment.after > covered:
                yield covered, segment.after
            covered = max(covered, segment.upto)
        if covered < self.checkpoint.chunk_id:
            yield covered, self.checkpoint.chunk_id

    def fill(self, after: int, upto: int, changes: Changes) -> None:
        """Fill a gap with what the store holds of it."""
        segments = [*self.segments, self.segment(after, upto, changes)]
        self._set(segments, self.removed.ids, self.removed)

    def segment(self, after: int, upto: int, changes: Changes) -> Segment:
        """A segment of some chunks, which is not added to the index."""
        if self._lexicon.is_full:
            self._lexicon = Lexicon()
        names = [" ".join(above) for above in zip(changes.titles, changes.headings, strict=True)]
        # The last one numbers its words last, and so has the names of all.
        texts, *others = map(self._lexicon.analyse, (changes.texts, names, changes.surroundings))
        weights = (self.settings.title_weight, self.settings.surroundings_weight)
        ids = (after, upto, changes.chunk_ids)
        return Segment.build(
            ids, changes.embeddings, texts, list(zip(others, weights, strict=True)), self.dimensions
        )

    # Replace segments

    @property
    def unsaved(self) -> int:
        """How many rows are not in a file."""
        return sum(len(segment) for segment in self.segments if segment.path is None)

    def live_rows(self, segment: Segment) -> NDArray[np.int64] | None:
        """The rows of a segment that are not removed; None means all."""
        is_removed = is_among(segment.chunk_ids.all, self.removed.ids)
        return np.flatnonzero(~is_removed) if is_removed.any() else None

    def mergeable(self) -> list[Segment]:
        """The newest neighbours in memory that are due to be merged; empty if none are."""
        for at in range(len(self.segments) - 1, 0, -1):
            run = [self.segments[at]]
            while at and _can_be_merged(self.segments[at - 1], run):
                at -= 1
                run.insert(0, self.segments[at])
            if len(run) > 1:
                return run
        return []

    def replace(self, old: Sequence[Segment], new: Segment) -> bool:
        """Replace `old` by `new`, which was merged from them; False if they are no longer in the index."""
        if not all(segment in self.segments for segment in old):
            return False
        dropped = sum(segment.total.all for segment in old) - new.total.all
        summed = self.removed._replace(total=self.removed.total - dropped)
        self._set([*(segment for segment in self.segments if segment not in old), new], summed.ids, summed)
        return True

    def drop(self, path: Path) -> None:
        """Drop the segment of a damaged file, which leaves a gap."""
        # At once: `_set` may find another damaged file, after which this one must not come back.
        self.segments = tuple(segment for segment in self.segments if segment.path != path)
        self._set(self.segments, self.removed.ids, Removed.none())

    @property
    def saved_removed(self) -> Removed:
        """The removed chunks that are in a file."""
        in_memory = [segment for segment in self.segments if segment.path is None]
        if not in_memory:
            return self.removed
        rows = Rows(in_memory)
        unsaved = rows.with_ids(self.removed.ids)
        ids = np.setdiff1d(self.removed.ids, rows.take(unsaved, _ids), assume_unique=True)
        return Removed(ids, self.removed.total - rows.total_of(unsaved))

    def adopt(self, checkpoint: Checkpoint, segments: Sequence[Segment], removed: Removed) -> None:
        """Continue from what this or another process has saved; keep what is newer here."""
        newer = [
            _part_after(segment, checkpoint.chunk_id)
            for segment in self.segments
            if segment.path is None and segment.upto > checkpoint.chunk_id
        ]
        if newer:
            # Each side may have applied removals that the other has not.
            mine, theirs = self.checkpoint, checkpoint
            checkpoint = mine if mine.removal <= theirs.removal else replace(mine, removal=theirs.removal)
        is_whole = len(Rows(segments).with_ids(removed.ids)) == len(removed.ids)  # No file is lost.
        summed = removed if is_whole else Removed.none()
        self._set([*segments, *newer], union(self.removed.ids, removed.ids), summed)
        self.checkpoint = checkpoint


def _can_be_merged(older: Segment, newer: Sequence[Segment]) -> bool:
    size = sum(map(len, newer))
    return (
        older.path is None
        and newer[0].path is None
        and older.upto == newer[0].after
        and len(older) < MERGE_RATIO * size
        and len(older) + size <= MAX_ROWS
    )


def _part_after(segment: Segment, chunk_id: int) -> Segment:
    """The part of a segment with higher ids than this."""
    if segment.after >= chunk_id:
        return segment
    rows = np.flatnonzero(segment.chunk_ids.all > chunk_id)
    return dataclasses.replace(Segment.merge([segment], [rows]), after=chunk_id)


def _ids(segment: Segment) -> Column:
    return segment.chunk_ids
