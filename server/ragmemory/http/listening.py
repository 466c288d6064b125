"""The listening socket, and uvicorn on it: stopped by us, and patient with no client for ever."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn
from msgspec import Struct
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ragmemory.errors import AddressUnusable

# Connections that the system keeps for us until we take them.
_BACKLOG = 2048
# A server for many needs more descriptors than a program usually gets; one is taken by each connection.
_DESCRIPTORS = 65_536


class Patience(Struct, frozen=True):
    """How long a connection may take, in seconds, and how much it may send before it has asked anything."""

    head_seconds: float
    """From its first byte (or its opening) to the end of a request's head."""
    head_bytes: int
    idle_seconds: int
    """Between two requests."""
    finish_seconds: int
    """For what is being answered when the server is told to stop."""


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes any free one. Raises AddressUnusable."""
    if not host:  # For sockets that is every address there is, which nobody has asked for.
        raise AddressUnusable(host, port, "it is no name or address")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.getaddrinfo(host, port, family)  # create_server loses the words for a name nobody knows.
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        # Asyncio does so for its own sockets only; else a response's body waits 40 ms for its head's receipt.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except socket.gaierror as error:
        reason = error.strerror or str(error)
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    raise AddressUnusable(host, port, reason[:1].lower() + reason[1:])


def is_loopback(listening: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


def raise_descriptor_limit() -> None:
    """As far as this user may, where there is such a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Listener(uvicorn.Server):
    """Serves `app` on a socket. Signals are its owner's concern, who calls `stop`."""

    def __init__(self, app: ASGIApp, patience: Patience) -> None:
        super().__init__(_Config(app, patience))
        self.started_listening = anyio.Event()
        self.stopped = anyio.Event()

    async def run_on(self, listening: socket.socket) -> None:
        """Serve until `stop`, and until those who are being answered have their answers, within bounds."""
        await self.serve([listening])
        self.stopped.set()

    def stop(self) -> None:
        """Take no more connections; what is being answered may finish."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.started_listening.set()


class _Config(uvicorn.Config):
    def __init__(self, app: ASGIApp, patience: Patience) -> None:
        super().__init__(
            app,
            http=_Connection,
            ws="none",
            lifespan="off",
            # Requests are counted, not logged: their addresses and headers are nobody's business.
            log_config=None,
            access_log=False,
            server_header=False,
            # Whoever can reach us could claim any address, and with it another's share of the rate.
            proxy_headers=False,
            timeout_keep_alive=patience.idle_seconds,
            timeout_graceful_shutdown=patience.finish_seconds,
        )
        self.patience = patience

    def configure_logging(self) -> None:
        # Whoever can reach us could fill the log with what he sends wrong; he is told, that is enough.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


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
    """uvicorn's, which waits without end for a head that comes byte by byte, and keeps all of it."""

    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, config: _Config, *arguments: Any, **named: Any) -> None:
        super().__init__(config, *arguments, **named)
        self._patience = config.patience
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_here()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._deadline is not None:
            self._head_bytes += len(data)
            if self._head_bytes > self._patience.head_bytes:
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._head_is_here()
        if (authority := _authority(self.url)) is not None:
            others = [header for header in self.headers if header[0] != b"host"]
            self.headers[:] = [*others, (b"host", authority)]
        super().on_headers_complete()

    def _await_head(self) -> None:
        if self._deadline is None:
            self._head_bytes = 0
            self._deadline = self.loop.call_later(self._patience.head_seconds, self._give_up)

    def _head_is_here(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:  # An answer is on its way, and the next question behind it.
            self._await_head()
