"""One HTTP request and its response, on plain ASGI: a bounded body in, JSON or events out. Knows no MCP."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2s
from ipaddress import IPv6Address, IPv6Network
from itertools import chain
from math import inf
from typing import Any, TypeAlias

import anyio

from ragmcp.concurrency import observe_blocking
from ragmcp.http import errors
from ragmcp.http.limits import MIN_BYTES_PER_SECOND, HttpLimits
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.jsonrpc import Id

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

# The key in a scope for whose request it is, if an application around the endpoint knows; else all are one.
USER = "ragmcp.user"

# Random per process, so that ids of connections do not repeat after a restart.
_KEY = os.urandom(16)

JSON, EVENTS = "application/json", "text/event-stream"

_JSON_HEADERS: list[Header] = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
_EVENT_HEADERS: list[Header] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    # nginx would buffer the events.
    (b"x-accel-buffering", b"no"),
]
KEEP_ALIVE = b":\n\n"
# The network of IPv4 addresses on a dual-stack socket.
_MAPPED = IPv6Address("::")
_NEVER = {"q=0", "q=0.0", "q=0.00", "q=0.000"}


class ClientGone(Exception):
    """The client disconnected before the response."""


class Exchange:
    """One request and its response."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, limits: HttpLimits, streams: set[Exchange]
    ) -> None:
        """`streams` holds all exchanges that are open event streams, at most `limits.streams`."""
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.client = client_address(scope)
        self.user: str = scope.get(USER, "")
        peer: tuple[str, int] = scope.get("client") or ("", 0)
        self.host, self._port = peer
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        # All work for the request; cancelled when the client has disconnected.
        self.scope = anyio.CancelScope()
        self.streaming = False
        self.finished = False
        # Set for a client that reads no events: it gets the answer only.
        self.mute = False
        # Further headers of the response.
        self.extra: list[Header] = []
        # Once it has been read.
        self._body: bytes | None = None
        self._receive = receive
        self._send = send
        self._limits = limits
        self._streams = streams
        self._lock: anyio.Lock | None = None
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
            raise errors.HeadersTooLarge(f"there are {count:,}, over the limit of {self._limits.headers:,}")
        size = sum(map(len, chain.from_iterable(self._header_list)))
        if size > self._limits.header_bytes:
            raise errors.HeadersTooLarge(f"{size:,} bytes, over the limit of {self._limits.header_bytes:,}")
        if len(self.headers) != count:
            _refuse_duplicates(self._header_list)

    def check_content(self) -> None:
        """Raises UnsupportedMediaType, BodyTooLarge."""
        kind = self.headers.get(b"content-type", b"")
        if kind.partition(b";")[0].strip().lower() != b"application/json":
            raise errors.UnsupportedMediaType(kind.decode("latin-1") or "not labelled")
        if (coding := self.headers.get(b"content-encoding", b"identity")) != b"identity":
            raise errors.UnsupportedMediaType(coding.decode("latin-1"))
        length = self.headers.get(b"content-length", b"0")
        # int() refuses thousands of digits; no body is that long.
        if len(length) > 18 or (length.isdigit() and int(length) > self._limits.message_bytes):
            raise errors.BodyTooLarge(self._limits.message_bytes)

    def accepts(self, *kinds: str) -> bool:
        """Whether the client can read all of `kinds`."""
        accepted = _accepted(self.headers.get(b"accept", b"*/*"))
        return all(accepted & {kind, f"{kind.partition('/')[0]}/*", "*/*"} for kind in kinds)

    async def body(self) -> bytes:
        """The request's body; at the deadline of one that arrives too slowly the exchange is cancelled.

        Raises BodyTooLarge, ClientGone.
        """
        if self._body is None:
            self._body = await observe_blocking(self._read(), self._start_clock, self._stop_clock)
        return self._body

    def _start_clock(self) -> None:
        self.scope.deadline = anyio.current_time() + self._limits.body_seconds

    def _stop_clock(self) -> None:
        if not self.scope.cancel_called:
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
                raise errors.BodyTooLarge(self._limits.message_bytes)
            self.scope.deadline += len(part) / MIN_BYTES_PER_SECOND
            if not message.get("more_body", False):
                return b"".join((*parts, part)) if parts else part
            parts.append(part)

    async def gone_within(self, seconds: float) -> bool:
        """Wait for up to `seconds`; returns whether the client has disconnected."""
        with anyio.move_on_after(seconds):
            while (await self._receive())["type"] == "http.request":
                pass
            return True
        return False

    async def watch(self, keep_alive: Callable[[], Awaitable[None]]) -> None:
        """Wait until the client has disconnected; call `keep_alive` after each silence."""
        with suppress(ClientGone):
            while not await self.gone_within(self._limits.keep_alive_seconds):
                await keep_alive()

    # Out

    async def answer(self, status: int, body: bytes = b"") -> None:
        """Send the whole response: JSON, or no body."""
        self.finished = True
        await respond(self._send, status, body, self.extra)

    async def refuse(self, error: Exception, status: int) -> None:
        """Send an error as the whole response, with the request's id if that was read."""
        self.finished = True
        await respond_error(self._send, error, status, jsonrpc.asked_id(self._body or b""), self.extra)

    async def write(self, events: bytes, *, last: bool = False) -> None:
        """Send encoded events; the first ones make the response a stream.

        Waits while the client does not read. Raises TooManyOpen, and ClientGone after too long a wait.
        """
        if self.mute or self.finished:
            return
        self.finished = last
        self._lock = self._lock or anyio.Lock(fast_acquire=True)
        with anyio.move_on_after(self._limits.body_seconds) as clock:
            async with self._lock:  # Events of concurrent writers must not mix.
                await self._write(events, last)
        if clock.cancelled_caught:
            self.finished = True
            raise ClientGone
        if last:
            self.close()

    async def _write(self, events: bytes, last: bool) -> None:
        if not self.streaming:
            if not self.may_stream:
                raise errors.TooManyOpen("event streams", self._limits.streams)
            self._streams.add(self)
            self.streaming = True
            headers = [*_EVENT_HEADERS, *self.extra]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": events, "more_body": not last})

    async def finish(self) -> None:
        """End the stream, unless it has ended."""
        await self.write(b"", last=True)

    @property
    def may_stream(self) -> bool:
        """Whether it is a stream, or may become one."""
        return self.streaming or len(self._streams) < self._limits.streams

    async def keep_alive(self) -> None:
        """Send a comment, if the response may be a stream: proxies cut silent connections."""
        if self.may_stream:
            await self.write(KEEP_ALIVE)

    @property
    def connection_id(self) -> str:
        """Tells the connections of clients apart: a stateless client has no other session."""
        return blake2s(f"{self.host} {self._port}".encode(), key=_KEY, digest_size=4).hexdigest()

    def close(self) -> None:
        """Stop counting it as an open stream."""
        self._streams.discard(self)


