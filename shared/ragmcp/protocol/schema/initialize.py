"""The handshake of older revisions. Source: basic/lifecycle of 2025-11-25."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from ragmcp.protocol.schema.base import Implementation, Params, Result
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
