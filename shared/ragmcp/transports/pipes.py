"""Two file descriptors as one stream: POSIX pipes through the event loop itself, the rest through threads.

Nothing here knows lines from noise, beyond ending each one that is written.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Protocol

import anyio
import anyio.to_thread

from ragmcp.peer import Stream
from ragmcp.tasks import beside

READ_BYTES = 2**16
# A reader that found its buffer full is in the middle of something large.
LARGE_READ_BYTES = 2**20
# Who writes waits once this much is queued: enough to keep the pipe busy, little enough to hold in memory.
HIGH_WATER_BYTES = 2**20
# Up to here copying lines together is cheaper than a system call for each.
JOIN_BYTES = 2**18
PIPE_BYTES = 2**20
F_SETPIPE_SZ = 1031


def widen(fd: int) -> None:
    """Let a pipe hold 1 MiB instead of 64 KiB, where the platform can (32 MiB: 16 ms instead of 63)."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # Not a pipe, or over the user's limit.
            fcntl.fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES)


class Pipes(Stream, Protocol):
    """A stream whose halves close one by one."""

    def end(self) -> None:
        """Close the writing half: the other side reads what is left, then the end."""


def open_pipes(read_fd: int, write_fd: int) -> AbstractAsyncContextManager[Pipes]:
    """The stream that reads and writes these; it owns them and closes them at the end."""
    widen(read_fd)
    widen(write_fd)
    if _pollable(read_fd) and _pollable(write_fd):
        return _open_polled(read_fd, write_fd)
    return _open_threaded(read_fd, write_fd)


def _pollable(fd: int) -> bool:
    if sys.platform == "win32" or not _on_asyncio():
        return False
    mode = os.fstat(fd).st_mode
    # Not files, which epoll refuses; not terminals, whose other users would find them non-blocking.
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@asynccontextmanager
async def _open_polled(read_fd: int, write_fd: int) -> AsyncIterator[Pipes]:
    os.set_blocking(read_fd, False)
    os.set_blocking(write_fd, False)
    stream = PolledPipes(read_fd, write_fd)
    try:
        yield stream
    finally:
        stream.close()


