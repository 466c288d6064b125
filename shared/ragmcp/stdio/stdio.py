"""MCP over standard streams: the server's half reserves its own, the client's half starts a server.

Both halves pass a stream to `server.serve` or `client.connect`. Each imports its dependencies when it is
called, so that a server starts without the client's code and a client without the server's.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from ragmcp.concurrency import beside
from ragmcp.errors import ConnectionClosed, ServerNotStarted
from ragmcp.peer import FINISH_SECONDS
from ragmcp.protocol.schema.base import Implementation
from ragmcp.stdio.opening import open_pipes
from ragmcp.stdio.pipes import Pipes

if TYPE_CHECKING:
    from ragmcp.client.client import Client, EraName
    from ragmcp.client.handlers import Handlers
    from ragmcp.server.server import Server
    from ragmcp.stdio.process import Stderr

log = logging.getLogger(__name__)

WATCH_SECONDS = 0.2
# How long a host that has closed stdin may leave answers unread. The server must exit within a second.
UNREAD_SECONDS = 0.3
# Errors of stdout after the host has exited normally.
_HANGUPS = frozenset({errno.EPIPE, errno.ECONNRESET, errno.EIO})


async def serve_stdio(
    server: Server,
    *,
    message_bytes: int,
    on_listening: Callable[[], Awaitable[None]] | None = None,
    on_leaving: Callable[[], None] = lambda: None,
) -> None:
    """Serve on stdin and stdout until stdin ends and its requests are answered, or the host disappears.

    `message_bytes` is the longest message read; `on_listening` runs in the background after the first answer.
    `on_leaving` is called after the last answer, before this waits for threads that cannot be cancelled.
    """
    from ragmcp.server.server import serve

    async with standard_streams(on_leaving) as stream:
        await serve(
            server, stream, message_bytes=message_bytes, on_listening=on_listening, on_leaving=on_leaving
        )


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

            async with beside(watch):
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


@asynccontextmanager
async def open_stdio(
    command: Sequence[str],
    *,
    client_name: str,
    client_version: str,
    message_bytes: int,
    stderr: Stderr | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    era: EraName | None = None,
    handlers: Handlers | None = None,
) -> AsyncIterator[Client]:
    """Start a server and connect to it; the server is stopped at the end of the body.

    `stderr` None: it shares our own; `message_bytes` is the longest message read; `era` None: probe the
    server, "modern": no probe, "legacy": handshake only; `handlers` answer the server's requests.
    Raises ServerNotStarted, and what `ragmcp.client.client.connect` raises.
    """
    from ragmcp.client.client import connect
    from ragmcp.client.handlers import NO_HANDLERS
    from ragmcp.stdio.process import ServerProcess

    async with ServerProcess.start(command, stderr=stderr, env=env, cwd=cwd) as process:
        identity = Implementation(name=client_name, version=client_version)
        answered = False
        try:
            async with connect(
                process.stream,
                identity,
                message_bytes=message_bytes,
                era=era,
                handlers=handlers or NO_HANDLERS,
            ) as client:
                answered = True
                yield client
        except ConnectionClosed as error:
            if error.reason:  # The error of another connection, raised in the body.
                raise
            reason = await process.exit_reason()
            if answered:
                raise ConnectionClosed(error.method, reason) from None
            raise ServerNotStarted(command, reason) from None
