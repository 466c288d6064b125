"""The listening socket of a program, and uvicorn on it, with limits on each connection."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import uvicorn
from msgspec import Struct
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ragcommon.errors import StructuredError, os_reason

# Connections that wait to be accepted.
_BACKLOG = 2048
# Each connection takes a descriptor, and the usual limit is 1,024.
_DESCRIPTORS = 65_536


class AddressUnusable(StructuredError):
    """The server cannot listen at this address."""

    host: str
    port: int
    reason: str
    sentence = "The server cannot listen at {host}, port {port}: {reason}."
    hint = "Choose another with --host or --port; port 0 takes any free one."


class ConnectionLimits(Struct, frozen=True):
    """How long a connection may take, in seconds, and how large a request's head may be, in bytes."""

    head_seconds: float
    """From its first byte (or its opening) to the end of a request's head."""
    head_bytes: int
    idle_seconds: int
    """Between two requests."""
    finish_seconds: int
    """For open requests after the server was asked to stop."""


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes any free one. Raises AddressUnusable."""
    if not host:  # A socket would take "" for every address.
        raise AddressUnusable(host, port, "it is not a name or an address")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # Its error for an unknown name is clearer than that of create_server.
        socket.getaddrinfo(host, port, family)
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        # asyncio sets this on its own sockets only. Without it a body waits 40 ms until the head is
        # acknowledged.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        # create_server adds the address.
        raise AddressUnusable(host, port, os_reason(error).partition(" (while")[0]) from None


def listens_on_loopback(listening: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


def is_wildcard(listening: socket.socket) -> bool:
    """Whether it listens on every address of this machine."""
    return ipaddress.ip_address(listening.getsockname()[0]).is_unspecified


def raise_descriptor_limit() -> None:
    """Raise the limit of open descriptors as far as allowed, if there is one."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Listener(uvicorn.Server):
    """Serves `app` on a socket. It handles no signals; its owner calls `stop`."""

    def __init__(self, app: ASGIApp, limits: ConnectionLimits, tls: tuple[str, str] | None = None) -> None:
        """`tls` are the paths of a certificate and its private key. Raises OSError for unusable ones."""
        super().__init__(_config(app, limits, tls))
        self.servers = []  # Set by `startup`, before which it may be cancelled.
        self.started_listening = anyio.Event()
        self.stopped = anyio.Event()

    async def run_on(self, listening: socket.socket) -> None:
        """Serve until `stop`, and until open requests are answered, within bounds.

        Cancelled, it cancels the open requests and closes all connections.
        """
        try:
            await self.serve([listening])
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._abandon()
            raise
        self.stopped.set()

    def stop(self) -> None:
        """Accept no more connections; open requests may finish."""
        self.should_exit = True

    async def _abandon(self) -> None:
        # Requests are tasks of their own: they would go on, and open again what our owner then closes.
        for server in self.servers:
            server.close()
        for connection in [*self.server_state.connections]:
            connection.transport.close()
        if requests := [*self.server_state.tasks]:
            for request in requests:
                request.cancel()
            await asyncio.wait(requests)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.started_listening.set()


def _config(app: ASGIApp, limits: ConnectionLimits, tls: tuple[str, str] | None) -> uvicorn.Config:
    certificate, private_key = tls or (None, None)
    return uvicorn.Config(
        app,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
        http=partial(_Connection, limits),  # type: ignore[arg-type]  # Any callable that makes a protocol.
        ws="none",
        lifespan="off",
        # Requests are counted, not logged: their addresses and headers are private. Warnings about malformed
        # requests would let any client fill the log.
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        # A client could claim any address and use up another client's rate.
        proxy_headers=False,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=limits.finish_seconds,
    )


def _authority(target: bytes) -> bytes | None:
    """The host in a request target in absolute form; None for any other form.

    "An origin server MUST ignore the received Host header field (if any) and instead use the host information
    of the request-target." Source: RFC 9112, section 3.2.2.
    """
    _, separator, rest = target.partition(b"://")
    if not separator or target.startswith(b"/"):
        return None
    return re.split(rb"[/?#]", rest, maxsplit=1)[0]


class _Connection(HttpToolsProtocol):
    """A connection that bounds the time and the size of a request's head; uvicorn bounds neither.

    uvicorn has no public interface for this, so its class is extended, and pyproject.toml pins the release
    that the tests of slow and large heads have passed with.
    """

    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, limits: ConnectionLimits, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._limits = limits
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._deadline is not None:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes:
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        if (authority := _authority(self.url)) is not None:
            others = [header for header in self.headers if header[0] != b"host"]
            self.headers[:] = [*others, (b"host", authority)]
        super().on_headers_complete()

    def _await_head(self) -> None:
        if self._deadline is None:
            self._head_bytes = 0
            self._deadline = self.loop.call_later(self._limits.head_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:  # The previous request is still being answered.
            self._await_head()
