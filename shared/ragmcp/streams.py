"""What a peer needs of a transport: bytes in, lines out."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import anyio

from ragmcp.concurrency import Pulse

# Writers wait when this much is queued: enough to keep a pipe busy, and little memory.
HIGH_WATER_BYTES = 2**20
# Transports that read events wait when the receiver has this much to take.
MAX_UNTAKEN_BYTES = 2**16


class Stream:
    """Bytes in, lines out. The transport fills the one queue and empties the other, in tasks or callbacks."""

    def __init__(self) -> None:
        self.untaken = 0
        """Bytes that have arrived and wait for the receiver."""
        self.ended = False
        """Whether no more will arrive."""
        self.queued = 0
        """Bytes not sent yet."""
        self.fault = ""
        """Why the connection was given up, as part of a sentence; "" if the other side closed it."""
        self._incoming: list[bytes | bytearray] = []
        self._receiver: asyncio.Future[None] | None = None
        self._taken = Pulse()
        self._queue: deque[bytes | memoryview] = deque()
        self._flushed = anyio.Event()
        self._drained = Pulse()
        self._abandoned = False

    # In

    async def receive(self) -> bytes:
        """The next bytes; b"" at the end. One receiver at a time; cancelling it loses nothing."""
        while not self._incoming and not self.ended:
            self._receiver = asyncio.get_running_loop().create_future()
            await self._receiver
        data = b"".join(self._incoming)
        self._incoming.clear()
        self.untaken = 0
        self._taken.set()
        return data

    def feed(self, data: bytes | bytearray) -> None:
        """Add bytes that have arrived."""
        self._incoming.append(data)
        self.untaken += len(data)
        self._wake_receiver()

    def feed_line(self, message: bytes | bytearray) -> None:
        """Add one JSON message. Line ends in JSON occur only between tokens, where a space is equivalent."""
        self.feed(message.replace(b"\n", b" ") + b"\n")

    async def deliver(self, message: bytes | bytearray) -> None:
        """As `feed_line`; waits while the receiver has much to take."""
        self.feed_line(message)
        if self.untaken > MAX_UNTAKEN_BYTES:
            await self.wait_until_taken()

    def feed_end(self) -> None:
        """Note that no more will arrive."""
        self.ended = True
        self._wake_receiver()

    def _wake_receiver(self) -> None:
        if self._receiver and not self._receiver.done():
            self._receiver.set_result(None)

    async def wait_until_taken(self) -> None:
        """Wait until the receiver has taken all bytes."""
        while self.untaken:
            await self._taken.wait()

    # Out

    def write(self, line: bytes) -> None:
        """Queue one line (without its newline) for the next flush."""
        self._queue.append(line)
        self.queued += len(line)

    def flush(self) -> None:
        """Send queued lines now, as many as possible without waiting."""
        self._flushed.set()

    def flush_soon(self) -> None:
        """Send queued lines, together with those that others queue in this turn of the event loop."""
        self.flush()

    async def drain(self, below: int = HIGH_WATER_BYTES) -> None:
        """Wait while more than `below` bytes are queued."""
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

    async def send_each(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Call `send` with each flushed line until cancelled."""
        while True:
            for line in await self.take():
                await send(bytes(line))
                self.mark_sent(len(line))

    def mark_sent(self, size: int) -> None:
        """Count `size` bytes as sent or dropped."""
        self.queued -= size
        self._drained.set()

    def abandon(self) -> None:
        """The other side no longer reads: drop the queue, and wake waiting writers."""
        self._abandoned = True
        self._queue.clear()
        self.mark_sent(self.queued)

    def disconnect(self) -> None:
        """The other side has disconnected: it neither sends nor reads."""
        self.feed_end()
        self.abandon()
