"""One immutable inverted index in CSR form: sorted terms, for each the rows that hold it, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragmemory.indexes.matrix import mapped
from ragmemory.indexes.terms import hashes

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.indexes.lexicon import Terms


@dataclass(frozen=True)
class Segment:
    terms: NDArray[np.uint64]  # (t,) hashes, ascending: looked up straight from a mapped file
    ends: NDArray[np.int64]  # (t,) where the postings of a term end, and those of the next begin
    rows: NDArray[np.int32]  # (p,) ascending within a term
    frequencies: NDArray[np.float32]  # (p,) how often, weighted

    @classmethod
    def load(cls, folder: Path) -> Segment:
        """Raises OSError, ValueError."""

        return cls(*(mapped(folder / f"{name}.npy") for name in cls.__dataclass_fields__))

    def save(self, folder: Path) -> None:
        """Raises OSError."""
        import numpy as np

        for name in self.__dataclass_fields__:
            np.save(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def empty(cls) -> Segment:
        import numpy as np

        return cls(
            np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)
        )

    @classmethod
    def build(cls, terms: Terms, weights: NDArray[np.float32], first_row: int) -> Segment:
        """One row for each text; `weights` (t,) says how much each occurrence counts."""
        import numpy as np

        if not len(terms.numbers):
            return cls.empty()
        used = np.flatnonzero(np.bincount(terms.numbers, minlength=len(terms.names)))
        names, places = np.unique(terms.names[used], return_inverse=True)
        place_of = np.empty(len(terms.names), np.int64)
        place_of[used] = places
        # Term and row as one number, so that all are counted by one sort.
        keys = place_of[terms.numbers] * terms.texts + terms.owners
        order = np.argsort(keys)
        keys = keys[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        frequencies = np.add.reduceat(weights[order], starts)
        places, rows = np.divmod(keys[starts], terms.texts)
        ends = np.cumsum(np.bincount(places, minlength=len(names)))
        return cls(names, ends, (first_row + rows).astype(np.int32), frequencies)

    @classmethod
    def merge(cls, older: Segment, newer: Segment) -> Segment:
        """`newer` holds the later rows, which come last within each term."""
        import numpy as np

        terms = np.union1d(older.terms, newer.terms)
        counts = np.zeros((2, len(terms)), np.int64)
        for count, segment in zip(counts, (older, newer), strict=True):
            count[np.searchsorted(terms, segment.terms)] = segment._counts()
        # Where the postings of each term of each segment go.
        starts = np.cumsum(counts.T).reshape(-1, 2).T - counts
        rows = np.empty(counts.sum(), np.int32)
        frequencies = np.empty(len(rows), np.float32)
        for count, start, segment in zip(counts, starts, (older, newer), strict=True):
            places = np.arange(len(segment)) + np.repeat(start - (np.cumsum(count) - count), count)
            rows[places] = segment.rows
            frequencies[places] = segment.frequencies
        return cls(terms, np.cumsum(counts.sum(axis=0)), rows, frequencies)

    def kept(self, rows: NDArray[np.int64], total: int) -> Segment:
        """The same with `rows` alone, which ascend, numbered anew; `total` rows there were."""
        import numpy as np

        numbers = np.full(total, -1, np.int32)
        numbers[rows] = np.arange(len(rows), dtype=np.int32)
        kept = numbers[self.rows] >= 0
        terms = np.repeat(np.arange(len(self.terms)), self._counts())
        counts = np.bincount(terms[kept], minlength=len(self.terms))
        used = counts > 0
        return Segment(
            self.terms[used], np.cumsum(counts[used]), numbers[self.rows[kept]], self.frequencies[kept]
        )

    def __len__(self) -> int:
        return len(self.rows)

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The rows that hold `term`, ascending, and how often each does."""
        import numpy as np

        [name] = hashes([term])
        at = int(np.searchsorted(self.terms, name))
        known = at < len(self.terms) and self.terms[at] == name
        where = slice(self.ends[at - 1] if at else 0, self.ends[at]) if known else slice(0)
        return self.rows[where], self.frequencies[where]

    def _counts(self) -> NDArray[np.int64]:
        """(t,) how many rows hold each term."""
        import numpy as np

        return np.diff(self.ends, prepend=0)
