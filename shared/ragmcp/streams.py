"""What a peer needs of a transport: bytes in, lines out. Also the two queues of most transports.

Tasks of a transport fill `IncomingBuffer` and empty `OutgoingQueue`.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

import anyio

from ragmcp.concurrency import Pulse

# Writers wait when this much is queued: enough to keep a pipe busy, and little memory.
HIGH_WATER_BYTES = 2**20
# Transports that read events wait when the receiver has this much to take.
MOST_UNTAKEN_BYTES = 2**16


class Stream(Protocol):
    """Bytes in, lines out."""

    async def receive(self) -> bytes:
        """The next bytes; b"" at the end. One receiver at a time; cancelling it loses nothing."""

    def write(self, line: bytes) -> None:
        """Queue one line (without its newline) for the next flush."""

    def flush(self) -> None:
        """Send queued lines now, as many as possible without waiting."""

    def flush_soon(self) -> None:
        """Send queued lines, together with those that others queue in this turn of the event loop."""

    async def drain(self, below: int = HIGH_WATER_BYTES) -> None:
        """Wait while more than `below` bytes are queued."""


class IncomingBuffer:
    """Bytes that have arrived and wait for the receiver."""

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
        """Add one JSON message. Line ends in JSON occur only between tokens, where a space is equivalent."""
        self.feed(message.replace(b"\n", b" ") + b"\n")

    async def deliver(self, message: bytes | bytearray) -> None:
        """As `feed_line`; waits while the receiver has much to take."""
        self.feed_line(message)
        if len(self.received) > MOST_UNTAKEN_BYTES:
            await self.wait_until_taken()

    def feed_end(self) -> None:
        """Note that no more will arrive."""
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
        """Wait until the receiver has taken all bytes."""
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
        """Queue a message without a newline."""
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
        """Wait for flushed lines and return them. The caller reports them with `mark_sent`."""
        while True:
            await self._flushed.wait()
            self._flushed = anyio.Event()
            if self._queue:
                taken, self._queue = self._queue, deque()
                return taken

    def mark_sent(self, size: int) -> None:
        """Count `size` bytes as sent or dropped."""
        self.queued -= size
        self._drained.set()

    def abandon(self) -> None:
        """The other side has disconnected: drop the queue, and wake waiting writers."""
        self._abandoned = True
        self._queue.clear()
        self.mark_sent(self.queued)


class QueuedStream(IncomingBuffer, OutgoingQueue):
    """A `Stream` made of both queues, which tasks of the transport fill and empty."""

    def __init__(self) -> None:
        IncomingBuffer.__init__(self)
        OutgoingQueue.__init__(self)
