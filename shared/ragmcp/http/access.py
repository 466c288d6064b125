"""Who may use a server over HTTP: allowed hosts and origins, the bearer token, the rate limit.

A web page that has bound its own name to our address (DNS rebinding) sends a foreign Host or Origin; programs
send no Origin. Source: basic/transports, "Security Warning".
"""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Awaitable, Callable
from math import ceil
from time import monotonic

from msgspec import Struct

from ragmcp.http import exchange
from ragmcp.http.errors import HeaderMismatch, HttpError
from ragmcp.http.exchange import App, Header, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

# As Host and Origin spell them. Unusual spellings (0x7f.1, a final dot) are refused: no ordinary client uses
# them.
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
ANY = "*"
# Addresses with a bucket; the least recently used bucket is evicted.
MAX_ADDRESSES = 10_000
PREFLIGHT_SECONDS = 600

# A name and an optional port; the name is compared as a whole, so its grammar does not matter.
_HOST = re.compile(r"(.+?)(?::([1-9][0-9]{0,4}))?", re.DOTALL)

_CHECKED_HEADERS = {b"host", b"origin", b"authorization"}
_CHECKED_HEADERS |= {b"access-control-request-method", b"access-control-request-headers"}


class HostNotAllowed(HttpError):
    """A foreign `Host`, as in DNS rebinding: a web page binds its own name to our address."""

    host: str
    code = "HOST_NOT_ALLOWED"
    status = 403
    sentence = "The host {host!r} is not allowed."
    hint = "Add the name to the allowed hosts of the server."


class OriginNotAllowed(HttpError):
    """A web page of an origin that is not on the list."""

    origin: str
    code = "ORIGIN_NOT_ALLOWED"
    status = 403
    sentence = "Pages from {origin!r} may not use this server."
    hint = "Add the origin to the allowed origins of the server."


class Unauthorized(HttpError):
    """No token, or a wrong one."""

    reason: str
    # Where the resource metadata says who gives tokens (RFC 9728); "" if there is no such metadata.
    metadata: str = ""
    code = "UNAUTHORIZED"
    status = 401
    sentence = "This server requires its token: {reason}."
    hint = "Send the server's token as `Authorization: Bearer …`."

    def headers(self) -> dict[str, str]:
        at = f', resource_metadata="{self.metadata}", scope="read"' if self.metadata else ""
        return {"www-authenticate": f'Bearer realm="mcp"{at}'}


class InsufficientScope(HttpError):
    """A valid token whose rights do not suffice. Source: basic/authorization, "Scope Challenge Handling"."""

    what: str
    scope: str
    metadata: str = ""
    code = "INSUFFICIENT_SCOPE"
    status = 403
    sentence = "This token may not use {what}, which needs the right {scope!r}."
    hint = "Ask for a token with that right."

    def headers(self) -> dict[str, str]:
        at = f', resource_metadata="{self.metadata}"' if self.metadata else ""
        return {"www-authenticate": f'Bearer error="insufficient_scope", scope="{self.scope}"{at}'}


class RateLimited(HttpError):
    """Too many requests from one address."""

    retry_after: int
    code = "RATE_LIMITED"
    status = 429
    sentence = "Too many requests; try again in {retry_after} s."

    def headers(self) -> dict[str, str]:
        return {"retry-after": str(self.retry_after)}


class Access(Struct, frozen=True, kw_only=True):
    """The rules. Loopback names are always allowed, with any port."""

    # The names and addresses of this server, without port, in lower case. "*" allows any: then only a token
    # keeps web pages out.
    allowed_hosts: frozenset[str] = frozenset()
    # As browsers send them, in lower case, such as https://example.org.
    allowed_origins: frozenset[str] = frozenset()
    # None: no token is required.
    token: str | None = None
    # For one address; 0: no limit. After a pause `burst` requests may come at once.
    requests_per_second: float = 0
    burst: int = 1

    def __repr__(self) -> str:
        return f"Access(token={'set' if self.token else None})"  # The repr may be logged.


class Buckets:
    """Token buckets by address: `rate` tokens a second, up to `burst` of them. Pure."""

    def __init__(self, rate: float, burst: int, max_addresses: int = MAX_ADDRESSES) -> None:
        self._rate = rate
        self._burst = burst
        self._max_addresses = max_addresses
        # The tokens of an address, and when they were counted; the most recently used is last.
        self._buckets: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def wait(self, address: str, now: float) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        tokens, then = self._buckets.pop(address, (float(self._burst), now))
        tokens = min(self._burst, tokens + (now - then) * self._rate)
        self._buckets[address] = max(tokens - 1, 0) if tokens >= 1 else tokens, now
        if len(self._buckets) > self._max_addresses:
            del self._buckets[next(iter(self._buckets))]
        return 0 if tokens >= 1 else (1 - tokens) / self._rate


class Guard:
    """Lets requests through to ASGI applications by these rules."""

    def __init__(
        self,
        access: Access,
        clock: Callable[[], float] = monotonic,
        on_refused: Callable[[HttpError], None] = lambda _: None,
        authorize: Callable[[Scope, str | None], Awaitable[None]] | None = None,
    ) -> None:
        """`clock` is in seconds; `on_refused` is called with the reason for each refusal.

        `authorize` gets what passed these rules, with its `Authorization`, and raises HttpError to refuse it.
        """
        self._on_refused = on_refused
        self._authorize = authorize
        self._access = access
        self._hosts = LOOPBACK | {f"[{name}]" if ":" in name else name for name in access.allowed_hosts}
        self._token = None if access.token is None else access.token.encode()
        self._buckets = (
            Buckets(access.requests_per_second, access.burst) if access.requests_per_second else None
        )
        self._clock = clock

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
            self._check_rate(scope)
            self._check_token(headers.get(b"authorization"))
            if self._authorize is not None:
                await self._authorize(scope, headers.get(b"authorization"))
        except HttpError as error:
            log.info("Refused a request: %s", error)
            self._on_refused(error)
            await exchange.respond_error(send, error, error.status)
            return
        await app(scope, receive, send)

    def _check_host(self, host: str) -> None:
        if ANY not in self._hosts and _name(host) not in self._hosts:
            raise HostNotAllowed(host)

    def _check_origin(self, origin: str) -> None:
        if origin.lower() not in self._access.allowed_origins and not _is_loopback_origin(origin):
            raise OriginNotAllowed(origin)

    def _check_rate(self, scope: Scope) -> None:
        if self._buckets is not None and (
            wait := self._buckets.wait(exchange.client_address(scope), self._clock())
        ):
            raise RateLimited(ceil(wait))

    def _check_token(self, given: str | None) -> None:
        if self._token is None:
            return
        if given is None:
            raise Unauthorized("none was sent")
        if not hmac.compare_digest(bearer_token(given).encode("latin-1"), self._token):
            raise Unauthorized("the token sent is wrong")


def bearer_token(authorization: str) -> str:
    """The token of an `Authorization` header; "" for another scheme."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


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
