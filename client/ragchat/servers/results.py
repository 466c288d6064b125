"""The result of another server's tool as text and images for a model, and as notes for the user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import UNSET

from ragchat.memory.types import ToolResult
from ragchat.servers.media import image_url, named, size_of
from ragmcp.protocol.schema.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from ragmcp.protocol.schema.tools import ToolCallResult

# Saves an image or a sound (MIME type, base64) to a file; None if it cannot.
Keep = Callable[[str, str], Path | None]


def as_tool_result(result: ToolCallResult, server: str, keep: Keep) -> ToolResult:
    """The result as text and images; the structured content if there is no other.

    Notes tell the user about saved files, and about links, which `@server:uri` attaches to a question.
    """
    text = "\n".join(_text(item) for item in result.content)
    structured = bytes(result.structured_content).decode(errors="replace")
    return ToolResult(
        not result.is_error,
        text or ("" if structured == "null" else structured),
        notes=[note for item in result.content if (note := _note(item, server, keep))],
        images=[url for kind, data in map(_media, result.content) if (url := image_url(kind, data))],
    )


def _text(item: Content) -> str:
    match item:
        case TextContent(text=text):
            return text
        case ResourceLink(uri=uri, name=name, title=title):
            return f"[{title or name}: {uri}]"
        case EmbeddedResource(resource=resource):
            return f"[{resource.uri}]" if resource.text is UNSET else resource.text
    return _named(*_media(item))


def _note(item: Content, server: str, keep: Keep) -> str:
    """The line that the chat shows about an item; "" for text, which only the model gets."""
    match item:
        case ResourceLink(uri=uri, name=name, title=title, mime_type=kind, size=size):
            about = [kind] if kind is not UNSET else []
            about += [f"{size:,} bytes"] if size is not UNSET else []
            details = f" ({', '.join(about)})" if about else ""
            return f"{server} links to {title or name}{details}: @{server}:{uri}"
        case EmbeddedResource(resource=resource) if resource.text is UNSET:
            what = f"@{server}:{resource.uri}"
        case ImageContent() | AudioContent():
            what = _named(*_media(item))
        case _:
            return ""
    place = keep(*_media(item))
    return f"{server} returned {what}: {place}" if place else f"{server} returned {what}"


def _media(item: Content) -> tuple[str, str]:
    """The MIME type and base64 data of an image, a sound or a binary resource; empty for other items."""
    match item:
        case ImageContent(mime_type=kind, data=data) | AudioContent(mime_type=kind, data=data):
            return kind, data
        case EmbeddedResource(resource=resource) if resource.blob is not UNSET:
            return resource.mime_type or "", resource.blob
    return "", ""


def _named(kind: str, data: str) -> str:
    return named(kind, size_of(data))
