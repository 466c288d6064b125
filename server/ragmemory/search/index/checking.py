"""Checks all files of a large index, a part after each search, so that later searches need not check them.

Every search checks what it reads. That suffices for its result, but takes a quarter of its time: with a
million chunks, each question comes upon blocks that none before it has read.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ragmemory.search.index.vectors import ALL_EXACT, HELPER

if TYPE_CHECKING:
    from ragmemory.search.index.rows import Rows

# The longest part. Most end earlier: with the next search.
SECONDS = 0.005


class Checking:
    """The files of one index that are not yet checked as a whole. A damaged one is reported by `end`."""

    def __init__(self, rows: Rows) -> None:
        # A small index is checked soon enough by its searches, and searched where nothing may wait.
        self._left = list(rows.segments) if len(rows) > ALL_EXACT else []
        self._part: Future[None] | None = None
        self._is_ended = False

    def begin(self) -> None:
        """Check a part in the background."""
        if self._left:
            self._is_ended = False
            self._part = HELPER.submit(self._check_part)

    def end(self) -> None:
        """End the part that was begun. Raises DamagedFile."""
        self._is_ended = True
        if self._part:
            self._part.result()

    def _check_part(self) -> None:
        until = time.monotonic() + SECONDS
        while self._left:
            if not self._left[-1].check_more():
                self._left.pop()
            elif self._is_ended or time.monotonic() > until:
                return
