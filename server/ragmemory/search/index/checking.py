"""Verify all checksums of a large index in the background, a part after each search.

Every search verifies the blocks that it reads for the first time. With a million chunks each search reads new
blocks, and their verification takes a quarter of its time.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ragmemory.search.index.vectors import ALL_EXACT, HELPER

if TYPE_CHECKING:
    from ragmemory.search.index.rows import Rows

# Maximum duration of a part. The next search ends it earlier.
SECONDS = 0.005


class Checking:
    """Verifies the files of the segments, one after the other."""

    def __init__(self, rows: Rows) -> None:
        # Any column of a segment stands for its file. The searches of a small index soon verify all of it.
        self._left = [segment.chunk_ids for segment in rows.segments] if len(rows) > ALL_EXACT else []
        self._part: Future[None] | None = None
        self._is_ended = False

    def begin(self) -> None:
        """Check a part in the background."""
        if self._left:
            self._is_ended = False
            self._part = HELPER.submit(self._check_part)

    def end(self) -> None:
        """End the part that was begun. Raises DamagedFile if that found damage."""
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
