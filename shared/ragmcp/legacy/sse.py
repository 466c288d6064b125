"""The HTTP of 2024-11-05: GET /sse is the way to the client, POST /messages the way back. Deletable.

Both together are one stream like any other, which `serve` runs. Source: 2024-11-05 basic/transports.
"""

from __future__ import annotations

import secrets
from collections import deque
from urllib.parse import parse_qs

import anyio

from ragmcp.concurrency import Pulse, beside
from ragmcp.http.errors import HttpMethodNotAllowed, NotAcceptable, SessionNotFound, TooManyOpen
from ragmcp.http.exchange import EVENTS, KEEP_ALIVE, ClientGone, Exchange, Scope, event
from ragmcp.http.limits import SESSION_REQUESTS, HttpLimits
from ragmcp.peer import HIGH_WATER_BYTES
from ragmcp.server.server import Server, serve

ID_BYTES = 24


class SseStream:
    """Lines in through POSTs, lines out as events of one response."""

    def __init__(self) -> None:
        self.received = bytearray()
        self._ended = False
        self._gone = False
        self._news = anyio.Event()
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._work = anyio.Event()
        self._drained = Pulse()

    # In

    def put(self, body: bytes) -> None:
        """One message, or batch. Line ends in JSON stand between tokens only, where a space will do."""
        self.received += body.replace(b"\n", b" ")
        self.received += b"\n"
        self._news.set()

    def end(self, *, gone: bool = False) -> None:
        """No more will come; and with `gone` nobody reads what goes out."""
        self._ended = True
        self._gone |= gone
        self._news.set()
        self._drained.set()

    async def receive(self) -> bytes:
        while not self.received and not self._ended:
            self._news = anyio.Event()
            await self._news.wait()
        data, self.received = bytes(self.received), bytearray()
        return data

    # Out

    def write(self, line: bytes) -> None:
        said = event(line)
        self._queue.append(said)
        self._queued += len(said)

    def flush(self) -> None:
        self._work.set()

    def flush_soon(self) -> None:
        self._work.set()

    async def drain(self, below: int = HIGH_WATER_BYTES) -> None:
        while self._queued > below and not self._gone:
            await self._drained.wait()

    async def write_on(self, exchange: Exchange, keep_alive_seconds: float) -> None:
        """Keep sending what is queued, and signs of life."""
        while True:
            with anyio.move_on_after(keep_alive_seconds) as silence:
                await self._work.wait()
            self._work = anyio.Event()
            events, self._queue = b"".join(self._queue), deque()
            if events or silence.cancelled_caught:
                try:
                    await exchange.write(events or KEEP_ALIVE)
                except ClientGone:
                    self.end(gone=True)
                    return
            self._queued = sum(map(len, self._queue))
            self._drained.set()


class SseSessions:
    """All clients of the old transport."""

    def __init__(self, server: Server, limits: HttpLimits, closing: anyio.Event) -> None:
        self._server = server
        self._limits = limits
        self._closing = closing
        self._streams: dict[str, SseStream] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._streams)

    async def listen(self, exchange: Exchange, scope: Scope) -> None:
        """GET /sse. Raises HttpError."""
        if exchange.method != "GET":
            raise HttpMethodNotAllowed(exchange.method, ("GET",))
        if not exchange.accepts(EVENTS):
            raise NotAcceptable((EVENTS,))
        if len(self._streams) >= self._limits.sessions:
            raise TooManyOpen("sessions", self._limits.sessions)
        id, stream = secrets.token_urlsafe(ID_BYTES), SseStream()
        self._streams[id] = stream
        try:
            way_back = f"{scope['path'].rpartition('/')[0]}/messages?session_id={id}"
            await exchange.write(b"event: endpoint\ndata: %b\n\n" % way_back.encode())

            async def watch() -> None:
                await exchange.gone()
                stream.end(gone=True)

            async def leave() -> None:
                await self._closing.wait()
                stream.end()

            async with (
                beside(watch),
                beside(leave),
                beside(lambda: stream.write_on(exchange, self._limits.keep_alive_seconds)),
            ):
                await serve(
                    self._server,
                    stream,
                    message_bytes=self._limits.message_bytes,
                    in_progress=SESSION_REQUESTS,
                )
        finally:
            del self._streams[id]
        await exchange.finish()

    async def post(self, exchange: Exchange, scope: Scope) -> None:
        """POST /messages?session_id=…: the answer comes as an event. Raises HttpError."""
        if exchange.method != "POST":
            raise HttpMethodNotAllowed(exchange.method, ("POST",))
        exchange.check_content()
        stream = self._streams.get(_session_id(scope))
        if stream is None:
            raise SessionNotFound
        body = await exchange.body()
        if len(stream.received) > self._limits.message_bytes:
            raise TooManyOpen("bytes waiting in this session", self._limits.message_bytes)
        stream.put(body)
        await exchange.answer(202)


def _session_id(scope: Scope) -> str:
    try:
        query: dict[str, list[str]] = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=10)
        return query["session_id"][0]
    except (ValueError, KeyError):
        return ""
