"""Typed objects of the wire: what the methods we speak take and give. Pure data, named as in the schema.

Unknown fields are ignored, as the specification asks; what is UNSET is not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"

# RFC 5424, from the least to the most severe.
LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

# Lists that change with the program only: five minutes spare a host the question without hiding an update.
FRESH_MS = 300_000


class Wire(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The habits all wire objects share."""


class Implementation(Wire, frozen=True, kw_only=True):
    """Who is speaking; self-reported, for display and logs only."""

    name: str
    version: str
    title: str | UnsetType = UNSET


# Requests


class RequestMeta(Wire, frozen=True, kw_only=True):
    """`_meta` of a request; from 2026-07-28 on it carries what the handshake used to."""

    protocol_version: str | UnsetType = field(name=PROTOCOL_VERSION, default=UNSET)
    client_info: Implementation | UnsetType = field(name=CLIENT_INFO, default=UNSET)
    client_capabilities: dict[str, Any] | UnsetType = field(name=CLIENT_CAPABILITIES, default=UNSET)
    log_level: LogLevel | UnsetType = field(name=LOG_LEVEL, default=UNSET)
    progress_token: int | str | UnsetType = UNSET
    # W3C Trace Context, which names no vendor and therefore has no prefix.
    traceparent: str | UnsetType = UNSET
    tracestate: str | UnsetType = UNSET


NO_META = RequestMeta()


class Params(Wire, frozen=True, kw_only=True):
    """The parameters of any request."""

    meta: RequestMeta = field(name="_meta", default=NO_META)


class InitializeParams(Params, frozen=True, kw_only=True):
    """The legacy handshake."""

    protocol_version: str
    client_info: Implementation
    capabilities: dict[str, Any]


class ListParams(Params, frozen=True, kw_only=True):
    """One page of a list."""

    cursor: str | UnsetType = UNSET


class RetryableParams(Params, frozen=True, kw_only=True):
    """The parameters of a request that may be made again with what the server asked for (modern)."""

    input_responses: dict[str, Raw] = {}
    request_state: str | UnsetType = UNSET

    def salient(self) -> Any:
        """What makes it this request and no other, however it is written. Raises as decoding does."""


class CallToolParams(RetryableParams, frozen=True, kw_only=True):
    """A tool call; the tool knows the type of its arguments and decodes them."""

    name: str
    arguments: Raw = Raw(b"{}")

    def salient(self) -> Any:
        return [self.name, msgspec.json.decode(self.arguments)]


class ToolCall(RetryableParams, frozen=True, kw_only=True):
    """The same from the caller's side."""

    name: str
    arguments: Mapping[str, Any]


class CancelledParams(Wire, frozen=True, kw_only=True):
    """`notifications/cancelled`."""

    request_id: int | str
    reason: str | UnsetType = UNSET


class ProgressParams(Wire, frozen=True, kw_only=True):
    """`notifications/progress`."""

    progress_token: int | str
    progress: float
    total: float | UnsetType | None = UNSET
    message: str | UnsetType | None = UNSET


# Content


class ResourceContents(Wire, frozen=True, kw_only=True):
    """What is in a resource: either `text`, or `blob` in base64."""

    uri: str
    mime_type: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET


class _Content(Wire, frozen=True, kw_only=True):
    """What all content can carry: for whom it is, how much it matters."""

    annotations: dict[str, Any] | UnsetType = UNSET


class TextContent(_Content, frozen=True, kw_only=True, tag="text"):
    """Text for the model."""

    text: str


class ImageContent(_Content, frozen=True, kw_only=True, tag="image"):
    """An image, base64."""

    data: str
    mime_type: str


class AudioContent(_Content, frozen=True, kw_only=True, tag="audio"):
    """Sound, base64 (2025-03-26 and later)."""

    data: str
    mime_type: str


class EmbeddedResource(_Content, frozen=True, kw_only=True, tag="resource"):
    """A resource's contents, carried along."""

    resource: ResourceContents


class ResourceLink(_Content, frozen=True, kw_only=True, tag="resource_link"):
    """A pointer to a resource (2025-06-18 and later)."""

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET


Content: TypeAlias = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink


# Results


class Result(Wire, frozen=True, kw_only=True):
    """What every result can carry; `resultType` and `_meta` exist from 2026-07-28 on."""

    result_type: str | UnsetType = UNSET
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class CacheableResult(Result, frozen=True, kw_only=True):
    """A result with caching hints: fresh for `ttlMs` milliseconds."""

    ttl_ms: int | UnsetType = UNSET
    cache_scope: str | UnsetType = UNSET


class ToolAnnotations(Wire, frozen=True, kw_only=True):
    """Hints about a tool, never guarantees."""

    read_only_hint: bool | UnsetType = UNSET
    destructive_hint: bool | UnsetType = UNSET
    idempotent_hint: bool | UnsetType = UNSET
    open_world_hint: bool | UnsetType = UNSET


class ToolInfo(Wire, frozen=True, kw_only=True):
    """A tool as `tools/list` describes it."""

    name: str
    input_schema: dict[str, Any]
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    output_schema: dict[str, Any] | UnsetType = UNSET
    annotations: ToolAnnotations | UnsetType = UNSET


class Page(CacheableResult, frozen=True, kw_only=True):
    """One page of a list; `nextCursor` leads to the next one."""

    next_cursor: str | UnsetType = UNSET


class ListToolsResult(Page, frozen=True, kw_only=True):
    """One page of tools."""

    tools: list[ToolInfo]


class CallToolResult(Result, frozen=True, kw_only=True):
    """What a tool gave back."""

    content: list[Content]
    structured_content: Any = UNSET
    is_error: bool = False


class ServerCapabilities(Wire, frozen=True, kw_only=True):
    """What the server offers; empty objects mean yes."""

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


class InitializeResult(Result, frozen=True, kw_only=True):
    """The server's half of the legacy handshake."""

    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | UnsetType = UNSET


class EmptyResult(Result, frozen=True, kw_only=True):
    """Done, nothing to say."""
