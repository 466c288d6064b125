"""Who may use a server over HTTP: allowed hosts and origins, and what else a program requires.

A web page that has bound its own name to our address (DNS rebinding) sends a foreign Host or Origin; programs
send no Origin. Source: basic/transports, "Security Warning".
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TypeAlias

from msgspec import Struct

from ragmcp.http import exchange
from ragmcp.http.errors import HeaderMismatch, HttpError
from ragmcp.http.exchange import App, Header, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

# As Host and Origin spell them. Unusual spellings (0x7f.1, a final dot) are refused: no ordinary client uses
# them.
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
ANY = "*"
PREFLIGHT_SECONDS = 600

# A name and an optional port; the name is compared as a whole, so its grammar does not matter.
_HOST = re.compile(r"(.+?)(?::([1-9][0-9]{0,4}))?", re.DOTALL)

# Gets a request and its `Authorization` header; raises HttpError to refuse it.
Authorize: TypeAlias = Callable[[Scope, str | None], Awaitable[None]]

_CHECKED_HEADERS = {b"host", b"origin", b"authorization"}
_CHECKED_HEADERS |= {b"access-control-request-method", b"access-control-request-headers"}


class HostNotAllowed(HttpError):
    """A foreign `Host`, as in DNS rebinding: a web page binds its own name to our address."""

    host: str
    status = 403
    sentence = "The host {host!r} is not allowed."
    hint = "Add the name to the allowed hosts of the server."


class OriginNotAllowed(HttpError):
    """A web page of an origin that is not on the list."""

    origin: str
    status = 403
    sentence = "Pages from {origin!r} may not use this server."
    hint = "Add the origin to the allowed origins of the server."


class Access(Struct, frozen=True, kw_only=True):
    """The rules. Loopback names are always allowed, with any port."""

    # The names and addresses of this server, without port, in lower case. "*" allows any: then only a token
    # keeps web pages out.
    allowed_hosts: frozenset[str] = frozenset()
    # As browsers send them, in lower case, such as https://example.org.
    allowed_origins: frozenset[str] = frozenset()


class Guard(Struct, frozen=True):
    """Lets requests through to ASGI applications by these rules."""

    access: Access
    on_refused: Callable[[HttpError], None] = lambda _: None
    """Called with the reason for each refusal."""
    authorize: Authorize | None = None
    """Gets what passed the rules."""

    async def admit(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to `app`, or answer why not."""
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        try:
            headers = _checked_headers(scope["headers"])
            self._check_host(headers.get(b"host", ""))
            if (origin := headers.get(b"origin")) is not None:
                self._check_origin(origin)
                if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
                    await exchange.respond(send, 204, extra=_preflight(origin, headers))
                    return
                send = _readable_by(origin, send)
            if self.authorize is not None:
                await self.authorize(scope, headers.get(b"authorization"))
        except HttpError as error:
            log.info("Refused %s for %r: %s", (scope.get("client") or "?")[0], scope.get("path"), error)
            self.on_refused(error)
            await exchange.respond_error(send, error, error.status)
            return
        await app(scope, receive, send)

    def _check_host(self, host: str) -> None:
        names = _as_written(self.access.allowed_hosts)
        if ANY not in names and _name(host) not in names:
            raise HostNotAllowed(host)

    def _check_origin(self, origin: str) -> None:
        if origin.lower() not in self.access.allowed_origins and not _is_loopback_origin(origin):
            raise OriginNotAllowed(origin)


# For the programs and pages of this machine.
LOCAL = Guard(Access())


def _checked_headers(headers: list[Header]) -> dict[bytes, str]:
    found: dict[bytes, str] = {}
    for name, value in headers:
        if name in _CHECKED_HEADERS:
            if name in found:
                raise HeaderMismatch(name.decode(), "occurs more than once")
            found[name] = value.decode("latin-1").strip(" \t")
    return found


@cache
def _as_written(hosts: frozenset[str]) -> frozenset[str]:
    """These names and those of this machine, as `Host` spells them."""
    return LOOPBACK | {f"[{name}]" if ":" in name else name for name in hosts}


def _name(host: str) -> str:
    """A host without its port, in lower case; "" for one with an impossible port."""
    found = _HOST.fullmatch(host)
    if found is None or int(found[2] or 0) > 65_535:
        return ""
    return found[1].lower()


def _is_loopback_origin(origin: str) -> bool:
    scheme, _, host = origin.partition("://")
    return scheme.lower() in ("http", "https") and _name(host) in LOOPBACK


def _preflight(origin: str, headers: dict[bytes, str]) -> list[Header]:
    wanted = headers.get(b"access-control-request-headers", "")
    return [
        *_allow(origin),
        (b"access-control-allow-methods", b"POST, GET, DELETE"),
        # An allowed origin may send any header: Mcp-Param-* cannot be listed.
        (b"access-control-allow-headers", wanted.encode("latin-1")),
        (b"access-control-max-age", b"%d" % PREFLIGHT_SECONDS),
    ]


def _allow(origin: str) -> list[Header]:
    return [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin")]


def _readable_by(origin: str, send: Send) -> Send:
    """Let a page of an allowed origin read the response."""

    async def send_on(message: Message) -> None:
        if message["type"] == "http.response.start":
            exposed = (b"access-control-expose-headers", b"mcp-session-id, www-authenticate, retry-after")
            message["headers"] = [*message.get("headers", []), *_allow(origin), exposed]
        await send(message)

    return send_on
