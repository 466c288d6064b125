"""What older revisions do not know is left out, or said in words. Pure; can go when they go."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from ragmcp.protocol.eras import ANNOTATIONS_SINCE, AUDIO_SINCE, LINKS_SINCE, STRUCTURED_SINCE
from ragmcp.protocol.schema.content import AudioContent, Content, ResourceLink, TextContent
from ragmcp.protocol.schema.tools import ToolInfo


def tool_known_to(revision: str, info: ToolInfo) -> ToolInfo:
    """Without the fields that came later than `revision`."""
    if revision < ANNOTATIONS_SINCE:
        info = replace(info, annotations=UNSET)
    if revision < STRUCTURED_SINCE:
        info = replace(info, output_schema=UNSET, title=UNSET)
    return info


def content_known_to(revision: str, content: Sequence[Content]) -> list[Content]:
    """The same content in the kinds that `revision` has."""
    return [_known(revision, item) for item in content]


def _known(revision: str, item: Content) -> Content:
    if isinstance(item, ResourceLink) and revision < LINKS_SINCE:
        return TextContent(text=f"{item.title or item.name}: {item.uri}")
    if isinstance(item, AudioContent) and revision < AUDIO_SINCE:
        return TextContent(text=f"[Sound ({item.mime_type}), which this protocol version cannot carry.]")
    return item
