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


def readable(result: ToolCallResult, server: str) -> ToolResult:
    """The result as text, with what is no text named; without any content, the structured content.

    The user is told of images and links, which `@server:uri` attaches to a question.
    """
    text = "\n".join(_text(item) for item in result.content)
    notes = [note for item in result.content if (note := _note(item, server))]
    structured = bytes(result.structured_content).decode(errors="replace")
    return ToolResult(not result.is_error, text or ("" if structured == "null" else structured), notes=notes)


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


def _note(item: Content, server: str) -> str:
    """What the user is told of an item; "" for text, which the model passes on."""
    match item:
        case ImageContent() | AudioContent():
            return f"{server} returned {_text(item)}."
        case ResourceLink(uri=uri, name=name, title=title, mime_type=kind, size=size):
            about = [kind] if kind is not UNSET else []
            about += [f"{size:,} bytes"] if size is not UNSET else []
            details = f" ({', '.join(about)})" if about else ""
            return f"{server} links to {title or name}{details}: @{server}:{uri}"
        case EmbeddedResource(resource=resource) if resource.text is UNSET:
            return f"{server} returned @{server}:{resource.uri}"
    return ""
