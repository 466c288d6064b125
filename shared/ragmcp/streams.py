"""What a peer needs of a transport: bytes in, lines out; and the two queues that most transports keep.

A task of the transport fills `IncomingBuffer` and empties `OutgoingQueue`.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

import anyio

from ragmcp.concurrency import Pulse

# Writers wait once this much is queued: enough to keep a pipe busy, little enough to hold in memory.
HIGH_WATER_BYTES = 2**20


class Stream(Protocol):
    """Bytes in, lines out."""

    async def receive(self) -> bytes:
        """The next bytes; b"" when no more will come. One receiver at a time; cancelling it loses nothing."""

    def write(self, line: bytes) -> None:
        """Queue one line (without its newline) for the next flush."""

    def flush(self) -> None:
        """Send what is queued, at once as far as that goes without waiting."""

    def flush_soon(self) -> None:
        """Send what is queued, together with what others queue in this turn of the event loop."""

    async def drain(self, below: int = HIGH_WATER_BYTES) -> None:
        """Wait while more than `below` bytes are queued."""


class IncomingBuffer:
    """Bytes that have arrived and wait for their one receiver."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.ended = False
        """Whether no more will arrive."""
        self._arrived = anyio.Event()
        self._taken = Pulse()

    def feed(self, data: bytes | bytearray) -> None:
        """Add bytes."""
        self.received += data
        self._arrived.set()

    def feed_line(self, message: bytes | bytearray) -> None:
        """Add one JSON message. Line ends in JSON stand between tokens only, where a space will do."""
        self.feed(message.replace(b"\n", b" ") + b"\n")

    def feed_end(self) -> None:
        """No more will arrive."""
        self.ended = True
        self._arrived.set()

    async def receive(self) -> bytes:
        """As `Stream.receive`."""
        while not self.received and not self.ended:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        data, self.received = bytes(self.received), bytearray()
        self._taken.set()
        return data

    async def wait_until_taken(self) -> None:
        """Wait while bytes are left for the receiver."""
        while self.received:
            await self._taken.wait()


class OutgoingQueue:
    """Lines that wait for the task that sends them; writers wait while too many bytes are queued."""

    def __init__(self) -> None:
        self.queued = 0
        """Bytes not sent yet."""
        self._queue: deque[bytes | memoryview] = deque()
        self._flushed = anyio.Event()
        self._drained = Pulse()
        self._abandoned = False

    def write(self, line: bytes) -> None:
        """As `Stream.write`."""
        self._queue += (line, b"\n")
        self.queued += len(line) + 1

    def put(self, message: bytes) -> None:
        """Queue a message as it is, where it needs no newline."""
        self._queue.append(message)
        self.queued += len(message)

    def flush(self) -> None:
        """As `Stream.flush`."""
        self._flushed.set()

    def flush_soon(self) -> None:
        """As `Stream.flush_soon`."""
        self._flushed.set()

    async def drain(self, below: int = HIGH_WATER_BYTES) -> None:
        """As `Stream.drain`."""
        while self.queued > below and not self._abandoned:
            await self._drained.wait()

    async def take(self) -> deque[bytes | memoryview]:
        """Wait for something that was flushed; gives all of it. The caller ends with `mark_sent`."""
        while True:
            await self._flushed.wait()
            self._flushed = anyio.Event()
            if self._queue:
                taken, self._queue = self._queue, deque()
                return taken

    def mark_sent(self, size: int) -> None:
        """Count `size` bytes as sent, or as never to be sent."""
        self.queued -= size
        self._drained.set()

    def abandon(self) -> None:
        """Drop what is queued, and let writers wait no more: the other side is gone."""
        self._abandoned = True
        self._queue.clear()
        self.mark_sent(self.queued)


class QueuedStream(IncomingBuffer, OutgoingQueue):
    """A `Stream` between two queues, which tasks of the transport fill and empty."""

    def __init__(self) -> None:
        IncomingBuffer.__init__(self)
        OutgoingQueue.__init__(self)
