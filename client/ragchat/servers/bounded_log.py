"""A server's log file that stays bounded while the server writes to it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio

from ragchat.log import ServerLog, prepare
from ragmcp.concurrency import background_task

# The log is copied in portions of this size with a pause after each (at most 6 MB a second), so that a server
# that floods its log cannot keep this process busy.
READ_BYTES = 2**16
PAUSE_SECONDS = 0.01


@asynccontextmanager
async def bounded_log(path: Path) -> AsyncIterator[ServerLog]:
    """The log of one start of a server. Not bounded on Windows, where pipes cannot be awaited."""
    plain = ServerLog(path)
    plain.begin()
    if sys.platform == "win32":
        yield plain
        return
    log = _Copied(path)
    try:
        async with background_task(log.copy):
            yield log
    finally:
        log.close()


class _Copied(ServerLog):
    """The server writes to a pipe, from which `copy` writes to the file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._source, self._writer = os.pipe()
        self._ended = anyio.Event()

    def writer(self) -> int:
        """A descriptor for the server, which may be started twice to find its era."""
        return os.dup(self._writer)

    async def last_line(self) -> str:
        """The last line, once everything is copied. No server can be started after that."""
        self._close_writer()
        await self._ended.wait()
        return await super().last_line()

    async def copy(self) -> None:
        """Copy until the server has ended."""
        os.set_blocking(self._source, False)
        while True:
            await anyio.wait_readable(self._source)
            data = os.read(self._source, READ_BYTES)
            if not data:
                break
            with suppress(OSError):  # A full disk must not stop the server.
                prepare(self.path)
                with self.path.open("ab") as file:
                    file.write(data)
            await anyio.sleep(PAUSE_SECONDS)
        self._ended.set()

    def close(self) -> None:
        """Close the descriptors that the server does not own."""
        os.close(self._source)
        self._close_writer()

    def _close_writer(self) -> None:
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1
