"""Lines of a pipe for an event loop, on every platform."""

from __future__ import annotations

import asyncio
import codecs
import os
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

_BYTES = 1 << 16


async def read_lines(fd: int) -> AsyncGenerator[str, None]:
    """The lines of `fd` without their ends, as UTF-8; bytes that are none come as U+FFFD.

    The reading thread is a daemon and holds no lock of a file object: a pipe that never ends must keep
    neither Ctrl-C nor the program's end waiting. (asyncio's own pipe reader takes no regular files.)
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | None] = asyncio.Queue()

    def put(line: str | None) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, line)

    threading.Thread(target=_read, args=(fd, put), name="stdin", daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line


def _read(fd: int, put: Callable[[str | None], None]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    with suppress(RuntimeError):  # the loop has ended first
        while data := os.read(fd, _BYTES):
            *lines, rest = (rest + decoder.decode(data)).split("\n")
            for line in lines:
                put(line.removesuffix("\r"))
        if rest:
            put(rest)
        put(None)