class PolledPipes:
    """Through the event loop, one system call for many messages."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._read_bytes = READ_BYTES
        self._received = b""
        self._ended = False
        self._reading = False
        self._receiver: asyncio.Future[None] | None = None
        self._queue: deque[bytes | memoryview] = deque()
        self._queued = 0
        self._scheduled = False
        self._blocked = False
        self._drained = anyio.Event()
        self._resume()

    # Reading

    async def receive(self) -> bytes:
        while not self._received and not self._ended:
            self._receiver = self._loop.create_future()
            await self._receiver
        data, self._received = self._received, b""
        if not self._reading and not self._ended:
            self._resume()
        return data

    def _resume(self) -> None:
        self._loop.add_reader(self._read_fd, self._on_readable)
        self._reading = True

    def _pause(self) -> None:
        self._loop.remove_reader(self._read_fd)
        self._reading = False

    def _on_readable(self) -> None:
        if self._received:  # Nobody came for what there was: let the pipe keep the rest.
            self._pause()
            return
        try:
            self._received = os.read(self._read_fd, self._read_bytes)
        except BlockingIOError:
            return
        except OSError:  # A reset socket has ended like any other.
            self._received = b""
        if not self._received:
            self._ended = True
            self._pause()
        self._read_bytes = LARGE_READ_BYTES if len(self._received) >= READ_BYTES else READ_BYTES
        if self._receiver and not self._receiver.done():
            self._receiver.set_result(None)

    # Writing

    def write(self, line: bytes) -> None:
        self._queue += (line, b"\n")
        self._queued += len(line) + 1

    def flush(self) -> None:
        if self._queue and not self._blocked:
            self._flush()

    def flush_soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush_scheduled)

    def _flush_scheduled(self) -> None:
        self._scheduled = False
        self.flush()

    async def drain(self, below: int = HIGH_WATER_BYTES) -> None:
        while self._queued > below:
            self._drained = anyio.Event()
            await self._drained.wait()

    def _flush(self) -> None:
        try:
            while self._queue:
                if self._queued <= JOIN_BYTES:
                    self._queue = deque([b"".join(self._queue)])
                written = os.write(self._write_fd, self._queue[0])
                self._queued -= written
                if written == len(self._queue[0]):
                    self._queue.popleft()
                else:
                    self._queue[0] = memoryview(self._queue[0])[written:]
        except BlockingIOError:
            self._wait_until_writable()
        except OSError:
            # Nobody reads any more. That shows at the reading end too, after what is left there.
            self._queue.clear()
            self._queued = 0
        if not self._queue:
            self._unblock()
        if self._queued <= HIGH_WATER_BYTES:
            self._drained.set()

    def _wait_until_writable(self) -> None:
        if not self._blocked:
            self._blocked = True
            self._loop.add_writer(self._write_fd, self._flush)

    def _unblock(self) -> None:
        if self._blocked:
            self._blocked = False
            self._loop.remove_writer(self._write_fd)

    def end(self) -> None:
        """Close the writing half: the other side reads to the end and no further."""
        if self._write_fd >= 0:
            self._unblock()
            os.close(self._write_fd)
            self._write_fd = -1  # What is written from now on goes nowhere.

    def close(self) -> None:
        """Close both halves."""
        self.end()
        self._pause()
        self._ended = True
        os.close(self._read_fd)


@asynccontextmanager
async def _open_threaded(read_fd: int, write_fd: int) -> AsyncIterator[Pipes]:
    stream = ThreadedPipes(read_fd, write_fd)
    async with beside(stream.read_on), beside(stream.write_on):
        yield stream
    stream.close()


class ThreadedPipes:
    """The same with a thread for each direction: for Windows, files, terminals, and other event loops."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._received: deque[bytes] = deque()
        self._news = anyio.Event()
        self._taken = anyio.Event()
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._work = anyio.Event()
        self._drained = anyio.Event()

    async def receive(self) -> bytes:
        while not self._received:
            self._news = anyio.Event()
            await self._news.wait()
        if self._received[0]:
            self._taken.set()
            return self._received.popleft()
        return b""

    async def read_on(self) -> None:
        """Keep reading, one piece ahead."""
        while True:
            data = await anyio.to_thread.run_sync(self._read, abandon_on_cancel=True)
            self._taken = anyio.Event()
            self._received.append(data)
            self._news.set()
            if not data:
                return
            await self._taken.wait()

    def _read(self) -> bytes:
        try:
            return os.read(self._read_fd, READ_BYTES)
        except OSError:
            return b""

    def write(self, line: bytes) -> None:
        self._queue += (line, b"\n")
        self._queued += len(line) + 1

    def flush(self) -> None:
        self._work.set()

    def flush_soon(self) -> None:
        self._work.set()

    async def drain(self, below: int = HIGH_WATER_BYTES) -> None:
        while self._queued > below:
            self._drained = anyio.Event()
            await self._drained.wait()

    async def write_on(self) -> None:
        """Keep writing what is queued."""
        while True:
            await self._work.wait()
            self._work = anyio.Event()
            lines, self._queue = self._queue, deque()
            size = sum(map(len, lines))
            await anyio.to_thread.run_sync(self._write, b"".join(lines), abandon_on_cancel=True)
            self._queued -= size
            self._drained.set()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        with suppress(OSError):  # Nobody reads any more; that shows at the reading end.
            while rest:
                rest = rest[os.write(self._write_fd, rest) :]

    def end(self) -> None:
        """Close the writing half."""
        if self._write_fd >= 0:
            os.close(self._write_fd)
            self._write_fd = -1

    def close(self) -> None:
        """Close both halves."""
        self.end()
        os.close(self._read_fd)
