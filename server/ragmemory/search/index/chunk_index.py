"""Everything that can be searched: segments, the chunks removed from them, and how far they follow the store.

Not a search: see `retriever`. Nothing here is saved: see `saving`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragmemory.search.index.bigrams import SequenceIndex
from ragmemory.search.index.bm25 import WordIndex
from ragmemory.search.index.lexicon import Lexicon
from ragmemory.search.index.postings import MOST_ROWS
from ragmemory.search.index.rows import Rows
from ragmemory.search.index.segments import Segment
from ragmemory.search.index.vectors import VectorIndex
from ragmemory.types import Mark

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.search.index.columns import Column
    from ragmemory.search.ranking import RankingSettings
    from ragmemory.types import Changes

# Two neighbours in memory are merged while the older one is less than this many times as long: so there are
# few, and a chunk is copied a few times.
MERGE_RATIO = 4


class ChunkIndex:
    """Changed by one thread at a time. `rows`, `words`, `vectors` and `sequences` are replaced as a whole."""

    def __init__(self, dimensions: int, settings: RankingSettings) -> None:
        import numpy as np

        self.dimensions = dimensions
        self.settings = settings
        self.mark = Mark()
        self.hidden: list[tuple[int, int]] = []
        self._lexicon = Lexicon()
        self._set((), np.empty(0, np.int64))

    def _set(self, segments: Iterable[Segment], removed: NDArray[np.int64]) -> None:
        import numpy as np

        self.segments = tuple(sorted(segments, key=lambda segment: (segment.after, segment.upto)))
        self.rows = Rows(self.segments)
        # Closed rows count in the statistics of words until a merge drops them; searches leave them out.
        self.closed = self.rows.with_ids(removed) if len(removed) else removed
        self.removed = self.rows.take(self.closed, _ids) if len(self.closed) else self.closed
        if self.hidden:
            ids = np.concatenate([np.arange(first, last + 1) for first, last in self.hidden])
            self.closed = np.union1d(self.closed, self.rows.with_ids(ids))
        self.words = WordIndex(self.rows, self.settings.k1, self.settings.b)
        self.vectors = VectorIndex(self.rows)
        self.sequences = SequenceIndex(self.rows)

    def __len__(self) -> int:
        return len(self.rows) - len(self.closed)

    # Following the store

    def apply(self, changes: Changes) -> None:
        """Take in what the store has written since `mark`."""
        import numpy as np

        removed = np.union1d(self.removed, np.array(changes.removed, np.int64))
        self._insert(self.mark.chunk_id, changes.mark.chunk_id, changes, removed)
        self.mark = changes.mark

    def hide(self, ranges: list[tuple[int, int]]) -> None:
        """Let no search find the chunks in these ranges of ids, first and last; all others may be found."""
        self.hidden = ranges
        self._set(self.segments, self.removed)

    def gaps(self) -> Iterator[tuple[int, int]]:
        """The ranges of ids, up to `mark`, that no segment covers: (after, upto)."""
        covered = 0
        for segment in self.segments:
            if segment.after > covered:
                yield covered, segment.after
            covered = max(covered, segment.upto)
        if covered < self.mark.chunk_id:
            yield covered, self.mark.chunk_id

    def fill(self, after: int, upto: int, changes: Changes) -> None:
        """Take in what the store holds of a gap."""
        self._insert(after, upto, changes, self.removed)

    def _insert(self, after: int, upto: int, changes: Changes, removed: NDArray[np.int64]) -> None:
        segments = list(self.segments)
        if after < upto:
            at = sum(segment.after < after for segment in segments)
            segments.insert(at, self._segment(after, upto, changes))
            while at and _can_be_merged(segments[at - 1], segments[at]):
                at -= 1
                segments[at : at + 2] = [Segment.merge(segments[at : at + 2], [None, None])]
        self._set(segments, removed)

    def _segment(self, after: int, upto: int, changes: Changes) -> Segment:
        if self._lexicon.is_full:
            self._lexicon = Lexicon()
        names = [" ".join(above) for above in zip(changes.titles, changes.headings, strict=True)]
        texts, titles = self._lexicon.analyse(changes.texts), self._lexicon.analyse(names)
        ids = (after, upto, changes.chunk_ids)
        weight = self.settings.title_weight
        return Segment.build(ids, changes.embeddings, (texts, titles), weight, self.dimensions)

    # Segments that change their place

    @property
    def unsaved(self) -> int:
        """How many rows are in memory only."""
        return sum(len(segment) for segment in self.segments if segment.path is None)

    def kept(self, segment: Segment) -> NDArray[np.int64] | None:
        """The rows of a segment that are not removed; None: all."""
        import numpy as np

        ids = segment.chunk_ids.all
        gone = np.isin(ids, self.removed, assume_unique=True) if len(self.removed) else None
        return np.flatnonzero(~gone) if gone is not None and gone.any() else None

    def replace(self, old: Sequence[Segment], new: Segment) -> bool:
        """Put `new`, which was merged from `old`, in their place; False if they are no longer there."""
        if not all(segment in self.segments for segment in old):
            return False
        self._set([*(segment for segment in self.segments if segment not in old), new], self.removed)
        return True

    def drop(self, path: Path) -> None:
        """Forget the segment of a damaged file, which leaves a gap."""
        self._set((segment for segment in self.segments if segment.path != path), self.removed)

    def adopt(self, mark: Mark, segments: Sequence[Segment], removed: NDArray[np.int64]) -> None:
        """Go on from what this or another process has saved, with what is newer here."""
        import numpy as np

        newer = [
            _newer(segment, mark.chunk_id)
            for segment in self.segments
            if segment.path is None and segment.upto > mark.chunk_id
        ]
        if newer:
            # Of removals, neither side may know those that the other has taken in.
            mine, theirs = self.mark, mark
            mark = mine if mine.removal <= theirs.removal else replace(mine, removal=theirs.removal)
        self._set([*segments, *newer], np.union1d(self.removed, removed))
        self.mark = mark


def _can_be_merged(older: Segment, newer: Segment) -> bool:
    return (
        older.path is None
        and newer.path is None
        and older.upto == newer.after
        and len(older) < MERGE_RATIO * len(newer)
        and len(older) + len(newer) <= MOST_ROWS
    )


def _newer(segment: Segment, chunk_id: int) -> Segment:
    """The part of a segment in memory with higher ids."""
    import numpy as np

    if segment.after >= chunk_id:
        return segment
    rows = np.flatnonzero(segment.chunk_ids.all > chunk_id)
    return dataclasses.replace(Segment.merge([segment], [rows]), after=chunk_id)


def _ids(segment: Segment) -> Column:
    return segment.chunk_ids
