"""A clock that pauses while the user is prompted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from math import inf

import anyio


class Clock:
    """Seconds that do not pass while the user is prompted, and deadlines on this clock."""

    def __init__(self, outer: Clock | None = None) -> None:
        """`outer` pauses with this one."""
        self._outer = outer
        self._ends: dict[anyio.CancelScope, float] = {}
        self._questions = 0
        self._asked_at = 0.0
        self._asked = 0.0  # seconds of all earlier prompts

    def now(self) -> float:
        return (self._asked_at if self._questions else anyio.current_time()) - self._asked

    @contextmanager
    def limited(self, seconds: float) -> Iterator[anyio.CancelScope]:
        """Cancel the body after `seconds`."""
        with self.until(self.now() + seconds) as scope:
            yield scope

    @contextmanager
    def until(self, end: float) -> Iterator[anyio.CancelScope]:
        """Cancel the body when `now` is `end`."""
        with anyio.CancelScope() as scope:
            self._ends[scope] = end
            self._set_deadlines()
            try:
                yield scope
            finally:
                del self._ends[scope]

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Pause the clock during the body."""
        if not self._questions:
            self._asked_at = anyio.current_time()
        self._questions += 1
        self._set_deadlines()
        try:
            with self._outer.stopped() if self._outer else nullcontext():
                yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._asked += anyio.current_time() - self._asked_at
            self._set_deadlines()

    def _set_deadlines(self) -> None:
        for scope, end in self._ends.items():
            scope.deadline = inf if self._questions else end + self._asked
