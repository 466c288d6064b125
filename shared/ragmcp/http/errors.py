"""Errors of MCP over HTTP. An HttpError is raised before any method is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ragmcp.errors import RagMcpError, RemoteProtocolError
from ragmcp.protocol.eras import HEADER_MISMATCH


class HttpError(RemoteProtocolError):
    """A request that breaks the rules of HTTP, or those of MCP over HTTP."""

    status: ClassVar[int] = 400  # of the response
    own_headers: ClassVar[dict[str, str]] = {}  # of the response, if they are always the same

    def headers(self) -> dict[str, str]:
        """Further headers of the response."""
        return self.own_headers


class HeaderMismatch(HttpError):
    """A header that is missing, unreadable or differs from the body."""

    header: str
    reason: str
    rpc_code = HEADER_MISMATCH
    sentence = "Header mismatch: {header} {reason}."


class HttpMethodNotAllowed(HttpError):
    method: str
    allowed: Sequence[str]
    status = 405
    sentence = "{method} is not allowed here; allowed: {allowed}."

    def headers(self) -> dict[str, str]:
        return {"allow": ", ".join(self.allowed)}


class NotAcceptable(HttpError):
    """The client does not accept the types of the response."""

    required: Sequence[str]
    status = 406
    sentence = "The Accept header must list {required}."


class UnsupportedMediaType(HttpError):
    """A body that is not declared as plain JSON."""

    given: str
    status = 415
    sentence = "The body must be application/json, uncompressed; this one is {given}."


class HeadersTooLarge(HttpError):
    """More headers, or longer ones, than the limit."""

    reason: str
    status = 431
    sentence = "The headers are too large: {reason}."


class BodyTooLarge(HttpError):
    """A body over the limit; the rest of it is not read."""

    limit: int
    status = 413
    sentence = "The body is over the limit of {limit:,} bytes."
    hint = "Send less at once, or raise the limit on message size of the server."
    own_headers = {"connection": "close"}


class BodyTooSlow(HttpError):
    """A body that did not arrive in time."""

    seconds: float
    status = 408
    sentence = "The body did not arrive within {seconds:g} s."
    own_headers = {"connection": "close"}


class SessionRequired(HttpError):
    """A legacy request without a session."""

    method: str
    sentence = "{method} needs the header Mcp-Session-Id, which initialize returns."
    hint = "Send initialize first, or the headers and _meta of a revision that has no sessions."


class SessionNotFound(HttpError):
    """A session that has ended or never existed. The sentence omits its id, which is a secret."""

    status = 404
    sentence = "The session does not exist or has ended."
    hint = "Start a new one with initialize."


class TooManyOpen(HttpError):
    """The limit on `what` is reached, and none of them can be evicted."""

    what: str
    limit: int
    rpc_code = -32603
    status = 503
    sentence = "The limit of {limit:,} {what} is reached; try again later."
    own_headers = {"retry-after": "5"}


class ServerLeaving(HttpError):
    rpc_code = -32603
    status = 503
    sentence = "The server is shutting down."


HINTS: Mapping[int, str] = {
    401: "Pass a token that the server accepts for this address.",
    403: "The server rejects this client: check the token, and which hosts and origins the server allows.",
    404: "Check the path of the address; an MCP server usually answers at /mcp.",
    405: "Check the path of the address; an MCP server usually answers at /mcp.",
    413: "Send less at once, or raise the server's limit.",
    429: "Wait a little; the server limits the rate of requests.",
}


class HttpRefused(RagMcpError):
    """The server answered with an HTTP status instead of an MCP message.

    `error_code` is the stable word of our own servers, "" from others.
    """

    url: str
    status: int
    reason: str
    error_code: str = ""
    code: ClassVar[str] = "HTTP_REFUSED"
    sentence = "The server at {url} answered with HTTP status {status}: {reason}."
    hint = "{advice}"

    @property
    def advice(self) -> str:
        return HINTS.get(self.status, "")
