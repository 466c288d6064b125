"""Which addresses a server may send the client to: public ones, and those in its own network.

The client requests addresses that a server names: redirects, endpoints, its metadata, its authorization
server. A remote server must not reach the services of this machine or of the private network that way
(server-side request forgery, CWE-918; basic/security_best_practices).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from contextlib import suppress
from enum import IntEnum
from socket import SOCK_STREAM
from typing import Any, Protocol

import anyio
import httpcore2  # a part of httpx2
import httpx2

from ragmcp.errors import RagMcpError

# A peer that is gone without a word, as after this machine slept or a VPN ended, is noticed within a minute:
# while a request waits, nothing is sent that could fail. In seconds; the last is in milliseconds, for what
# was sent. Not every system has all of them; macOS has its own name for the first.
_ALIVE = {"KEEPIDLE": 30, "KEEPALIVE": 30, "KEEPINTVL": 10, "KEEPCNT": 3, "USER_TIMEOUT": 60_000}
SOCKET_OPTIONS: list[httpcore2.SOCKET_OPTION] = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
    (socket.IPPROTO_TCP, option, value)
    for name, value in _ALIVE.items()
    if (option := getattr(socket, f"TCP_{name}", None)) is not None
]

# The next address is tried in parallel if one has not answered within this time (RFC 8305, 5).
NEXT_ADDRESS_SECONDS = 0.25


class Zone(IntEnum):
    """Where an address is, the most public first."""

    PUBLIC = 0
    RESERVED = 1
    LINK_LOCAL = 2
    PRIVATE = 3
    THIS_MACHINE = 4


WORDS = {
    Zone.PUBLIC: "public",
    Zone.RESERVED: "a reserved address",
    Zone.LINK_LOCAL: "on the local link",
    Zone.PRIVATE: "in a private network",
    Zone.THIS_MACHINE: "on this machine",
}
# RFC 1918, shared address space (RFC 6598), unique local and site-local addresses, local NAT64 (RFC 8215).
_RANGES = "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7 fec0::/10 64:ff9b:1::/48"
_PRIVATE = list(map(ipaddress.ip_network, _RANGES.split()))
# Their last four bytes are an IPv4 address: compatible, mapped and translated ones, NAT64.
_WITH_IPV4 = list(map(ipaddress.ip_network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))


class AddressRefused(RagMcpError):
    """A server referred to an address in a more private network than its own."""

    server: str
    target: str
    address: str
    place: str
    sentence = (
        "The server at {server} leads to {target} ({address}), which is {place}. "
        "The server itself is not there, so nothing was sent."
    )
    hint = "If both are yours, use the server's address in that network. If it has moved, connect again."


def zone_of(address: str) -> Zone:
    """The zone of an IP address; an IPv6 address that stands for an IPv4 one has the zone of that."""
    ip = ipaddress.ip_address(address)
    if ip.is_loopback or ip.is_unspecified:
        return Zone.THIS_MACHINE
    if isinstance(ip, ipaddress.IPv6Address):
        # Without its zone id: networks have none.
        plain = ipaddress.IPv6Address(int(ip))
        if any(plain in network for network in _WITH_IPV4):
            return zone_of(str(ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)))
        if tunnelled := plain.sixtofour or (plain.teredo and plain.teredo[1]):
            return zone_of(str(tunnelled))
    if ip.is_link_local:
        return Zone.LINK_LOCAL
    if any(ip in network for network in _PRIVATE):
        return Zone.PRIVATE
    return Zone.PUBLIC if ip.is_global and not ip.is_multicast else Zone.RESERVED


def is_loopback(host: str) -> bool:
    """Whether the host is this machine, which is reached without a proxy."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


async def addresses_of(host: str, port: int) -> list[str]:
    """The IP addresses of a host, the best first. Raises OSError."""
    # UnicodeError: the name cannot be encoded for a resolver.
    try:
        found = await anyio.getaddrinfo(host, port, type=SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"{host!r} is not a name of a host") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


