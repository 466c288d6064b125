"""`server/discover`, and the capabilities that every server announces. Source: basic/versioning."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from ragmcp.protocol.schema.base import CacheableResult, Wire


class ServerCapabilities(Wire, frozen=True, kw_only=True):
    """What the server offers; an empty object means yes."""

    tools: dict[str, Any] | UnsetType = UNSET
    resources: dict[str, Any] | UnsetType = UNSET
    prompts: dict[str, Any] | UnsetType = UNSET
    completions: dict[str, Any] | UnsetType = UNSET
    logging: dict[str, Any] | UnsetType = UNSET
    extensions: dict[str, Any] | UnsetType = UNSET


class DiscoverResult(CacheableResult, frozen=True, kw_only=True):
    """The answer to `server/discover`."""

    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | UnsetType = UNSET
