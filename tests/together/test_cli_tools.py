"""Tools of other servers as `ragchat ask` uses them, with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp_process import ENV, SERVER
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.program import Program, program_in

ECHO = ("mine__Echo", {"text": "hello"})


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer([Reply(tool_calls=[ECHO]), Reply("It said hello.")]) as server:
        yield server


@pytest.fixture
def ragchat(tmp_path: Path, server: OpenAIServer) -> Program:
    program = program_in(
        tmp_path, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="k", RAGCHAT_MODEL_NAME="test-model"
    )
    program("mcp", "add", "mine", "--env", f"PYTHONPATH={ENV['PYTHONPATH']}", "--", *SERVER)
    return program


def results(server: OpenAIServer) -> list[str]:
    """The results of tools that the model got."""
    messages: list[dict[str, Any]] = server.requests[-1]["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_a_tool_is_not_called_where_the_user_cannot_be_asked(ragchat: Program, server: OpenAIServer) -> None:
    done = ragchat("ask", "--json", "say hello")
    assert done.code == 0
    assert any("needs your permission" in notice for notice in done.json["notices"])
    assert "permission" in results(server)[0]


def test_yes_read_only_believes_the_server_s_word(ragchat: Program, server: OpenAIServer) -> None:
    done = ragchat("ask", "--json", "--yes-read-only", "say hello")
    assert (done.code, results(server)) == (0, ["hello"])


def test_a_trusted_server_s_reading_tools_run(ragchat: Program, server: OpenAIServer) -> None:
    file = ragchat.home / "config" / "mcp.json"
    settings = json.loads(file.read_text())
    settings["mcpServers"]["mine"]["trusted"] = True
    file.write_text(json.dumps(settings))
    assert ragchat("ask", "say hello").code == 0
    assert results(server) == ["hello"]


def test_without_tools_the_model_is_told_of_none(ragchat: Program, server: OpenAIServer) -> None:
    ragchat("ask", "--no-tools", "say hello")
    assert not server.requests[0].get("tools")
    assert ragchat("ask", "--no-tools", "--yes-read-only", "x").code == 2
