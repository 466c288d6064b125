"""One HTTP request and its response, on plain ASGI: a bounded body in, JSON or an event stream out.

Not MCP: what a body means, and what is answered, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network
from itertools import chain
from math import inf
from typing import Any, TypeAlias

import anyio

from ragmcp.concurrency import watched
from ragmcp.http.errors import BodyTooLarge, HeaderMismatch, HeadersTooLarge, HttpError, UnsupportedMediaType
from ragmcp.http.limits import LEAST_BYTES_PER_SECOND, HttpLimits, Streams
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.connection import error_object
from ragmcp.protocol.jsonrpc import Id

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

JSON, EVENTS = "application/json", "text/event-stream"

_JSON_HEADERS: list[Header] = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
_EVENT_HEADERS: list[Header] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    # nginx and its like would hold events back until there are many.
    (b"x-accel-buffering", b"no"),
]
KEEP_ALIVE = b":\n\n"
# Where IPv4 addresses are, as a socket for both shows them.
_MAPPED = IPv6Address("::")
_NEVER = {"q=0", "q=0.0", "q=0.00", "q=0.000"}


class ClientGone(Exception):
    """Nobody is there any more who could be answered."""


class Exchange:
    """One request on its way to its response."""

    __slots__ = (
        "_body",
        "_counted",
        "_header_list",
        "_limits",
        "_lock",
        "_receive",
        "_send",
        "_streams",
        "client",
        "extra",
        "finished",
        "headers",
        "late",
        "method",
        "mute",
        "scope",
        "streaming",
    )

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, limits: HttpLimits, streams: Streams
    ) -> None:
        self.method: str = scope["method"]
        self.client = client_address(scope)
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        # All that is done for it; cancelled once there is nobody to do it for.
        self.scope = anyio.CancelScope()
        # The body did not come in time.
        self.late = False
        self.streaming = False
        self.finished = False
        # Set for a client that reads no events: nothing is said before the answer.
        self.mute = False
        # Headers that the response has whatever it says.
        self.extra: list[Header] = []
        # So far as it has been read.
        self._body = b""
        self._receive = receive
        self._send = send
        self._limits = limits
        self._streams = streams
        self._lock: anyio.Lock | None = None
        self._counted = False
        self._header_list: list[Header] = scope["headers"]

    def header(self, name: str) -> str | None:
        """A header's value, by its lower-case name."""
        value = self.headers.get(name.encode())
        return None if value is None else value.decode("latin-1").strip(" \t")

    # In

    def check_headers(self) -> None:
        """Raises HeadersTooLarge, HeaderMismatch."""
        count = len(self._header_list)
        if count > self._limits.headers:
            raise HeadersTooLarge(f"there are {count:,}, and {self._limits.headers:,} are the limit")
        size = sum(map(len, chain.from_iterable(self._header_list)))
        if size > self._limits.header_bytes:
            raise HeadersTooLarge(f"{size:,} bytes, and {self._limits.header_bytes:,} are the limit")
        if len(self.headers) != count:
            _refuse_twins(self._header_list)

    def check_content(self) -> None:
        """Raises UnsupportedMediaType, BodyTooLarge."""
        kind = self.headers.get(b"content-type", b"")
        if not _is_json(kind):
            raise UnsupportedMediaType(kind.decode("latin-1"))
        if (coding := self.headers.get(b"content-encoding", b"identity")) != b"identity":
            raise UnsupportedMediaType(coding.decode("latin-1"))
        length = self.headers.get(b"content-length", b"0")
        # int() itself refuses thousands of digits; nobody's body is that long.
        if len(length) > 18 or (length.isdigit() and int(length) > self._limits.message_bytes):
            raise BodyTooLarge(self._limits.message_bytes)

    def accepts(self, *kinds: str) -> bool:
        """Whether the client can read all of `kinds`."""
        accepted = _accepted(self.headers.get(b"accept", b"*/*"))
        return all(
            kind in accepted or f"{kind.partition('/')[0]}/*" in accepted or "*/*" in accepted
            for kind in kinds
        )

    async def body(self) -> bytes:
        """The request's body; one that comes too slowly ends the exchange.

        Raises BodyTooLarge, ClientGone.
        """
        self._body = await watched(self._read(), self._start_clock, self._stop_clock)
        return self._body

    def _start_clock(self) -> None:
        self.late = True
        self.scope.deadline = anyio.current_time() + self._limits.body_seconds

    def _stop_clock(self) -> None:
        if not self.scope.cancel_called:
            self.late = False
            self.scope.deadline = inf

    async def _read(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                raise ClientGone
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > self._limits.message_bytes:
                raise BodyTooLarge(self._limits.message_bytes)
            self.scope.deadline += len(part) / LEAST_BYTES_PER_SECOND
            if not message.get("more_body", False):
                return b"".join((*parts, part)) if parts else part
            parts.append(part)

    async def gone(self) -> None:
        """Returns once the client is gone."""
        while (await self._receive())["type"] == "http.request":
            pass

    async def gone_within(self, seconds: float) -> bool:
        """Wait so long; whether the client has left."""
        with anyio.move_on_after(seconds):
            await self.gone()
            return True
        return False

    # Out

    async def answer(self, status: int, body: bytes = b"") -> None:
        """The whole response; JSON, if there is anything in it."""
        self.finished = True
        await respond(self._send, status, body, self.extra)

    async def refuse(self, error: Exception, status: int) -> None:
        """The whole response, an error; its id is that of the request in the body, as far as that is read."""
        self.finished = True
        await respond_error(self._send, error, status, jsonrpc.asked_id(self._body), self.extra)

    async def write(self, events: bytes, *, last: bool = False) -> None:
        """Events, ready for the wire; the first ones make the response a stream.

        Waits while the client does not read. Raises TooManyOpen, and ClientGone after too long a wait.
        """
        if self.mute or self.finished:
            return
        self.finished = last
        self._lock = self._lock or anyio.Lock(fast_acquire=True)
        with anyio.move_on_after(self._limits.body_seconds) as clock:
            async with self._lock:  # What is written at the same time must not come between.
                await self._write(events, last)
        if clock.cancelled_caught:
            self.finished = True
            raise ClientGone
        if last:
            self.close()

    async def _write(self, events: bytes, last: bool) -> None:
        if not self.streaming:
            self._streams.open()
            self.streaming = self._counted = True
            headers = [*_EVENT_HEADERS, *self.extra]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": events, "more_body": not last})

    async def finish(self) -> None:
        """End the stream, if that has not happened yet."""
        await self.write(b"", last=True)

    @property
    def may_stream(self) -> bool:
        """Whether it is a stream, or there is room for another one."""
        return self.streaming or not self._streams.full

    async def keep_alive(self) -> None:
        """Show everybody in between that there is life, if it may become a stream."""
        if self.may_stream:
            await self.write(KEEP_ALIVE)

    def close(self) -> None:
        """Count it as an open stream no longer."""
        if self._counted:
            self._counted = False
            self._streams.close()


def client_address(scope: Scope) -> str:
    """The address that a request comes from, for counting; "" where there is none."""
    return _counted_as((scope.get("client") or ("",))[0])


@lru_cache(1024)
def _counted_as(address: str) -> str:
    """Of IPv6 the network: a single subscriber has 2^64 addresses."""
    try:
        network = IPv6Network((address, 64), strict=False)
    except ValueError:
        return address
    return address if network.network_address == _MAPPED else str(network)


async def respond(send: Send, status: int, body: bytes = b"", extra: Sequence[Header] = ()) -> None:
    """A whole response; JSON, if there is anything in it."""
    headers = [*_JSON_HEADERS, *extra] if body else [*extra]
    if status != 204:
        headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def respond_error(
    send: Send, error: Exception, status: int, id: Id | None = None, extra: Sequence[Header] = ()
) -> None:
    """A whole response, a JSON-RPC error."""
    if isinstance(error, HttpError):
        extra = [*extra, *((name.encode(), value.encode()) for name, value in error.headers().items())]
    await respond(send, status, jsonrpc.encode_failure(id, error_object(error, id)), extra)


def event(data: bytes, id: str = "") -> bytes:
    """One event of a stream. Line ends in JSON stand between tokens only, where a space will do."""
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\n", b" ").replace(b"\r", b" ")
    if not id:
        return b"event: message\ndata: %b\n\n" % data
    return b"id: %b\nevent: message\ndata: %b\n\n" % (id.encode(), data)


def _refuse_twins(headers: Iterable[Header]) -> None:
    """Two values of one header are read differently by those who take the first, and the last."""
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and (name.startswith(b"mcp-") or name in (b"authorization", b"host", b"origin")):
            raise HeaderMismatch(name.decode("latin-1"), "is there more than once")
        seen.add(name)


@lru_cache(64)
def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


@lru_cache(64)
def _accepted(accept: bytes) -> frozenset[str]:
    """The media types of an Accept header, without those at q=0."""
    kinds = set()
    for item in accept.decode("latin-1").lower().split(","):
        kind, *parameters = (part.replace(" ", "") for part in item.split(";"))
        if not _NEVER.intersection(parameters):
            kinds.add(kind)
    return frozenset(kinds)
