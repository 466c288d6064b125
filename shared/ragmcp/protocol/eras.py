"""Five revisions in two eras: the era of a request, and the era of a server from its answer to a probe. Pure.

Modern (2026-07-28): stateless; every request has its revision, client and capabilities in `_meta`.
Legacy: `initialize` negotiates them for the connection. The legacy part is small on purpose and can be
removed: `ConnectionState`, and the branches that name LEGACY.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from ragmcp.errors import InvalidParams, MissingCapability, UnsupportedRevision, WireError
from ragmcp.protocol.decoding import DECODE_ERRORS
from ragmcp.protocol.schema import base
from ragmcp.protocol.schema.discovery import DiscoverResult

MODERN_REVISIONS = ("2026-07-28",)
LEGACY_REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
LATEST_MODERN = MODERN_REVISIONS[0]
LATEST_LEGACY = LEGACY_REVISIONS[0]

# The only revision with JSON-RPC batches: 2025-06-18 took them out again.
BATCH_REVISION = "2025-03-26"

HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = UnsupportedRevision.rpc_code
# The first revision in which arguments that do not fit a tool's schema are a result with `isError`, which a
# model sees and can act on (SEP-1303); before, they are a JSON-RPC error.
ARGUMENT_RESULTS_SINCE = "2025-11-25"

# Errors only a modern server sends; any other error to the probe means a legacy one.
MODERN_ERRORS = frozenset({HEADER_MISMATCH, MissingCapability.rpc_code, UNSUPPORTED_VERSION})


class Era(StrEnum):
    """Whether each request or the connection has the revision, client and capabilities."""

    MODERN = "modern"
    LEGACY = "legacy"


class Terms(Struct, frozen=True):
    """The revision under which a request is answered, and its client and capabilities as declared there."""

    era: Era
    revision: str
    client: base.Implementation
    capabilities: Mapping[str, Any]


class ConnectionState(Struct):
    """The terms that `initialize` sets for one legacy connection: the only state that outlives a request.

    `id` tells the sessions of clients apart; `host` is the address of the client's machine, "" for this one's
    pipes.
    """

    id: str = ""
    host: str = ""
    terms: Terms | None = None
    log_level: base.LogLevel = "info"  # For a client that sets none "the server MAY decide".
    subscriptions: set[str] = set()  # URIs of resources.

    @property
    def batches(self) -> bool:
        """Whether a batch may come."""
        return self.terms is not None and self.terms.revision == BATCH_REVISION

    def admit(self, method: str, params: base.Params) -> Terms:
        """The terms of one request. Raises InvalidParams, UnsupportedRevision."""
        if params.meta.protocol_version is not UNSET and method != "initialize":
            return _modern_terms(params.meta, params.meta.protocol_version)
        if self.terms is not None:
            return self.terms
        if method in ("initialize", "ping"):  # The requests that may come before the end of the handshake.
            return Terms(Era.LEGACY, LATEST_LEGACY, base.UNKNOWN, {})
        raise InvalidParams(
            f"$._meta['{base.PROTOCOL_VERSION}']",
            "it is required, unless the connection began with initialize",
        )


def _modern_terms(meta: base.RequestMeta, revision: str) -> Terms:
    if revision not in MODERN_REVISIONS:
        raise UnsupportedRevision(revision, MODERN_REVISIONS)
    if meta.client_capabilities is UNSET:
        raise InvalidParams(f"$._meta['{base.CLIENT_CAPABILITIES}']", "it is required")
    return Terms(Era.MODERN, revision, meta.client_info, meta.client_capabilities)


def verdict(answer: Raw | WireError | None) -> str | None:
    """The modern revision to speak with a server, from its answer to `server/discover` (None: silence).

    None: a legacy server. Raises UnsupportedRevision for a modern server with which we share no revision.
    """
    if answer is None:
        return None
    if isinstance(answer, WireError):
        if answer.code == UNSUPPORTED_VERSION:
            return _mutual(_supported(answer.data))
        return LATEST_MODERN if answer.code in MODERN_ERRORS else None
    try:
        offered = msgspec.json.decode(answer, type=DiscoverResult).supported_versions
    except DECODE_ERRORS:
        return None
    # A server that answers the probe but lists only handshake revisions is a legacy server.
    return None if not set(offered) - set(LEGACY_REVISIONS) else _mutual(offered)


def _supported(data: Any) -> Sequence[str]:
    offered = data.get("supported") if isinstance(data, dict) else None
    return [item for item in offered if isinstance(item, str)] if isinstance(offered, list) else ()


def _mutual(offered: Sequence[str]) -> str | None:
    for revision in MODERN_REVISIONS:
        if revision in offered:
            return revision
    if set(offered) & set(LEGACY_REVISIONS):
        return None
    raise UnsupportedRevision(LATEST_MODERN, offered)
