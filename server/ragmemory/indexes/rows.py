"""Rows over several segments: row numbers go on from one segment to the next, oldest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.indexes.columns import Column
    from ragmemory.indexes.segments import Segment


class Rows:
    """Where each row is. Immutable."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = [segment for segment in segments if len(segment)]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """(s + 1,) the first row of each segment, and how many rows there are in all."""
        import numpy as np

        return np.cumsum([0, *map(len, self.segments)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __iter__(self) -> Iterator[tuple[Segment, slice]]:
        """Each segment and its rows."""
        bounds = self.starts.tolist()
        for number, segment in enumerate(self.segments):
            yield segment, slice(bounds[number], bounds[number + 1])

    def split(self, rows: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """For each segment that holds some of `rows`: its number, which of `rows`, and their rows in it."""
        import numpy as np

        numbers = np.searchsorted(self.starts, rows, side="right") - 1
        for number in np.unique(numbers).tolist():
            at = np.flatnonzero(numbers == number)
            yield number, at, rows[at] - self.starts[number]

    def take(self, rows: NDArray[np.int64], column: Callable[[Segment], Column]) -> NDArray[Any]:
        """Copies of some rows of a column, in the order asked; of no rows, an empty array of float64."""
        import numpy as np

        taken: NDArray[Any] | None = None
        for number, at, own in self.split(rows):
            part = column(self.segments[number]).take(own)
            if taken is None:
                taken = np.empty((len(rows), *part.shape[1:]), part.dtype)
            taken[at] = part
        return np.empty(0) if taken is None else taken

    def with_ids(self, chunk_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows, ascending, of those chunks that are there."""
        import numpy as np

        found = [np.empty(0, np.int64)]
        for segment, rows in self:
            known = segment.chunk_ids.all
            at = np.minimum(np.searchsorted(known, chunk_ids), len(known) - 1)
            found.append(np.unique(at[known[at] == chunk_ids]) + rows.start)
        return np.concatenate(found)
