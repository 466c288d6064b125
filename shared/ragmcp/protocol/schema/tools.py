"""`tools/list` and `tools/call`. Source: server/tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ragmcp.protocol.schema.base import Page, Result, RetryableParams, Wire
from ragmcp.protocol.schema.content import Content, TextContent

T = TypeVar("T")


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
    description: str | UnsetType = UNSET
    output_schema: dict[str, Any] | UnsetType = UNSET
    annotations: ToolAnnotations | UnsetType = UNSET


class ListToolsResult(Page, frozen=True, kw_only=True):
    """One page of `ToolInfo`: encoded once for all clients, decoded one by one, as some may be unreadable."""

    tools: list[Raw]


class CallToolParams(RetryableParams, frozen=True, kw_only=True):
    """A tool call as the server receives it; the tool knows the type of its arguments and decodes them."""

    name: str
    arguments: Raw = Raw(b"{}")


class ToolCall(RetryableParams, frozen=True, kw_only=True):
    """A tool call as the client sends it."""

    name: str
    arguments: Mapping[str, Any]


class CallToolResult(Result, frozen=True, kw_only=True):
    """The result of a tool call as the server makes it."""

    content: list[Content]
    structured_content: Any = UNSET
    is_error: bool = False


class ToolCallResult(Result, frozen=True, kw_only=True):
    """The result of a tool call as the client receives it; the caller knows its type and decodes it."""

    content: list[Content]
    structured_content: Raw = Raw(b"null")
    is_error: bool = False

    @property
    def text(self) -> str:
        """All text of the content."""
        return "\n".join(item.text for item in self.content if isinstance(item, TextContent))

    def structured(self, type: type[T]) -> T:
        """The structured content. Raises one of DECODE_ERRORS for another type, also for text only."""
        return msgspec.json.decode(self.structured_content, type=type)
