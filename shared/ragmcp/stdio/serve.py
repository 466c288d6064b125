"""Serve on our own standard streams, which are reserved for the protocol, until the host disappears."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from ragmcp.concurrency import background_task, require_asyncio
from ragmcp.peer import FINISH_SECONDS
from ragmcp.protocol.framing import MESSAGE_BYTES
from ragmcp.server.core import Server, serve
from ragmcp.stdio.opening import open_pipes
from ragmcp.stdio.pipes import Pipes

log = logging.getLogger(__name__)

WATCH_SECONDS = 0.2
# How long a host that has closed stdin may leave answers unread. The server must exit within a second.
UNREAD_SECONDS = 0.3
# Errors of stdout after the host has exited normally.
_HANGUPS = frozenset({errno.EPIPE, errno.ECONNRESET, errno.EIO})


async def serve_stdio(
    server: Server, *, message_bytes: int = MESSAGE_BYTES, on_gone: Callable[[], None] = lambda: None
) -> None:
    """Serve on stdin and stdout until stdin ends and its requests are answered, or the host disappears.

    `message_bytes` is the longest message read; `on_gone` is called when the host has disappeared, before
    this waits for threads that cannot be cancelled. Raises AsyncioRequired.
    """
    require_asyncio()
    async with standard_streams(on_gone) as stream:
        await serve(server, stream, message_bytes=message_bytes)


@asynccontextmanager
async def standard_streams(on_gone: Callable[[], None]) -> AsyncIterator[Pipes]:
    """Stdin and stdout as one stream, reserved for the protocol.

    When the host has disappeared, `on_gone` is called and the body cancelled.
    """
    parent = os.getppid()
    with anyio.CancelScope() as life:
        async with open_pipes(*_guard_standard_streams()) as stream:

            async def watch() -> None:
                reason = await _host_gone(parent, stream)
                log.info("The server exits: %s", reason)
                on_gone()
                life.cancel()

            async with background_task(watch):
                yield stream


def _guard_standard_streams() -> tuple[int, int]:
    """Reserve stdin and stdout for the protocol; other output to stdout goes to stderr from now on.

    This redirects the descriptors, so it covers C libraries and child processes too. It is never undone:
    output during shutdown must not reach the protocol either.
    """
    sys.stdout.flush()
    read_fd, write_fd = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed.
        os.dup2(null, 1)
    os.close(null)
    return read_fd, write_fd


async def _host_gone(parent: int, stream: Pipes) -> str:
    """Wait until no answer can reach the host, which is at the other end of `stream`; returns the reason.

    It polls, because no event covers all cases. Stdin does not end with our parent if another process
    inherited its other end; Linux's PR_SET_PDEATHSIG is no substitute, since it fires when the *thread* that
    started us ends. While answers wait, stdin is not read (backpressure), so its end goes unnoticed.
    Windows shows neither the parent nor the other end of a pipe: there the end of stdin and a failed write
    are the only signs.
    """
    # When the host last read an answer or had none to read; when it last did that or could send requests.
    took_at = busy_at = anyio.current_time()
    sent = 0
    while os.getppid() == parent:
        if stream.failure is not None:
            if stream.failure.errno not in _HANGUPS:
                log.error("stdout cannot be written: %s", stream.failure.strerror)
            return "stdout cannot be written"
        if not stream.has_reader():
            return "the host has closed stdout"
        now = anyio.current_time()
        has_ended = stream.ended or not stream.has_writer()
        takes, sent = stream.sent != sent, stream.sent
        if takes or not stream.queued:
            took_at = now
        if takes or not has_ended:
            busy_at = now
        if has_ended and now - took_at >= UNREAD_SECONDS:
            return "the host has closed stdin and does not read the answers"
        if now - busy_at > FINISH_SECONDS + WATCH_SECONDS:
            return "the host has closed stdin, and there is no more time for the answers"
        await anyio.sleep(WATCH_SECONDS)
    return "its parent process has died"
