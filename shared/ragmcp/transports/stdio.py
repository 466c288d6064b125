"""MCP over a process's standard streams: the server's half guards them, the client's half owns the process.

Not the protocol: both halves hand a stream to `server.serve` or `client.connect`. Each imports what only it
needs when it is called: a server starts without the client's code, and the other way round.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from ragmcp.concurrency import beside
from ragmcp.errors import ConnectionClosed, ServerNotStarted
from ragmcp.schema import Implementation
from ragmcp.transports.pipes import Pipes, open_pipes

if TYPE_CHECKING:
    from ragmcp.client import Client, EraName
    from ragmcp.handlers import Handlers
    from ragmcp.server import Server

PARENT_WATCH_SECONDS = 0.5


async def serve_stdio(
    server: Server, *, message_bytes: int, on_listening: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Serve on stdin and stdout until stdin ends or the parent process has died.

    `message_bytes` is the longest message read; `on_listening` runs beside once the first answer has left.
    """
    from ragmcp.server import serve

    async with standard_streams() as stream:
        await serve(server, stream, message_bytes=message_bytes, on_listening=on_listening)


@asynccontextmanager
async def standard_streams() -> AsyncIterator[Pipes]:
    """Stdin and stdout as one stream, the protocol's alone. The body ends when our parent has died."""
    parent = os.getppid()
    with anyio.CancelScope() as life:

        async def watch() -> None:
            await _parent_death(parent)
            life.cancel()

        async with open_pipes(*_guard_standard_streams()) as stream, beside(watch):
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


async def _parent_death(parent: int) -> None:
    """Returns once `parent` is no longer our parent.

    Stdin does not end with the parent if somebody else inherited its other end. Linux's PR_SET_PDEATHSIG is
    no substitute: it fires when the *thread* that started us ends. On Windows the id never changes, and
    stdin has to do.
    """
    while os.getppid() == parent:  # noqa: ASYNC110 (nothing tells us; it has to be looked at)
        await anyio.sleep(PARENT_WATCH_SECONDS)


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
    Raises ServerNotStarted, and what `ragmcp.client.connect` raises.
    """
    from ragmcp.client import connect
    from ragmcp.handlers import NO_HANDLERS
    from ragmcp.transports.process import ServerProcess

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
