"""The tools of all servers, named `server__tool` for models, and their results for models and the user."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import UNSET, UnsetType

from ragchat.errors import RagChatError
from ragchat.memory.types import ToolResult
from ragchat.servers.connection import Connection
from ragchat.servers.media import image_url, named, size_of
from ragmcp.errors import RagMcpError
from ragmcp.protocol.schema import content
from ragmcp.protocol.schema.tools import ToolCallResult, ToolInfo

# The limits of the chat-completions API for names of tools.
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME = 64
SEPARATOR = "__"
_DIGEST_CHARACTERS = 6
# Saves an image or a sound (MIME type, base64) to a file; None if it cannot.
Keep = Callable[[str, str], Path | None]


@dataclass(frozen=True)
class OfferedTool:
    """A tool, and the name and `identity` of its server. `trusted`: that server's annotations are trusted.

    `name`, by which a model calls it, is unique among all tools. `call` raises nothing.
    """

    name: str
    server: str
    identity: str
    info: ToolInfo
    trusted: bool
    call: Callable[[dict[str, Any]], Awaitable[ToolResult]]

    @property
    def only_reads(self) -> bool:
        """Whether its server declares it read-only, which may be false."""
        hints = self.info.annotations
        return not isinstance(hints, UnsetType) and hints.read_only_hint is True


def offered_tools(connections: Iterable[Connection]) -> list[OfferedTool]:
    """The tools of these servers. Their names are deterministic."""
    named: dict[str, OfferedTool] = {}
    for connection in connections:
        config = connection.config
        for tool in connection.tools:
            name = _legal(config.name, tool.name)
            if name in named:
                name = _with_digest(name, config.name, tool.name)
            call = partial(_call, connection, tool)
            named[name] = OfferedTool(name, config.name, config.identity, tool, config.trusted, call)
    return [*named.values()]


async def _call(connection: Connection, tool: ToolInfo, arguments: dict[str, Any]) -> ToolResult:
    """Call a tool. A failure is a result that the model can act on."""
    try:
        result = await connection.call(tool, arguments)
        return as_tool_result(result, connection.name, connection.media.keep)
    except (RagChatError, RagMcpError) as error:
        return ToolResult(False, f"{error} {error.hint}".rstrip())


def may_be_of(server: str, name: str) -> bool:
    """Whether `name` may be a tool of this server."""
    prefix = _legal(server, "")[: MAX_NAME - _DIGEST_CHARACTERS - 1]
    return name.startswith(prefix)


def _legal(server: str, tool: str) -> str:
    name = _ILLEGAL.sub("_", f"{server}{SEPARATOR}{tool}")
    return name if len(name) <= MAX_NAME else _with_digest(name, server, tool)


def _with_digest(name: str, server: str, tool: str) -> str:
    """Add a digest to a name that is too long or not unique."""
    digest = hashlib.sha256(f"{server}\n{tool}".encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{name[: MAX_NAME - len(digest) - 1]}_{digest}"


# The results of tools


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


def _text(item: content.Content) -> str:
    match item:
        case content.TextContent(text=text):
            return text
        case content.ResourceLink(uri=uri, name=name, title=title):
            return f"[{title or name}: {uri}]"
        case content.EmbeddedResource(resource=resource):
            return f"[{resource.uri}]" if resource.text is UNSET else resource.text
    return _named(*_media(item))


def _note(item: content.Content, server: str, keep: Keep) -> str:
    """The line that the chat shows about an item; "" for text, which only the model gets."""
    match item:
        case content.ResourceLink(uri=uri, name=name, title=title, mime_type=kind, size=size):
            about = [kind] if kind is not UNSET else []
            about += [f"{size:,} bytes"] if size is not UNSET else []
            details = f" ({', '.join(about)})" if about else ""
            return f"{server} links to {title or name}{details}: @{server}:{uri}"
        case content.EmbeddedResource(resource=resource) if resource.text is UNSET:
            what = f"@{server}:{resource.uri}"
        case content.ImageContent() | content.AudioContent():
            what = _named(*_media(item))
        case _:
            return ""
    place = keep(*_media(item))
    return f"{server} returned {what}: {place}" if place else f"{server} returned {what}"


def _media(item: content.Content) -> tuple[str, str]:
    """The MIME type and base64 data of an image, a sound or a binary resource; empty for other items."""
    match item:
        case content.ImageContent() | content.AudioContent():
            return item.mime_type, item.data
        case content.EmbeddedResource(resource=resource) if resource.blob is not UNSET:
            return resource.mime_type or "", resource.blob
    return "", ""


def _named(kind: str, data: str) -> str:
    return named(kind, size_of(data))
