"""HTTP+SSE of 2024-11-05, from the end that asks: one stream brings everything, every line goes by POST.

Source: basic/transports of 2024-11-05. Deprecated; nothing else refers to this file but `http.open_http`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from ragmcp.concurrency import Pulse, beside
from ragmcp.errors import ConnectionClosed, RagMcpError, RequestTimedOut
from ragmcp.http.client import EVENTS, Http, Response, shown
from ragmcp.http.errors import HttpRefused
from ragmcp.peer import HIGH_WATER_BYTES

OPENING = "the opening of the event stream"
ENDPOINT_SECONDS = 10.0


@asynccontextmanager
async def open_sse(http: Http) -> AsyncIterator[SseStream]:
    """The stream for a peer. Raises HttpRefused for what is no such server, ServerUnreachable."""
    async with http.send("GET", OPENING, {"accept": EVENTS}) as response:
        if response.refused:
            raise await response.refusal()
        if not response.streams:
            raise HttpRefused(shown(http.url), response.status, "it does not speak MCP")
        stream = SseStream(http, response)
        await stream.find_endpoint()
        async with beside(stream.read_on), beside(stream.write_on):
            try:
                yield stream
            except ConnectionClosed as error:
                if error.reason:  # Of another connection, in the body: ours does not know it yet.
                    raise
                raise ConnectionClosed(error.method, stream.failure) from None


class SseStream:
    """Events in, POSTs out, in their order."""

    def __init__(self, http: Http, response: Response) -> None:
        self.failure = ""
        """Why it ended, where that is known."""
        self._http = http
        self._response = response
        self._endpoint = http.url
        self._received = bytearray()
        self._ended = False
        self._news = anyio.Event()
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._work = anyio.Event()
        self._drained = Pulse()

    async def find_endpoint(self) -> None:
        """Wait for the address to which our lines go. Raises HttpRefused for one at another server."""
        with anyio.move_on_after(ENDPOINT_SECONDS):
            while events := await self._response.next_events():
                for type, data in events:
                    if type == "endpoint":
                        self._endpoint = self._http.joined(bytes(data).decode(errors="replace"), 200)
                        return
            raise HttpRefused(shown(self._http.url), 200, "its event stream names no endpoint")
        raise RequestTimedOut(OPENING, ENDPOINT_SECONDS)

    # In

    async def receive(self) -> bytes:
        while not self._received and not self._ended:
            self._news = anyio.Event()
            await self._news.wait()
        data, self._received = bytes(self._received), bytearray()
        return data

    async def read_on(self) -> None:
        """Keep reading."""
        try:
            while events := await self._response.next_events():
                for type, data in events:
                    if type == "message":
                        # JSON may be spread over lines; within its strings there are none.
                        self._received += bytes(data).replace(b"\n", b" ") + b"\n"
                self._news.set()
            self._end("the server ended its event stream")
        except RagMcpError as error:
            self._end(str(error))

    def _end(self, reason: str) -> None:
        self.failure = self.failure or reason.rstrip(".")
        self._ended = True
        self._news.set()

    # Out

    def write(self, line: bytes) -> None:
        self._queue.append(line)
        self._queued += len(line)

    def flush(self) -> None:
        self._work.set()

    def flush_soon(self) -> None:
        self._work.set()

    async def drain(self, below: int = HIGH_WATER_BYTES) -> None:
        while self._queued > below and not self._ended:
            await self._drained.wait()

    async def write_on(self) -> None:
        """Keep sending what is queued."""
        try:
            while True:
                await self._work.wait()
                self._work = anyio.Event()
                while self._queue:
                    line = self._queue.popleft()
                    await self._send(line)
                    self._queued -= len(line)
                    self._drained.set()
        except RagMcpError as error:
            self._end(str(error))
            self._drained.set()

    async def _send(self, line: bytes) -> None:
        headers = {"content-type": "application/json"}
        async with self._http.send("POST", "a message", headers, line, url=self._endpoint) as response:
            if response.refused:
                raise await response.refusal()
            await response.end()
