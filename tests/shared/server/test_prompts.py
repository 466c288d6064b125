"""Prompts, in every revision: from a function's signature to the messages a model gets."""

from __future__ import annotations

from typing import Any

import pytest

from ragmcp.protocol.schema.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    TextContent,
)
from ragmcp.protocol.schema.prompts import PromptMessage
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from tests.support.prompts import prompt
from tests.support.raw_mcp import raw_client
from tests.support.schemas import REVISIONS


@prompt(title="Code review", describe={"code": "what is to be reviewed"})
async def review(_: Call, code: str, style: str = "friendly") -> str:
    """Reviews code."""
    return f"In a {style} tone, review this:\n{code}"


@prompt()
async def hello(_: Call) -> str:
    """Says hello."""
    return "Hello."


@prompt()
async def show(_: Call, uri: str) -> list[PromptMessage]:
    """Shows things of every kind."""
    resource = ResourceContents(uri=uri, mime_type="text/plain", text="contents")
    return [
        PromptMessage(role="user", content=TextContent(text="Look:")),
        PromptMessage(role="user", content=EmbeddedResource(resource=resource)),
        PromptMessage(role="user", content=ImageContent(data="AA==", mime_type="image/png")),
        PromptMessage(role="assistant", content=AudioContent(data="AA==", mime_type="audio/wav")),
    ]


def server(*extra: Any) -> Server:
    return Server("prompter", "1", [], prompts=[review, hello, show, *extra])


@pytest.mark.parametrize("revision", REVISIONS)
async def test_prompts_are_listed_with_their_arguments(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        prompts = (await client.request("prompts/list"))["result"]["prompts"]
        assert [prompt["name"] for prompt in prompts] == ["review", "hello", "show"]
        assert prompts[0]["description"] == "Reviews code."
        assert prompts[0]["arguments"] == [
            {"name": "code", "description": "what is to be reviewed", "required": True},
            {"name": "style", "required": False},
        ]
        assert "arguments" not in prompts[1]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_prompt_is_made_of_its_arguments(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        result = (await client.request("prompts/get", {"name": "review", "arguments": {"code": "x = 1"}}))[
            "result"
        ]
        assert result["description"] == "Reviews code."
        assert result["messages"] == [
            {"role": "user", "content": {"type": "text", "text": "In a friendly tone, review this:\nx = 1"}}
        ]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_messages_carry_resources_images_and_sounds(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        result = (await client.request("prompts/get", {"name": "show", "arguments": {"uri": "test://x"}}))[
            "result"
        ]
        kinds = [message["content"]["type"] for message in result["messages"]]
        assert kinds[:3] == ["text", "resource", "image"]
        assert kinds[3] == ("audio" if revision >= "2025-03-26" else "text")
        assert result["messages"][1]["content"]["resource"]["uri"] == "test://x"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_capability_is_declared_only_where_there_are_prompts(revision: str) -> None:
    first = "server/discover" if revision == REVISIONS[-1] else "ping"
    async with raw_client(Server("none", "1", []), revision) as client:
        assert "prompts" not in (await client.request(first))["result"].get("capabilities", {})
        assert (await client.request("prompts/list"))["error"]["code"] == -32601


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("params", "path", "word"),
    [
        ({"name": "nope"}, None, "PROMPT_NOT_FOUND"),
        ({}, "$.name", "INVALID_PARAMS"),
        ({"name": "review"}, "$.arguments.code", "INVALID_PARAMS"),
        ({"name": "review", "arguments": {"code": 5}}, "$.arguments[...]", "INVALID_PARAMS"),
        ({"name": "review", "arguments": {"code": "", "other": ""}}, "$.arguments.other", "INVALID_PARAMS"),
        ({"name": "hello", "arguments": {"call": ""}}, "$.arguments.call", "INVALID_PARAMS"),
    ],
)
async def test_what_is_no_prompt_is_refused(
    revision: str, params: dict[str, Any], path: str | None, word: str
) -> None:
    async with raw_client(server(), revision) as client:
        error = (await client.request("prompts/get", params))["error"]
        assert (error["code"], error["data"]["errorCode"]) == (-32602, word)
        assert error["data"]["details"].get("path") == path


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_prompt_that_fails_keeps_its_secrets(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    @prompt()
    async def crash(_: Call) -> str:
        """Fails."""
        raise RuntimeError("an internal secret")

    async with raw_client(server(crash), revision) as client:
        error = (await client.request("prompts/get", {"name": "crash"}))["error"]
        assert (error["code"], error["data"]["errorCode"]) == (-32603, "INTERNAL_ERROR")
        assert "secret" not in error["message"]
    assert "an internal secret" in caplog.text


async def test_prompts_change_seldom_and_say_so() -> None:
    async with raw_client(server(), REVISIONS[-1]) as client:
        listed = (await client.request("prompts/list"))["result"]
        assert (listed["ttlMs"], listed["cacheScope"]) == (300_000, "public")
        made = (await client.request("prompts/get", {"name": "hello"}))["result"]
        assert made["resultType"] == "complete"
        assert "ttlMs" not in made
