"""Read and write descriptors in threads: on Windows, for files and terminals, on other event loops."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from time import sleep
from typing import Any

import anyio
from anyio import from_thread
from anyio.lowlevel import current_token

from ragmcp.concurrency import beside
from ragmcp.streams import QueuedStream

READ_BYTES = 2**16
# Between attempts at a descriptor that another program has made non-blocking for all its users.
_RETRY_SECONDS = 0.01


class _Worker:
    """A daemon thread, because a blocked read cannot be cancelled.

    A program waits for anyio's threads when it exits: at a terminal, until the user presses Enter.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], list[Any], anyio.Event] | None] = SimpleQueue()
        self._token = current_token()
        Thread(target=self._work, name="ragmcp pipe", daemon=True).start()

    async def do(self, job: Callable[[], Any]) -> Any:
        """The result of `job`, which must not raise; cancelling the wait does not stop the job."""
        result: list[Any] = []
        done = anyio.Event()
        self._jobs.put((job, result, done))
        await done.wait()
        return result[0]

    def stop(self) -> None:
        """End the thread after its current job."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (next := self._jobs.get()) is not None:
            job, result, done = next
            result.append(job())
            with suppress(RuntimeError):  # The event loop has ended.
                from_thread.run_sync(done.set, token=self._token)


@asynccontextmanager
async def open_threaded(read_fd: int, write_fd: int) -> AsyncIterator[ThreadedPipes]:
    """A stream on two descriptors of any kind; owns them."""
    stream = ThreadedPipes(read_fd, write_fd)
    try:
        async with beside(stream.read_on), beside(stream.write_on):
            yield stream
    finally:
        stream.close()


class ThreadedPipes(QueuedStream):
    """A thread for each direction; the reading thread reads one piece ahead."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        super().__init__()
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._reader, self._writer = _Worker(), _Worker()
        self.sent = 0
        self.failure: OSError | None = None

    async def read_on(self) -> None:
        """Read one piece ahead, until the end."""
        while data := await self._reader.do(self._read):
            self.feed(data)
            await self.wait_until_taken()
        self.feed_end()

    def _read(self) -> bytes:
        while True:
            try:
                return os.read(self._read_fd, READ_BYTES)
            except BlockingIOError:
                sleep(_RETRY_SECONDS)
            except OSError:
                return b""

    async def write_on(self) -> None:
        """Write queued lines, until cancelled."""
        while True:
            data = b"".join(await self.take())
            await self._writer.do(partial(self._write, data))
            self.mark_sent(len(data))

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self.failure is None:
            try:
                written = os.write(self._write_fd, rest)
                self.sent += written
                rest = rest[written:]
            except BlockingIOError:
                sleep(_RETRY_SECONDS)
            except OSError as error:
                self.failure = error

    def end(self) -> None:
        """Close the writing half."""
        if self._write_fd >= 0:
            os.close(self._write_fd)
            self._write_fd = -1

    def close(self) -> None:
        """Close both halves."""
        self.end()
        os.close(self._read_fd)
        self._read_fd = -1  # Another file may get this number.
        self._reader.stop()
        self._writer.stop()
