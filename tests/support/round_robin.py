"""A proxy that gives each request to the next server, and to another one if that is away.

Requests of the stateless revision take turns, unlike with `deploy/Caddyfile`, so that all servers are used.
All others go to the first server that runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count

import anyio
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream

from ragmcp.concurrency import background_task

HEAD_BYTES = 1 << 16
STATELESS = b"\r\nmcp-protocol-version: 2026-07-28\r\n"


@asynccontextmanager
async def round_robin(ports: Sequence[int]) -> AsyncIterator[str]:
    """Serve for the servers at these ports of loopback; yields the URL of the root."""
    turns = count()

    async def serve(client: ByteStream) -> None:
        async with client:
            with suppress(OSError, anyio.IncompleteRead):  # No server runs; the client sent nothing.
                await pass_on(client)

    async def pass_on(client: ByteStream) -> None:
        buffered = BufferedByteReceiveStream(client)
        head = await buffered.receive_until(b"\r\n\r\n", HEAD_BYTES)
        first = next(turns) % len(ports) if STATELESS in head.lower() + b"\r\n" else 0
        async with await connected([*ports[first:], *ports[:first]]) as server:
            # One request for each connection: the next one may be for another server.
            await server.send(head + b"\r\nconnection: close\r\n\r\n" + buffered.buffer)
            async with background_task(lambda: copy(client, server)):
                await copy(server, client)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, background_task(lambda: listener.serve(serve)):
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"


async def connected(ports: Sequence[int]) -> ByteStream:
    """A connection to the first server that accepts one."""
    for port in ports[:-1]:
        try:
            return await anyio.connect_tcp("127.0.0.1", port)
        except OSError:
            continue
    return await anyio.connect_tcp("127.0.0.1", ports[-1])


async def copy(source: ByteStream, target: ByteStream) -> None:
    """Until one of them ends."""
    try:
        async for part in source:
            await target.send(part)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return
