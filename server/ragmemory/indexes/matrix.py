"""A growing array of rows, part of it mapped from a file. Not a searcher: see `vectors`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray


class Matrix:
    """Rows of one width: a mapped part that is only read, and a recent one with room to grow."""

    def __init__(self, mapped: NDArray[Any]) -> None:
        self.mapped = mapped
        self._room = mapped[:0].copy()
        self._used = 0

    @classmethod
    def load(cls, path: Path) -> Matrix:
        """Map a saved matrix. Raises OSError, ValueError."""
        import numpy as np

        return cls(np.load(path, mmap_mode="r"))

    def save(self, path: Path) -> None:
        """Write all rows as one .npy file. Raises OSError."""
        import numpy as np

        shape = (len(self), *self.mapped.shape[1:])
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(
                file, {**np.lib.format.header_data_from_array_1_0(self._room), "shape": shape}
            )
            for part in self.parts:
                file.write(np.ascontiguousarray(part).data)

    @property
    def parts(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.mapped, self._room[: self._used]

    def __len__(self) -> int:
        return len(self.mapped) + self._used

    def add(self, rows: NDArray[Any]) -> None:
        """Append. Room doubles, so that one row at a time costs about one copy of each row."""
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

        mapped, recent = self.parts
        if not len(recent):
            return mapped[rows]
        taken = np.empty((len(rows), *recent.shape[1:]), recent.dtype)
        old = rows < len(mapped)
        taken[old] = mapped[rows[old]]
        taken[~old] = recent[rows[~old] - len(mapped)]
        return taken

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Drop all other rows."""
        self.__init__(self.take(rows))  # type: ignore[misc]
