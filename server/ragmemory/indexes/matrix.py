"""A growing array of rows, the older part of it mapped from a file. Not a searcher: see `vectors`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray


class Matrix:
    """Rows of one shape: a mapped part that is only read, and a recent one with room to grow."""

    def __init__(self, mapped: NDArray[Any]) -> None:
        self.mapped = mapped
        self._room = mapped[:0].copy()
        self._used = 0

    @classmethod
    def load(cls, path: Path) -> Matrix:
        """Map a saved matrix. Raises OSError, ValueError."""
        return cls(mapped(path))

    def save(self, path: Path) -> None:
        """Write all rows as one .npy file, without a copy of them in memory. Raises OSError."""
        from numpy.lib import format as npy

        header = npy.header_data_from_array_1_0(self._room) | {"shape": (len(self), *self._room.shape[1:])}
        with path.open("wb") as file:
            npy.write_array_header_1_0(file, header)
            for part in self.parts:
                part.tofile(file)

    @property
    def parts(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.mapped, self.recent

    @property
    def recent(self) -> NDArray[Any]:
        """The rows that were added: a view that further rows do not change."""
        return self._room[: self._used]

    def blocks(self, rows: int) -> Iterator[tuple[slice, NDArray[Any]]]:
        """All rows, at most so many at a time, and which they are."""
        before = 0
        for part in self.parts:
            for start in range(0, len(part), rows):
                block = part[start : start + rows]
                yield slice(before + start, before + start + len(block)), block
            before += len(part)

    def __len__(self) -> int:
        return len(self.mapped) + self._used

    def add(self, rows: NDArray[Any]) -> None:
        """Append. Room doubles, so that adding one row at a time copies each row about once."""
        import numpy as np

        need = self._used + len(rows)
        if need > len(self._room):
            room = np.empty((max(need, 2 * len(self._room)), *self._room.shape[1:]), self._room.dtype)
            room[: self._used] = self._room[: self._used]
            self._room = room
        self._room[self._used : need] = rows
        self._used = need

    def take(self, rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Copies of some rows, in the order asked."""
        import numpy as np

        older, recent = self.parts
        if not len(recent):
            return older.take(rows, axis=0)
        taken = np.empty((len(rows), *recent.shape[1:]), recent.dtype)
        is_old = rows < len(older)
        taken[is_old] = older[rows[is_old]]
        taken[~is_old] = recent[rows[~is_old] - len(older)]
        return taken

    def kept(self, rows: NDArray[np.integer[Any]]) -> Matrix:
        """One with these rows alone, in memory."""
        return Matrix(self.take(rows))


def mapped(path: Path) -> NDArray[Any]:
    """An .npy file as an array that is read when it is used. Raises OSError, ValueError."""
    import numpy as np

    # A plain view of the map: every slice of a np.memmap costs 5 µs more, and a search makes a hundred.
    return np.asarray(np.load(path, mmap_mode="r"))
