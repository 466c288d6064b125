"""HTTP+SSE of 2024-11-05: messages to the client on GET /sse, messages of the client by POST /messages.

Together they form a stream for `serve`. Source: 2024-11-05 basic/transports.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from urllib.parse import parse_qs

from msgspec import Struct

from ragmcp.concurrency import background_task
from ragmcp.http.dispatch import Dispatcher
from ragmcp.http.errors import HttpMethodNotAllowed, NotAcceptable, SessionNotFound, TooManyOpen
from ragmcp.http.exchange import EVENTS, ClientGone, Exchange, event
from ragmcp.http.limits import SESSION_REQUESTS
from ragmcp.server.core import serve
from ragmcp.streams import Stream

ID_BYTES = 24


class SseSessions(Struct):
    """All clients of this transport."""

    _dispatcher: Dispatcher
    streams: dict[tuple[str, str], Stream] = {}
    """Those of the connected clients, by user and id."""

    def close(self) -> None:
        """Let all streams end once their requests are answered."""
        for stream in self.streams.values():
            stream.feed_end()

    async def listen(self, exchange: Exchange) -> None:
        """GET /sse. Raises HttpError."""
        if exchange.method != "GET":
            raise HttpMethodNotAllowed(exchange.method, ("GET",))
        if not exchange.accepts(EVENTS):
            raise NotAcceptable((EVENTS,))
        if len(self.streams) >= self._dispatcher.limits.sessions:
            raise TooManyOpen("sessions", self._dispatcher.limits.sessions)
        id, stream = secrets.token_urlsafe(ID_BYTES), Stream()
        self.streams[exchange.user, id] = stream
        try:
            endpoint = f"{exchange.path.rpartition('/')[0]}/messages?session_id={id}"
            await exchange.write(b"event: endpoint\ndata: %b\n\n" % endpoint.encode())

            async def watch() -> None:
                await exchange.watch(exchange.keep_alive)
                stream.disconnect()

            async def write_on() -> None:
                with suppress(ClientGone):
                    while True:
                        lines = await stream.take()
                        await exchange.write(b"".join(map(event, map(bytes, lines))))
                        stream.mark_sent(sum(map(len, lines)))
                stream.disconnect()

            async with background_task(watch, write_on):
                await serve(
                    self._dispatcher.server,
                    stream,
                    message_bytes=self._dispatcher.limits.message_bytes,
                    in_progress=SESSION_REQUESTS,
                    host=exchange.host,
                )
        finally:
            del self.streams[exchange.user, id]
        await exchange.finish()

    async def post(self, exchange: Exchange) -> None:
        """POST /messages?session_id=…: the answer comes as an event. Raises HttpError."""
        if exchange.method != "POST":
            raise HttpMethodNotAllowed(exchange.method, ("POST",))
        exchange.check_content()
        stream = self.streams.get((exchange.user, _session_id(exchange.query)))
        if stream is None:
            raise SessionNotFound
        body = await exchange.body()
        if stream.untaken > self._dispatcher.limits.message_bytes:
            raise TooManyOpen("unread bytes in this session", self._dispatcher.limits.message_bytes)
        stream.feed_line(body)
        await exchange.answer(202)


def _session_id(query: bytes) -> str:
    try:
        return parse_qs(query.decode("latin-1"), max_num_fields=10)["session_id"][0]
    except (ValueError, KeyError):
        return ""
