"""One immutable inverted index in CSR form: sorted terms, for each the rows that hold it, and how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragmemory.indexes.matrix import mapped
from ragmemory.indexes.terms import TERM_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Segment:
    terms: NDArray[
        np.bytes_
    ]  # (t,) fixed width, sorted: looked up by np.searchsorted straight from a mapped file
    ends: NDArray[
        np.int64
    ]  # (t,) where the postings of a term end; they begin where those of the one before end
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
    def build(cls, counted: Sequence[Mapping[str, float]], first_row: int) -> Segment:
        """One row for each text's term frequencies."""
        import numpy as np

        numbers: dict[str, int] = {}
        for counts in counted:
            for term in counts:
                numbers.setdefault(term, len(numbers))
        sizes = [len(counts) for counts in counted]
        rows = np.repeat(np.arange(first_row, first_row + len(counted), dtype=np.int32), sizes)
        terms = np.fromiter((numbers[term] for counts in counted for term in counts), np.int64, len(rows))
        frequencies = np.fromiter((f for counts in counted for f in counts.values()), np.float32, len(rows))
        names = np.array([term.encode()[:TERM_BYTES] for term in numbers], f"S{TERM_BYTES}")
        return cls._sorted(names, terms, rows, frequencies)

    @classmethod
    def merge(cls, older: Segment, newer: Segment) -> Segment:
        """`newer` holds the later rows."""
        import numpy as np

        return cls._sorted(
            np.concatenate([older.terms, newer.terms]),
            np.concatenate([older._term_of_each(), len(older.terms) + newer._term_of_each()]),
            np.concatenate([older.rows, newer.rows]),
            np.concatenate([older.frequencies, newer.frequencies]),
        )

    def kept(self, rows: NDArray[np.int64], total: int) -> Segment:
        """The same with `rows` alone, numbered anew; `total` rows there were."""
        import numpy as np

        numbers = np.full(total, -1, np.int32)
        numbers[rows] = np.arange(len(rows), dtype=np.int32)
        kept = numbers[self.rows] >= 0
        return self._sorted(
            self.terms, self._term_of_each()[kept], numbers[self.rows[kept]], self.frequencies[kept]
        )

    @classmethod
    def _sorted(
        cls,
        names: NDArray[np.bytes_],
        terms: NDArray[np.int64],
        rows: NDArray[np.int32],
        frequencies: NDArray[np.float32],
    ) -> Segment:
        """Postings in any order of terms, with ascending rows; `terms` number `names`, which may repeat."""
        import numpy as np

        unique, number = np.unique(names, return_inverse=True)
        terms = number[terms]
        order = np.argsort(terms, kind="stable")
        counts = np.bincount(terms, minlength=len(unique))
        used = counts > 0
        return cls(unique[used], np.cumsum(counts[used]), rows[order], frequencies[order])

    def __len__(self) -> int:
        return len(self.rows)

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The rows that hold `term`, ascending, and how often each does."""
        import numpy as np

        name = np.bytes_(term.encode()[:TERM_BYTES])
        at = int(np.searchsorted(self.terms, name))
        known = at < len(self.terms) and self.terms[at] == name
        where = slice(self.ends[at - 1] if at else 0, self.ends[at]) if known else slice(0)
        return self.rows[where], self.frequencies[where]

    def _term_of_each(self) -> NDArray[np.int64]:
        import numpy as np

        return np.repeat(np.arange(len(self.terms)), np.diff(self.ends, prepend=0))
