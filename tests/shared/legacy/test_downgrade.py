"""Older revisions get only the fields and content that they know."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from ragmcp.legacy.downgrade import downgrade, downgrade_tool
from ragmcp.protocol.eras import LEGACY_REVISIONS
from ragmcp.protocol.schema.content import AudioContent, Content, ResourceLink, TextContent
from ragmcp.protocol.schema.prompts import GetPromptResult, PromptMessage
from ragmcp.protocol.schema.tools import CallToolResult, ToolAnnotations, ToolInfo

LINK = ResourceLink(uri="memory://a", name="a", title="A note")
SOUND = AudioContent(data="UklG", mime_type="audio/wav")
TEXT = TextContent(text="t")


def content_for(revision: str, item: Content) -> list[Content]:
    result = downgrade(revision, CallToolResult(content=[item]))
    assert isinstance(result, CallToolResult)
    return result.content


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_every_revision_knows_text(revision: str) -> None:
    assert content_for(revision, TEXT) == [TEXT]


@pytest.mark.parametrize(
    ("revision", "content", "known"),
    [
        ("2025-06-18", LINK, True),
        ("2025-03-26", LINK, False),
        ("2025-03-26", SOUND, True),
        ("2024-11-05", SOUND, False),
    ],
)
def test_newer_kinds_of_content_become_text(revision: str, content: Content, known: bool) -> None:
    (sent,) = content_for(revision, content)
    assert (sent == content) == known
    if not known:
        assert isinstance(sent, TextContent)
        assert ("A note: memory://a" in sent.text) or ("audio/wav" in sent.text)


def test_the_messages_of_a_prompt_are_downgraded_too() -> None:
    prompt = GetPromptResult(messages=[PromptMessage(role="user", content=LINK)])
    assert downgrade("2025-06-18", prompt) == prompt
    assert downgrade("2025-03-26", prompt) == GetPromptResult(
        messages=[PromptMessage(role="user", content=TextContent(text="A note: memory://a"))]
    )


def test_structured_content_goes_where_it_is_unknown() -> None:
    result = CallToolResult(content=[TEXT], structured_content={"a": 1})
    assert downgrade("2025-06-18", result) == result
    assert downgrade("2025-03-26", result) == CallToolResult(content=[TEXT])


def test_a_tool_loses_fields_that_came_later() -> None:
    info = ToolInfo(
        name="t", input_schema={"type": "object"}, output_schema={}, annotations=ToolAnnotations()
    )
    assert downgrade_tool("2025-11-25", info) == info
    assert downgrade_tool("2025-03-26", info).output_schema is UNSET
    assert downgrade_tool("2025-03-26", info).annotations is not UNSET
    assert downgrade_tool("2024-11-05", info) == ToolInfo(name="t", input_schema={"type": "object"})
