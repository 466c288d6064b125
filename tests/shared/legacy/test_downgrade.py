"""Older revisions are sent nothing they do not know."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from ragmcp.legacy.downgrade import content_known_to, tool_known_to
from ragmcp.protocol.eras import LEGACY_REVISIONS
from ragmcp.protocol.schema.content import AudioContent, Content, ResourceLink, TextContent
from ragmcp.protocol.schema.tools import ToolAnnotations, ToolInfo

LINK = ResourceLink(uri="memory://a", name="a", title="A note")
SOUND = AudioContent(data="UklG", mime_type="audio/wav")
TEXT = TextContent(text="t")


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_text_is_known_to_all(revision: str) -> None:
    assert content_known_to(revision, [TEXT]) == [TEXT]


@pytest.mark.parametrize(
    ("revision", "content", "kept"),
    [
        ("2025-06-18", LINK, True),
        ("2025-03-26", LINK, False),
        ("2025-03-26", SOUND, True),
        ("2024-11-05", SOUND, False),
    ],
)
def test_newer_kinds_of_content_are_said_in_words(revision: str, content: Content, kept: bool) -> None:
    (sent,) = content_known_to(revision, [content])
    assert (sent == content) == kept
    if not kept:
        assert isinstance(sent, TextContent)
        assert ("A note: memory://a" in sent.text) or ("audio/wav" in sent.text)


def test_a_tool_loses_what_came_later() -> None:
    info = ToolInfo(
        name="t", input_schema={"type": "object"}, title="T", output_schema={}, annotations=ToolAnnotations()
    )
    assert tool_known_to("2025-11-25", info) == info
    assert tool_known_to("2025-03-26", info).output_schema is UNSET
    assert tool_known_to("2025-03-26", info).annotations is not UNSET
    assert tool_known_to("2024-11-05", info) == ToolInfo(name="t", input_schema={"type": "object"})
