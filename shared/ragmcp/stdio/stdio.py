"""MCP over a process's standard streams: the server's half guards them, the client's half owns the process.

Not the protocol: both halves hand a stream to `server.serve` or `client.connect`. Each imports what only it
needs when it is called: a server starts without the client's code, and the other way round.
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
from ragmcp.stdio.pipes import Pipes, has_reader, has_writer, open_pipes

if TYPE_CHECKING:
    from ragmcp.client.client import Client, EraName
    from ragmcp.client.handlers import Handlers
    from ragmcp.server.server import Server

log = logging.getLogger(__name__)

WATCH_SECONDS = 0.2
# A host that has closed stdin may leave answers unread for so long: a server is to end within a second.
UNREAD_SECONDS = 0.3
# What an ordinary host does to stdout when it leaves.
_HANGUPS = frozenset({errno.EPIPE, errno.ECONNRESET, errno.EIO})


async def serve_stdio(
    server: Server,
    *,
    message_bytes: int,
    on_listening: Callable[[], Awaitable[None]] | None = None,
    on_leaving: Callable[[], None] = lambda: None,
) -> None:
    """Serve on stdin and stdout until stdin ends and its requests are answered, or the host is gone.

    `message_bytes` is the longest message read; `on_listening` runs beside once the first answer has left.
    `on_leaving` is called once nothing more is to be answered: what still runs in threads then cannot be
    cancelled, and this returns only after it.
    """
    from ragmcp.server.server import serve

    async with standard_streams(on_leaving) as stream:
        await serve(
            server, stream, message_bytes=message_bytes, on_listening=on_listening, on_leaving=on_leaving
        )


@asynccontextmanager
async def standard_streams(on_gone: Callable[[], None]) -> AsyncIterator[Pipes]:
    """Stdin and stdout as one stream, the protocol's alone. The body is cancelled when the host is gone.

    `on_gone` is called just before that.
    """
    parent = os.getppid()
    with anyio.CancelScope() as life:
        read_fd, write_fd = _guard_standard_streams()
        async with open_pipes(read_fd, write_fd) as stream:
            host = _Host(parent, read_fd, write_fd, stream)

            async def watch() -> None:
                reason = await host.gone()
                log.info("The server ends: %s", reason)
                on_gone()
                life.cancel()

            async with beside(watch):
                yield stream


def _guard_standard_streams() -> tuple[int, int]:
    """Keep stdin and stdout for the protocol alone; what others print to stdout goes to stderr from now on.

    On the level of descriptors, so that C libraries and child processes are covered too. It is never undone:
    what is printed on the way out must not reach the protocol either.
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


class _Host:
    """Looks whether the process at the other end of stdin and stdout is still there for us.

    Looks again and again, because no event tells all of it. Stdin does not end with our parent if somebody
    else inherited its other end; Linux's PR_SET_PDEATHSIG is no substitute, since it fires when the *thread*
    that started us ends. While answers wait, stdin is not read (backpressure), so its end goes unnoticed. On
    Windows neither the parent nor the other end of a pipe can be seen: stdin's end and a failed write have to
    do.
    """

    def __init__(self, parent: int, read_fd: int, write_fd: int, stream: Pipes) -> None:
        self._parent = parent
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._stream = stream
        # When it took an answer, or had nothing to take; when it did that, or could still ask.
        self._took_at = self._busy_at = anyio.current_time()
        self._sent = 0

    async def gone(self) -> str:
        """Returns the reason once no answer can reach the host any more."""
        while not (reason := self._look(anyio.current_time())):  # noqa: ASYNC110 (see above)
            await anyio.sleep(WATCH_SECONDS)
        return reason

    def _look(self, now: float) -> str:
        stream = self._stream
        if os.getppid() != self._parent:
            return "its parent process has died"
        if (failure := stream.failure) is not None:
            if failure.errno not in _HANGUPS:
                log.error("stdout cannot be written: %s", failure.strerror)
            return "stdout cannot be written"
        if not has_reader(self._write_fd):
            return "the host has closed stdout"
        has_ended = stream.ended or not has_writer(self._read_fd)
        takes, self._sent = stream.sent != self._sent, stream.sent
        if takes or not stream.queued:
            self._took_at = now
        if takes or not has_ended:
            self._busy_at = now
        if has_ended and now - self._took_at >= UNREAD_SECONDS:
            return "the host has closed stdin and does not read the answers"
        if now - self._busy_at > FINISH_SECONDS + WATCH_SECONDS:
            return "the host has closed stdin, and there is no more time for the answers"
        return ""


@asynccontextmanager
async def open_stdio(
    command: Sequence[str],
    *,
    client_name: str,
    client_version: str,
    message_bytes: int,
    stderr: Path | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    era: EraName | None = None,
    handlers: Handlers | None = None,
) -> AsyncIterator[Client]:
    """Start a server and connect to it; the end of the body ends the server.

    `stderr` is the file its log is appended to (None: our own stderr); `message_bytes` the longest message
    read; `era` None: find out, "modern": our own kind of server, no probe, "legacy": handshake only;
    `handlers` what we do for the server.
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
            if error.reason:  # Of another connection, in the body: ours does not know it yet.
                raise
            reason = await process.obituary()
            if answered:
                raise ConnectionClosed(error.method, reason) from None
            raise ServerNotStarted(command, reason) from None
