"""Read and write descriptors in threads: on Windows, and for files and terminals."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Thread
from time import sleep
from typing import Any

from ragmcp.stdio.pipes import Pipes

READ_BYTES = 2**16
# Between attempts at a descriptor that another program has made non-blocking for all its users.
_RETRY_SECONDS = 0.01


class _Worker:
    """A daemon thread, because a blocked read cannot be cancelled.

    A program waits for anyio's threads when it exits: at a terminal, until the user presses Enter.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        Thread(target=self._work, name="ragmcp pipe", daemon=True).start()

    async def do(self, job: Callable[[], Any]) -> Any:
        """The result of `job`, which must not raise. Cancelling the wait does not stop a job that runs."""
        result: Future[Any] = Future()
        self._jobs.put((job, result))
        return await asyncio.wrap_future(result)

    def stop(self) -> None:
        """End the thread after its current job."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (next := self._jobs.get()) is not None:
            job, result = next
            if result.set_running_or_notify_cancel():
                result.set_result(job())


class ThreadedPipes(Pipes):
    """A thread for each direction; the reading thread reads one piece ahead."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        super().__init__(read_fd, write_fd)
        self._reader, self._writer = _Worker(), _Worker()
        self.tasks = self.read_on, self.write_on

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

    def close(self) -> None:
        super().close()
        self._reader.stop()
        self._writer.stop()
