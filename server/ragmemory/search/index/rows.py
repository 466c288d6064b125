"""Rows over several segments: the numbers continue from one segment to the next, oldest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ragmemory.search.index.sorted_arrays import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragmemory.search.index.columns import Column
    from ragmemory.search.index.segments import Segment


class Rows:
    """The segment of each row. Immutable.

    `excluded` rows, ascending, do not count: searches and statistics are those of the others alone.
    """

    def __init__(self, segments: Sequence[Segment], excluded: NDArray[np.int64] | None = None) -> None:
        self.segments = [segment for segment in segments if len(segment)]
        self.excluded = np.empty(0, np.int64) if excluded is None else excluded

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """(s + 1,) the first row of each segment, and the number of all rows."""
        return np.cumsum([0, *map(len, self.segments)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def counted(self) -> int:
        """How many rows are not excluded."""
        return len(self) - len(self.excluded)

    def __iter__(self) -> Iterator[tuple[Segment, slice]]:
        """Each segment and its rows."""
        bounds = self.starts.tolist()
        for number, segment in enumerate(self.segments):
            yield segment, slice(bounds[number], bounds[number + 1])

    def split(self, rows: NDArray[np.int64]) -> Iterator[tuple[int, slice, NDArray[np.int64]]]:
        """For each segment with some of `rows`: its number, their slice of `rows`, and their rows inside it.

        `rows` ascend.
        """
        bounds = np.searchsorted(rows, self.starts).tolist()
        for number, (start, stop) in enumerate(pairwise(bounds)):
            if start < stop:
                yield number, slice(start, stop), rows[start:stop] - self.starts[number]

    def take(self, rows: NDArray[np.int64], column: Callable[[Segment], Column]) -> NDArray[Any]:
        """Copies of some rows of a column; `rows` ascend. Without rows, an empty float64 array."""
        parts = [column(self.segments[number]).take(own) for number, _, own in self.split(rows)]
        return np.concatenate(parts) if parts else np.empty(0)

    def total_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """(d,) the sum of the vectors of some rows, exactly; `rows` ascend. Without rows, one zero."""
        parts = [self.segments[number].total_of(own) for number, _, own in self.split(rows)]
        total: NDArray[np.float64] = np.array(parts).sum(axis=0)
        return total

    def with_ids(self, chunk_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows, ascending, of those of the chunks that are in the index; `chunk_ids` ascend."""
        found = [np.empty(0, np.int64)]
        for segment, rows in self:
            first, last = chunk_ids.searchsorted((segment.after + 1, segment.upto + 1))
            if first < last:
                at, is_known = segment.chunk_ids.find(chunk_ids[first:last])
                found.append(distinct(at[is_known]) + rows.start)
        return np.concatenate(found)
