"""Pipes and sockets through asyncio itself: one system call for many messages, and no thread. POSIX only."""

from __future__ import annotations

import asyncio
import os
from collections import deque

from ragmcp.stdio.pipes import Pipes

READ_BYTES = 2**16
# After a read that filled its buffer without the end of a line: the rest of a large message follows. Small
# messages are read in small portions, so that other connections get their turn in between.
LARGE_READ_BYTES = 2**20
# Up to this size, joining lines is cheaper than a system call for each.
JOIN_BYTES = 2**18


class PolledPipes(Pipes):
    """Reads and writes in callbacks of the event loop."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        super().__init__(read_fd, write_fd)
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        self._loop = asyncio.get_running_loop()
        self._read_bytes = READ_BYTES
        self._reading = False
        self._blocked = False
        self._resume()

    # Reading

    async def receive(self) -> bytes:
        data = await super().receive()
        if not self._reading and not self.ended:
            self._resume()
        return data

    def _resume(self) -> None:
        self._loop.add_reader(self._read_fd, self._on_readable)
        self._reading = True

    def _pause(self) -> None:
        self._loop.remove_reader(self._read_fd)
        self._reading = False

    def _on_readable(self) -> None:
        if self.untaken:  # The receiver is slow: leave the rest in the pipe.
            self._pause()
            return
        try:
            data = os.read(self._read_fd, self._read_bytes)
        except BlockingIOError:
            return
        # A reset socket, or a read without memory, ends the stream: it would stay readable and keep the loop
        # busy.
        except (OSError, MemoryError):
            data = b""
        if data:
            self.feed(data)
        else:
            self.feed_end()
            self._pause()
        filled = len(data) >= READ_BYTES and b"\n" not in data[-READ_BYTES:]
        self._read_bytes = LARGE_READ_BYTES if filled else READ_BYTES

    # Writing

    def flush(self) -> None:
        if self._queue and not self._blocked:
            self._flush()

    def flush_soon(self) -> None:
        self._loop.call_soon(self.flush)

    def _flush(self) -> None:
        try:
            while self._queue:
                if self.queued <= JOIN_BYTES:
                    self._queue = deque([b"".join(self._queue)])
                written = os.write(self._write_fd, self._queue[0])
                self.mark_sent(written)
                self.sent += written
                if written == len(self._queue[0]):
                    self._queue.popleft()
                else:
                    self._queue[0] = memoryview(self._queue[0])[written:]
        except BlockingIOError:
            self._blocked = True
            self._loop.add_writer(self._write_fd, self._flush)
        except OSError as error:
            # The reading half ends by itself, after the data that is left.
            self.failure = error
            self.abandon()
        if not self._queue:
            self._unblock()

    def _unblock(self) -> None:
        if self._blocked:
            self._blocked = False
            self._loop.remove_writer(self._write_fd)

    def end(self) -> None:
        self._unblock()
        super().end()
        self.flush()  # It fails and drops the queue, as with all later lines.

    def close(self) -> None:
        self._pause()
        self.feed_end()
        super().close()
