"""Start a server and connect to it over its standard streams.

Source: basic/transports/stdio#backward-compatibility.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ragmcp.client.core import ANONYMOUS
from ragmcp.client.features import Client, EraName, connect
from ragmcp.client.handlers import NO_HANDLERS, Handlers
from ragmcp.concurrency import require_asyncio
from ragmcp.errors import ConnectionClosed, ServerNotStarted
from ragmcp.protocol.framing import MESSAGE_BYTES
from ragmcp.protocol.schema.base import Implementation
from ragmcp.stdio.process import ServerProcess, Stderr

# The commands of the legacy servers found so far: their next start is not probed.
_legacy: set[tuple[str, ...]] = set()


@asynccontextmanager
async def open_stdio(
    command: Sequence[str],
    *,
    client_name: str = ANONYMOUS.name,
    client_version: str = ANONYMOUS.version,
    message_bytes: int = MESSAGE_BYTES,
    stderr: Stderr | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    era: EraName | None = None,
    handlers: Handlers = NO_HANDLERS,
) -> AsyncIterator[Client]:
    """Start a server and connect to it; the server is stopped at the end of the body.

    `stderr` takes the server's, None: it shares our own; `message_bytes` is the longest message read; `era`
    None: probe the server, "modern": no probe, "legacy": handshake only; `handlers` answer the server's
    requests.
    Raises ServerNotStarted, AsyncioRequired, and what `ragmcp.client.features.connect` raises.
    """
    require_asyncio()
    if isinstance(command, str) or not command:
        words = [command] if isinstance(command, str) else command
        raise ServerNotStarted(words, "its command must be a list of words, the program first")
    key = tuple(command)
    # After a failure the next start probes again.
    known = era is None and key in _legacy
    _legacy.discard(key)
    # Some legacy servers exit at any request before `initialize`: these are started once more.
    attempts: list[EraName | None] = ["legacy"] if known else [None, "legacy"] if era is None else [era]
    for attempt in attempts:
        async with ServerProcess.start(command, stderr=stderr, env=env, cwd=cwd) as process:
            identity = Implementation(name=client_name, version=client_version)
            answered = False
            try:
                async with connect(
                    process.stream, identity, message_bytes=message_bytes, era=attempt, handlers=handlers
                ) as client:
                    answered = True
                    if era is None and not client.modern:
                        _legacy.add(key)
                    yield client
                    return
            except ConnectionClosed as error:
                if error.reason:  # The error of another connection, raised in the body.
                    raise
                if not answered and attempt is None and error.method == "server/discover":
                    continue
                reason = await process.exit_reason()
                if answered:
                    raise ConnectionClosed(error.method, reason) from None
                raise ServerNotStarted(command, reason) from None
