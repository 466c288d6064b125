"""Downgrade results for older revisions: leave out fields and content that they lack, or make them text."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from ragmcp.protocol.schema.base import Result
from ragmcp.protocol.schema.content import AudioContent, Content, ResourceLink, TextContent
from ragmcp.protocol.schema.prompts import GetPromptResult
from ragmcp.protocol.schema.tools import CallToolResult, ToolInfo

# The first revisions that have these fields and kinds of content.
ANNOTATIONS_SINCE = AUDIO_SINCE = "2025-03-26"
STRUCTURED_SINCE = LINKS_SINCE = "2025-06-18"


def downgrade(revision: str, result: Result) -> Result:
    """The result as `revision` knows it; the newest older revisions know all of it."""
    if revision >= STRUCTURED_SINCE:
        return result
    match result:
        case CallToolResult(content=content):
            known = [_content(revision, item) for item in content]
            return replace(result, content=known, structured_content=UNSET)
        case GetPromptResult(messages=messages):
            messages = [replace(message, content=_content(revision, message.content)) for message in messages]
            return replace(result, messages=messages)
    return result


def downgrade_tool(revision: str, info: ToolInfo) -> ToolInfo:
    """The description of a tool as `revision` knows it."""
    if revision < ANNOTATIONS_SINCE:
        info = replace(info, annotations=UNSET)
    return replace(info, output_schema=UNSET) if revision < STRUCTURED_SINCE else info


def _content(revision: str, item: Content) -> Content:
    if isinstance(item, ResourceLink) and revision < LINKS_SINCE:
        return TextContent(text=f"{item.title or item.name}: {item.uri}")
    if isinstance(item, AudioContent) and revision < AUDIO_SINCE:
        return TextContent(text=f"[Sound ({item.mime_type}), which this protocol version cannot carry.]")
    return item
