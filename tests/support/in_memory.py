"""A client and a server in one process, without a pipe."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ragmcp.client.features import Client, EraName, connect
from ragmcp.client.handlers import NO_HANDLERS, Handlers
from ragmcp.concurrency import background_task
from ragmcp.protocol.schema.base import Implementation
from ragmcp.server.core import Server, serve
from ragmcp.streams import Stream

# Both sides are one process, so no limit is needed; this is 1 GiB.
MESSAGE_BYTES = 2**30


class MemoryStream(Stream):
    """One end of a pair."""

    def __init__(self) -> None:
        super().__init__()
        self.other = self

    def write(self, line: bytes) -> None:
        self.other.feed(line + b"\n")

    def close(self) -> None:
        """End what the other side receives."""
        self.other.feed_end()


def memory_pair() -> tuple[MemoryStream, MemoryStream]:
    """Two connected streams."""
    here, there = MemoryStream(), MemoryStream()
    here.other, there.other = there, here
    return here, there


@asynccontextmanager
async def open_memory(
    server: Server,
    *,
    era: EraName | None = None,
    message_bytes: int = MESSAGE_BYTES,
    handlers: Handlers = NO_HANDLERS,
) -> AsyncIterator[Client]:
    """A client of `server`, which runs in the background while the body runs."""
    here, there = memory_pair()

    async def answer() -> None:
        await serve(server, there, message_bytes=message_bytes)
        there.close()

    async with background_task(answer):
        try:
            client = Implementation(name="ragmcp", version="0")
            async with connect(
                here, client, message_bytes=message_bytes, era=era, handlers=handlers
            ) as connected:
                yield connected
        finally:
            here.close()
