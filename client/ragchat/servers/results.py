"""What a tool of another server returned, as text for a model."""

from __future__ import annotations

from msgspec import UNSET

from ragchat.memory.types import ToolResult
from ragmcp.protocol.schema.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from ragmcp.protocol.schema.tools import ToolCallResult


def readable(result: ToolCallResult) -> ToolResult:
    """The result as text, with what is no text named; without any content, the structured content."""
    text = "\n".join(_text(item) for item in result.content)
    structured = bytes(result.structured_content).decode(errors="replace")
    return ToolResult(not result.is_error, text or ("" if structured == "null" else structured))


def _text(item: Content) -> str:
    match item:
        case TextContent(text=text):
            return text
        case ImageContent(mime_type=kind, data=data) | AudioContent(mime_type=kind, data=data):
            return f"[{kind}, {len(data) * 3 // 4:,} bytes]"
        case ResourceLink(uri=uri, name=name, title=title):
            return f"[{title or name}: {uri}]"
        case EmbeddedResource(resource=resource):
            return f"[{resource.uri}]" if resource.text is UNSET else resource.text
