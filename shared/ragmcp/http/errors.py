"""What can go wrong with MCP over HTTP only. What stands below HttpError never reaches a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ragmcp.errors import RagMcpError, RemoteProtocolError


class HttpError(RemoteProtocolError):
    """A request that HTTP itself, or MCP's rules for it, let go no further."""

    # Of the response.
    status: ClassVar[int] = 400

    def headers(self) -> dict[str, str]:
        """What the response has to say besides."""
        return {}


@dataclass(eq=False)
class HeaderMismatch(HttpError):
    """A header that is missing, unreadable or says something else than the body."""

    code = "HEADER_MISMATCH"
    rpc_code = -32020
    header: str
    reason: str

    def __str__(self) -> str:
        return f"Header mismatch: {self.header} {self.reason}."


@dataclass(eq=False)
class HostNotAllowed(HttpError):
    """A foreign `Host`: what a page does that has bound its own name to our address."""

    code = "HOST_NOT_ALLOWED"
    status = 403
    host: str
    hint: str = "Add the name to the allowed hosts of the server."

    def __str__(self) -> str:
        return f"This server is not called {self.host!r}."


@dataclass(eq=False)
class OriginNotAllowed(HttpError):
    """A web page that has no business here."""

    code = "ORIGIN_NOT_ALLOWED"
    status = 403
    origin: str
    hint: str = "Add the origin to the allowed origins of the server."

    def __str__(self) -> str:
        return f"Pages from {self.origin!r} may not use this server."


@dataclass(eq=False)
class Unauthorized(HttpError):
    """No token, or another one."""

    code = "UNAUTHORIZED"
    status = 401
    reason: str
    hint: str = "Send the server's token as `Authorization: Bearer …`."

    def __str__(self) -> str:
        return f"This server wants its token: {self.reason}."

    def headers(self) -> dict[str, str]:
        return {"www-authenticate": 'Bearer realm="mcp"'}


@dataclass(eq=False)
class RateLimited(HttpError):
    """Too many requests from one address."""

    code = "RATE_LIMITED"
    status = 429
    retry_after: int

    def __str__(self) -> str:
        return f"Too many requests; the next one is welcome in {self.retry_after} s."

    def headers(self) -> dict[str, str]:
        return {"retry-after": str(self.retry_after)}


@dataclass(eq=False)
class HttpMethodNotAllowed(HttpError):
    """GET where only POST makes sense, and the like."""

    code = "HTTP_METHOD_NOT_ALLOWED"
    status = 405
    method: str
    allowed: Sequence[str]

    def __str__(self) -> str:
        return f"{self.method} is not possible here; possible: {', '.join(self.allowed)}."

    def headers(self) -> dict[str, str]:
        return {"allow": ", ".join(self.allowed)}


@dataclass(eq=False)
class NotAcceptable(HttpError):
    """A client that could not read the answer."""

    code = "NOT_ACCEPTABLE"
    status = 406
    required: Sequence[str]

    def __str__(self) -> str:
        return f"The Accept header must list {' and '.join(self.required)}."


@dataclass(eq=False)
class UnsupportedMediaType(HttpError):
    """A body that is not said to be plain JSON."""

    code = "UNSUPPORTED_MEDIA_TYPE"
    status = 415
    given: str

    def __str__(self) -> str:
        return f"The body must be application/json, uncompressed; this one is {self.given or 'not labelled'}."


@dataclass(eq=False)
class HeadersTooLarge(HttpError):
    """More headers, or longer ones, than a request needs."""

    code = "HEADERS_TOO_LARGE"
    status = 431
    reason: str

    def __str__(self) -> str:
        return f"The headers are too large: {self.reason}."


@dataclass(eq=False)
class BodyTooLarge(HttpError):
    """A body over the limit; the rest of it is not read."""

    code = "BODY_TOO_LARGE"
    status = 413
    limit: int
    hint: str = "Send less at once, or raise the limit on message size of the server."

    def __str__(self) -> str:
        return f"The body is over the limit of {self.limit:,} bytes."

    def headers(self) -> dict[str, str]:
        return {"connection": "close"}


@dataclass(eq=False)
class BodyTooSlow(HttpError):
    """A body that did not arrive in time."""

    code = "BODY_TOO_SLOW"
    status = 408
    seconds: float

    def __str__(self) -> str:
        return f"The body did not arrive within {self.seconds:g} s."

    def headers(self) -> dict[str, str]:
        return {"connection": "close"}


@dataclass(eq=False)
class SessionRequired(HttpError):
    """A legacy request that belongs to no session."""

    code = "SESSION_REQUIRED"
    method: str
    hint: str = "Send initialize first, or the headers and _meta of a revision that has no sessions."

    def __str__(self) -> str:
        return f"{self.method or 'It'} needs the header Mcp-Session-Id, which initialize gives."


@dataclass(eq=False)
class SessionNotFound(HttpError):
    """A session that has ended, or never was. Its id is a secret and not repeated."""

    code = "SESSION_NOT_FOUND"
    status = 404
    hint: str = "Begin a new one with initialize."

    def __str__(self) -> str:
        return "There is no such session, or none any more."


@dataclass(eq=False)
class TooManyOpen(HttpError):
    """No room for one more `what`, and none that could go instead."""

    code = "TOO_MANY_OPEN"
    rpc_code = -32603
    status = 503
    what: str
    limit: int

    def __str__(self) -> str:
        return f"There are {self.limit:,} {self.what} already, which is the limit; try again later."

    def headers(self) -> dict[str, str]:
        return {"retry-after": "5"}


@dataclass(eq=False)
class ServerLeaving(HttpError):
    """The server is shutting down."""

    code = "SERVER_LEAVING"
    rpc_code = -32603
    status = 503

    def __str__(self) -> str:
        return "The server is shutting down."


HTTP_HINTS: Mapping[int, str] = {
    401: "The server wants a token: give it the one it was started with.",
    403: "The server does not let this client in: check the token, and how the server may be addressed.",
    404: "Check the path of the address; an MCP server usually answers at /mcp.",
    405: "Check the path of the address; an MCP server usually answers at /mcp.",
    413: "Send less at once, or raise the server's limit.",
    429: "Wait a little; the server limits how often it is asked.",
}


@dataclass(eq=False)
class HttpRefused(RagMcpError):
    """The server answered with an HTTP status instead of an MCP message."""

    code: ClassVar[str] = "HTTP_REFUSED"
    url: str
    status: int
    reason: str

    def __post_init__(self) -> None:
        self.hint = HTTP_HINTS.get(self.status, "")

    def __str__(self) -> str:
        return f"The server at {self.url} answered with HTTP status {self.status}: {self.reason}."
