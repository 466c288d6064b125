"""Exponential backoff: growing pauses between attempts. Pure."""

from __future__ import annotations

from msgspec import Struct


class Backoff(Struct):
    """No pause before the first attempt; then `first` seconds, doubled each time up to `longest`."""

    first: float
    longest: float
    _pause: float = 0.0

    def next(self) -> float:
        """The pause before the next attempt, in seconds."""
        pause = self._pause
        self._pause = min(max(self.first, 2 * pause), self.longest)
        return pause

    def reset(self) -> None:
        """Start again without a pause, after a success."""
        self._pause = 0.0
