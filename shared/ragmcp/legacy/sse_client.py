"""The client of HTTP+SSE (2024-11-05): one event stream from the server, one POST for each message to it.

Source: 2024-11-05 basic/transports.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from ragmcp.concurrency import background_task
from ragmcp.errors import RagMcpError, RequestTimedOut
from ragmcp.http.client import EVENTS, JSON_HEADERS, Http, Response, shown
from ragmcp.http.errors import HttpRefused
from ragmcp.streams import Stream

OPENING = "the opening of the event stream"
ENDPOINT_SECONDS = 10.0


@asynccontextmanager
async def open_sse(http: Http) -> AsyncIterator[SseClientStream]:
    """A stream for a peer. Raises HttpRefused for any other server, ServerUnreachable."""
    async with http.send("GET", OPENING, {"accept": EVENTS}) as response:
        if not response.streams:
            raise HttpRefused(shown(http.url), response.status, "it does not speak MCP")
        stream = SseClientStream(http, response)
        await stream.find_endpoint()
        async with background_task(stream.read_on, stream.write_on):
            yield stream


class SseClientStream(Stream):
    """Events in, POSTs out, in order."""

    def __init__(self, http: Http, response: Response) -> None:
        super().__init__()
        self._http = http
        self._response = response
        self._endpoint = http.url

    async def find_endpoint(self) -> None:
        """Wait for the address for POSTs. Raises HttpRefused for the address of another server."""
        with anyio.move_on_after(ENDPOINT_SECONDS):
            while events := await self._response.next_events():
                for event in events:
                    if event.type == "endpoint":
                        self._endpoint = self._http.joined(event.data.decode(errors="replace"), 200)
                        return
            raise HttpRefused(shown(self._http.url), 200, "its event stream names no endpoint")
        raise RequestTimedOut(OPENING, ENDPOINT_SECONDS)

    async def read_on(self) -> None:
        """Keep reading."""
        try:
            while events := await self._response.next_events():
                for event in events:
                    if event.type == "message":
                        await self.deliver(event.data)
            self._close("the server ended its event stream")
        except RagMcpError as error:
            self._close(str(error))

    async def write_on(self) -> None:
        """Send queued lines until cancelled."""
        try:
            await self.send_each(self._send)
        except RagMcpError as error:
            self._close(str(error))

    async def _send(self, line: bytes) -> None:
        async with self._http.send("POST", "a message", JSON_HEADERS, line, url=self._endpoint) as response:
            await response.end()

    def _close(self, reason: str) -> None:
        self.fault = self.fault or reason.rstrip(".")
        self.disconnect()
