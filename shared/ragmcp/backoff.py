"""Exponential backoff: growing pauses between attempts. Pure."""

from __future__ import annotations


class Backoff:
    """No pause before the first attempt; then `first` seconds, doubled each time up to `longest`."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._pause = 0.0

    def next(self) -> float:
        """The pause before the next attempt, in seconds."""
        pause = self._pause
        self._pause = min(max(self._first, 2 * pause), self._longest)
        return pause

    def reset(self) -> None:
        """Start again without a pause, after a success."""
        self._pause = 0.0
