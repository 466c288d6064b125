"""An appendable array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


class GrowingArray:
    """Rows of one shape, with spare capacity."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self._buffer = rows
        self._used = len(rows)

    def __len__(self) -> int:
        return self._used

    @property
    def rows(self) -> NDArray[Any]:
        """All rows so far: a view that later appends do not change."""
        return self._buffer[: self._used]

    def append(self, rows: NDArray[Any]) -> None:
        """Capacity doubles, so that appending one row at a time copies each row about once."""
        import numpy as np

        need = self._used + len(rows)
        if need > len(self._buffer):
            buffer = np.empty((max(need, 2 * len(self._buffer)), *self._buffer.shape[1:]), self._buffer.dtype)
            buffer[: self._used] = self._buffer[: self._used]
            self._buffer = buffer
        self._buffer[self._used : need] = rows
        self._used = need