def client_address(scope: Scope) -> str:
    """The client's address, for counting; "" if it is unknown."""
    return _rate_address((scope.get("client") or ("",))[0])


@lru_cache(1024)
def _rate_address(address: str) -> str:
    """An IPv6 address counts as its network: one subscriber has 2^64 addresses."""
    try:
        network = IPv6Network((address, 64), strict=False)
    except ValueError:
        return address
    return address if network.network_address == _MAPPED else str(network)


async def respond(send: Send, status: int, body: bytes = b"", extra: Sequence[Header] = ()) -> None:
    """Send a whole response: JSON, or no body."""
    headers = [*_JSON_HEADERS, *extra] if body else [*extra]
    if status != 204:
        headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def respond_error(
    send: Send, error: Exception, status: int, id: Id | None = None, extra: Sequence[Header] = ()
) -> None:
    """Send a JSON-RPC error as a whole response."""
    await respond(send, status, jsonrpc.encode_answer(id, error), [*extra, *headers_of(error)])


def headers_of(error: Exception) -> list[Header]:
    """The headers that a response with this error has."""
    named = error.headers() if isinstance(error, errors.HttpError) else {}
    return [(name.encode(), value.encode()) for name, value in named.items()]


def event(data: bytes, id: str = "") -> bytes:
    """One event of a stream. Line ends in JSON occur only between tokens, where a space is equivalent."""
    head = b"id: %b\n" % id.encode() if id else b""
    return b"%bevent: message\ndata: %b\n\n" % (head, data.replace(b"\n", b" ").replace(b"\r", b" "))


def _refuse_duplicates(headers: Iterable[Header]) -> None:
    """Refuse a header sent twice: some programs read the first value, others the last."""
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and (name.startswith(b"mcp-") or name in (b"authorization", b"host", b"origin")):
            raise errors.HeaderMismatch(name.decode("latin-1"), "occurs more than once")
        seen.add(name)


@lru_cache(64)
def _accepted(accept: bytes) -> frozenset[str]:
    """The media types of an Accept header, without those at q=0."""
    kinds = set()
    for item in accept.decode("latin-1").lower().split(","):
        kind, *parameters = (part.replace(" ", "") for part in item.split(";"))
        if not _NEVER.intersection(parameters):
            kinds.add(kind)
    return frozenset(kinds)
