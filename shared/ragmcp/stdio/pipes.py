"""Two file descriptors as one stream: through the event loop if it can poll them, else through threads."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
from contextlib import AbstractAsyncContextManager, suppress
from typing import Protocol

from ragmcp.streams import Stream

PIPE_BYTES = 2**20
F_SETPIPE_SZ = 1031


def widen(fd: int) -> None:
    """Let a pipe hold 1 MiB instead of 64 KiB, if the platform can (32 MiB take 16 ms instead of 63)."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # Not a pipe, or over the user's limit.
            fcntl.fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES)


def has_reader(write_fd: int) -> bool:
    """Whether the other end of a pipe, socket or terminal is open; True if the platform cannot tell."""
    # poll() reports errors and hang-ups even for an empty set of events.
    return not _polled(write_fd, 0)


def has_writer(read_fd: int) -> bool:
    """Whether more than the buffered bytes can arrive; True if the platform cannot tell."""
    # Only Linux reports a socket whose other side has closed its writing half alone.
    return not _polled(read_fd, getattr(select, "POLLRDHUP", 0))


def _polled(fd: int, events: int) -> int:
    if sys.platform == "win32":
        return 0
    poll = select.poll()
    poll.register(fd, events)
    ended = select.POLLERR | select.POLLHUP | events
    return next((found & ended for _, found in poll.poll(0)), 0)


class Pipes(Stream, Protocol):
    """A stream whose reading and writing halves are closed separately."""

    sent: int
    """Bytes written so far."""
    queued: int
    """Bytes that wait to be written."""
    ended: bool
    """Whether everything was read."""
    failure: OSError | None
    """Why writing failed; None while it works."""

    def end(self) -> None:
        """Close the writing half: the other side reads what was written, then the end."""


def open_pipes(read_fd: int, write_fd: int) -> AbstractAsyncContextManager[Pipes]:
    """A stream on two descriptors; it owns them and closes them at the end."""
    widen(read_fd)
    widen(write_fd)
    if _pollable(read_fd) and _pollable(write_fd):
        from ragmcp.stdio.polled import open_polled

        return open_polled(read_fd, write_fd)
    from ragmcp.stdio.threaded import open_threaded

    return open_threaded(read_fd, write_fd)


def _pollable(fd: int) -> bool:
    if sys.platform == "win32" or not _on_asyncio():
        return False
    mode = os.fstat(fd).st_mode
    # Not files, which epoll refuses; not terminals, which would become non-blocking for other programs too.
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
