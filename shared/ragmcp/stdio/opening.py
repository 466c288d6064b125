"""Open two file descriptors as one stream: through the event loop if it can poll them, or through threads."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import AbstractAsyncContextManager, suppress

from ragmcp.stdio.pipes import Pipes

PIPE_BYTES = 2**20
F_SETPIPE_SZ = 1031


def open_pipes(read_fd: int, write_fd: int) -> AbstractAsyncContextManager[Pipes]:
    """A stream on two descriptors; it owns them and closes them at the end."""
    widen(read_fd)
    widen(write_fd)
    if _pollable(read_fd) and _pollable(write_fd):
        from ragmcp.stdio.polled import PolledPipes

        return PolledPipes(read_fd, write_fd).opened()
    from ragmcp.stdio.threaded import ThreadedPipes

    return ThreadedPipes(read_fd, write_fd).opened()


def widen(fd: int) -> None:
    """Let a pipe hold 1 MiB instead of 64 KiB, if the platform can (32 MiB take 16 ms instead of 63)."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # Not a pipe, or over the user's limit.
            fcntl.fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES)


def _pollable(fd: int) -> bool:
    if sys.platform == "win32":
        return False
    mode = os.fstat(fd).st_mode
    # Epoll refuses files; a terminal would become non-blocking for other programs too.
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
