"""The types on the wire that only older revisions have: the handshake, and the choice of a log level.

Source: basic/lifecycle and server/utilities/logging of 2025-11-25.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from ragmcp.protocol.schema.base import Implementation, LogLevel, Params, Result
from ragmcp.protocol.schema.discovery import ServerCapabilities


class InitializeParams(Params, frozen=True, kw_only=True):
    """The client's half."""

    protocol_version: str
    client_info: Implementation
    capabilities: dict[str, Any]


class InitializeResult(Result, frozen=True, kw_only=True):
    """The server's half."""

    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | UnsetType = UNSET


class SetLevelParams(Params, frozen=True, kw_only=True):
    """The least severe level that a legacy client wants."""

    level: LogLevel
