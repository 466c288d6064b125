"""Two file descriptors as one stream: what its two forms, `polled` and `threaded`, have in common."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

from ragmcp.concurrency import background_task
from ragmcp.streams import Stream


class Pipes(Stream):
    """A stream whose reading and writing halves are closed separately. It owns the descriptors."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        super().__init__()
        self.sent = 0
        """Bytes written so far."""
        self.failure: OSError | None = None
        """Why writing failed; None while it works."""
        self.tasks: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()
        """What reads and writes in the background."""
        self._read_fd = read_fd
        self._write_fd = write_fd

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        """Read and write during the body, and close both halves at its end."""
        try:
            async with background_task(*self.tasks):
                yield self
        finally:
            self.close()

    def write(self, line: bytes) -> None:
        self._queue += (line, b"\n")
        self.queued += len(line) + 1

    def end(self) -> None:
        """Close the writing half: the other side reads what was written, then the end."""
        if self._write_fd >= 0:
            os.close(self._write_fd)
            self._write_fd = -1  # Writing fails from now on.

    def close(self) -> None:
        """Close both halves."""
        self.end()
        os.close(self._read_fd)
        self._read_fd = -1  # Another file may get this number.

    def has_reader(self) -> bool:
        """Whether what is written can be read; True if the platform cannot tell."""
        # poll() reports errors and hang-ups even for an empty set of events.
        return not _polled(self._write_fd, 0)

    def has_writer(self) -> bool:
        """Whether more than the buffered bytes can arrive; True if the platform cannot tell."""
        # Only Linux reports a socket whose other side has closed its writing half alone.
        return not _polled(self._read_fd, getattr(select, "POLLRDHUP", 0))


def _polled(fd: int, events: int) -> int:
    if sys.platform == "win32":
        return 0
    poll = select.poll()
    poll.register(fd, events)
    ended = select.POLLERR | select.POLLHUP | events
    return next((found & ended for _, found in poll.poll(0)), 0)
