"""What all requests, notifications and results share."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field

from ragmcp.errors import WireError

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"

# RFC 5424, from the least to the most severe.
LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class Wire(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The base of all wire types."""


class Implementation(Wire, frozen=True, kw_only=True):
    """The name of a client or server; self-reported, for display and logs only."""

    name: str
    version: str


UNKNOWN = Implementation(name="unknown", version="unknown")


# Requests


class RequestMeta(Wire, frozen=True, kw_only=True):
    """`_meta` of a request; from 2026-07-28 on it carries what the handshake used to."""

    protocol_version: str | UnsetType = field(name=PROTOCOL_VERSION, default=UNSET)
    client_info: Implementation = field(name=CLIENT_INFO, default=UNKNOWN)
    client_capabilities: dict[str, Any] | UnsetType = field(name=CLIENT_CAPABILITIES, default=UNSET)
    log_level: LogLevel | UnsetType = field(name=LOG_LEVEL, default=UNSET)
    progress_token: int | str | UnsetType = UNSET
    # W3C Trace Context, which names no vendor and therefore has no prefix.
    traceparent: str | UnsetType = UNSET


NO_META = RequestMeta()


class Params(Wire, frozen=True, kw_only=True):
    """The parameters of any request."""

    meta: RequestMeta = field(name="_meta", default=NO_META)


class ListParams(Params, frozen=True, kw_only=True):
    """Which page of a list."""

    cursor: str | UnsetType = UNSET


class RetryableParams(Params, frozen=True, kw_only=True):
    """The parameters of a request that may be repeated with the input the server asked for (modern)."""

    input_responses: dict[str, Raw] = {}
    request_state: str | UnsetType = UNSET


class CancelledParams(Wire, frozen=True, kw_only=True):
    """`notifications/cancelled`."""

    request_id: int | str


class ProgressParams(Wire, frozen=True, kw_only=True):
    """`notifications/progress`."""

    progress_token: int | str
    progress: float
    total: float | None = None
    message: str | None = None


# Results


class Result(Wire, frozen=True, kw_only=True):
    """The fields of every result; `resultType` and `_meta` exist from 2026-07-28 on."""

    result_type: str | UnsetType = UNSET
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class CacheableResult(Result, frozen=True, kw_only=True):
    """A result with caching hints: fresh for `ttlMs` milliseconds."""

    ttl_ms: int | UnsetType = UNSET
    cache_scope: str | UnsetType = UNSET


class Page(CacheableResult, frozen=True, kw_only=True):
    """One page of a list; `nextCursor` leads to the next one."""

    next_cursor: str | UnsetType = UNSET


class EmptyResult(Result, frozen=True, kw_only=True):
    """Success without data."""


# Errors


class ErrorObject(Struct, frozen=True, omit_defaults=True):
    """JSON-RPC's error object."""

    code: int
    message: str
    data: Any = UNSET

    def as_error(self, http_status: int = 0) -> WireError:
        """The exception that the request raises."""
        return WireError(self.code, self.message, None if self.data is UNSET else self.data, http_status)
