"""Ever longer pauses between tries. Pure."""

from __future__ import annotations


class Backoff:
    """The first try follows at once; then `first` seconds, doubled up to `longest`."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._pause = 0.0

    def next(self) -> float:
        """How long to wait before this try, in seconds."""
        pause = self._pause
        self._pause = min(max(self._first, 2 * pause), self._longest)
        return pause

    def reset(self) -> None:
        """Start from the first pause again, after a success."""
        self._pause = 0.0
