"""The names of tools as a model calls them, and their results as it reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from msgspec import Raw

from ragchat.servers.configs import ConfigScope, ServerConfig
from ragchat.servers.connection import Connection
from ragchat.servers.tools import MAX_NAME, as_tool_result, may_be_of, offered_tools
from ragmcp.protocol.schema.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from ragmcp.protocol.schema.tools import ToolCallResult, ToolInfo


@dataclass
class Listing:
    """The part of a connection that has a name and tools."""

    config: ServerConfig
    tools: list[ToolInfo]


def listing(server: str, *tools: str) -> Connection:
    config = ServerConfig(name=server, scope=ConfigScope.USER, file="mcp.json", command=("x",))
    infos = [ToolInfo(name=name, input_schema={"type": "object"}) for name in tools]
    return cast("Connection", Listing(config, infos))


def names(*connections: Connection) -> list[str]:
    return [tool.name for tool in offered_tools(connections)]


def test_a_tool_has_the_name_of_its_server_before_its_own() -> None:
    assert names(listing("git", "log"), listing("files", "log")) == ["git__log", "files__log"]


def test_names_are_legal_unique_and_always_the_same() -> None:
    servers = (
        listing("my files", "read.text", "read text", "x" * 100, "x" * 101, "größe"),
        listing("my.files", "read text"),
    )
    found = names(*servers)
    assert len({*found}) == len(found) == 6
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in found)
    assert max(map(len, found)) == MAX_NAME
    assert names(*servers) == found


@pytest.mark.parametrize("server", ["git", "my files", "größe", "x" * 60, "y" * 100])
def test_a_name_tells_which_server_may_have_the_tool(server: str) -> None:
    for name in names(listing(server, "log", "z" * 100)):
        assert may_be_of(server, name)
        assert not may_be_of("other", name)
    assert not may_be_of(server, "log")


def nowhere(_: str, __: str) -> None:
    """Nothing can be kept."""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([TextContent(text="one"), TextContent(text="two")], "one\ntwo"),
        ([ImageContent(data="QUJD", mime_type="image/png")], "[image/png, 3 bytes]"),
        ([ResourceLink(uri="file:///a.md", name="a")], "[a: file:///a.md]"),
        ([EmbeddedResource(resource=ResourceContents(uri="file:///a.md", text="inside"))], "inside"),
        ([EmbeddedResource(resource=ResourceContents(uri="file:///a.png", blob="QUJD"))], "[file:///a.png]"),
        ([], '{"total":3}'),
    ],
)
def test_every_kind_of_content_is_shown_to_the_model_as_text(content: list[Content], text: str) -> None:
    result = ToolCallResult(content=content, structured_content=Raw(b'{"total":3}'))
    assert as_tool_result(result, "mine", nowhere).text == text


def test_a_result_without_anything_is_an_empty_text() -> None:
    assert as_tool_result(ToolCallResult(content=[]), "mine", nowhere).text == ""


def test_images_are_for_a_model_that_takes_them_and_kept_for_the_user() -> None:
    image = ImageContent(data="QUJD", mime_type="image/png")
    dot = EmbeddedResource(resource=ResourceContents(uri="note://dot", blob="QUJD", mime_type="image/png"))
    sound = AudioContent(data="QUJD", mime_type="audio/wav")
    result = as_tool_result(
        ToolCallResult(content=[image, dot, sound]), "mine", lambda kind, _: Path(f"/{kind}")
    )
    assert result.images == ["data:image/png;base64,QUJD"] * 2
    assert result.notes == [
        f"mine returned [image/png, 3 bytes]: {Path('/image/png')}",
        f"mine returned @mine:note://dot: {Path('/image/png')}",
        f"mine returned [audio/wav, 3 bytes]: {Path('/audio/wav')}",
    ]


@pytest.mark.parametrize(
    ("content", "notes"),
    [
        (TextContent(text="one"), []),
        (ImageContent(data="QUJD", mime_type="image/png"), ["mine returned [image/png, 3 bytes]"]),
        (
            ResourceLink(uri="note://a", name="a", title="Report", mime_type="text/plain", size=1200),
            ["mine links to Report (text/plain, 1,200 bytes): @mine:note://a"],
        ),
        (ResourceLink(uri="note://a", name="a"), ["mine links to a: @mine:note://a"]),
        (
            EmbeddedResource(resource=ResourceContents(uri="note://dot", blob="QUJD")),
            ["mine returned @mine:note://dot"],
        ),
    ],
)
def test_the_user_is_told_of_images_and_of_links_that_can_be_attached(
    content: Content, notes: list[str]
) -> None:
    assert as_tool_result(ToolCallResult(content=[content]), "mine", nowhere).notes == notes