# With a proxy, plain HTTP to this machine would leave it.
WITHOUT_PROXY = ("all://localhost", "all://*.localhost", "all://127.0.0.1", "all://[::1]")


class Addresses(Protocol):
    """Which addresses the connections of a client may lead to."""

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host that may be connected to. Raises OSError, and if none may."""

    def note_connection(self, host: str, address: str) -> None:
        """Record a connection to this address of the host."""


class Reach:
    """Where requests on behalf of the MCP server at `url` may go; `url` is without secrets.

    Connections to the server show where it is. The most public address seen so far counts, because a name can
    get another address at any time (DNS rebinding).
    """

    def __init__(self, url: str) -> None:
        self._url = httpx2.URL(url)
        self._zone: Zone | None = None

    async def check(self, url: str) -> None:
        """Raises AddressRefused if requests must not go there.

        A host that does not resolve here passes: a proxy may know it; without a proxy the connection fails.
        """
        target = httpx2.URL(url)
        with suppress(OSError):
            await self.addresses(_host(target), target.port or (80 if target.scheme == "http" else 443))

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host that may be connected to. Raises AddressRefused if none may; OSError."""
        found = await addresses_of(host, port)
        if self._zone is None and host == _host(self._url):
            return found
        server = await self._place()
        allowed = [address for address in found if _may_lead(server, zone_of(address))]
        if not allowed:
            raise AddressRefused(str(self._url), f"{host}:{port}", found[0], WORDS[zone_of(found[0])])
        return allowed

    def note_connection(self, host: str, address: str) -> None:
        """Record a connection to this address of the host."""
        if host == _host(self._url):
            zone = zone_of(address)
            self._zone = zone if self._zone is None else min(zone, self._zone)

    async def _place(self) -> Zone:
        """The zone of the server: of its connections so far, else of the addresses of its name."""
        if self._zone is not None:
            return self._zone
        try:
            return min(map(zone_of, await addresses_of(_host(self._url), 0)))
        except OSError:
            return Zone.PUBLIC


def _may_lead(server: Zone, target: Zone) -> bool:
    # This machine is part of its private network.
    return target in (Zone.PUBLIC, server) or (server, target) == (Zone.THIS_MACHINE, Zone.PRIVATE)


def _host(url: httpx2.URL) -> str:
    return url.raw_host.decode("ascii")


def guard(client: httpx2.AsyncClient, reach: Addresses) -> None:
    """Let the connections of a client lead only where `reach` allows; its proxies are the user's choice."""
    # Httpx2 has no parameter for the backend. If these names change, this raises instead of doing nothing.
    transport: Any = client._transport
    transport._pool._network_backend = _Guarded(reach, transport._pool._network_backend)


class _Guarded(httpcore2.AsyncNetworkBackend):
    """Connects to the addresses that were checked; TLS and `Host` still have the name."""

    def __init__(self, reach: Addresses, inner: httpcore2.AsyncNetworkBackend) -> None:
        self._reach = reach
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            with anyio.fail_after(timeout):
                addresses = await self._reach.addresses(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("its name was not resolved in time") from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        options = [*SOCKET_OPTIONS, *(socket_options or ())]
        connected: list[httpcore2.AsyncNetworkStream] = []
        failures: list[Exception] = []

        async def attempt(address: str, ended: anyio.Event) -> None:
            try:
                stream = await self._inner.connect_tcp(address, port, timeout, local_address, options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failures.append(error)
            else:
                connected.append(stream)
                if len(connected) == 1:
                    self._reach.note_connection(host, address)
                    tasks.cancel_scope.cancel()
            finally:
                ended.set()

        try:
            async with anyio.create_task_group() as tasks:
                for address in addresses:
                    tasks.start_soon(attempt, address, ended := anyio.Event())
                    with anyio.move_on_after(NEXT_ADDRESS_SECONDS):
                        await ended.wait()
            if not connected:
                raise failures[0]
            return connected.pop(0)
        finally:
            for stream in connected:  # the other connections of the race
                await stream.aclose()

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)
