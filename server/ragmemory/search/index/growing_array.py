"""A growing array of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Matrix:
    """Rows of one shape, with room to grow."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self._room = rows
        self._used = len(rows)

    def __len__(self) -> int:
        return self._used

    @property
    def recent(self) -> NDArray[Any]:
        """All rows: a view that further rows do not change."""
        return self._room[: self._used]

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
