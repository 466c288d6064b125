"""The official SDK 2.x and us over real stdio: its client with our servers, our client with its server."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from ragmcp.client import EraName
from ragmcp.errors import RequestTimedOut
from tests.support.mcp_process import ENV, ROOT, SERVER, spawned
from tests.support.processes import memory_command, memory_environment

SDK_SERVER = [sys.executable, str(ROOT / "tests" / "peers" / "mcp2_server.py")]
MODES = ["auto", "legacy", "2026-07-28"]


@asynccontextmanager
async def sdk_client(
    command: list[str], mode: str, log: Path, env: dict[str, str] = ENV
) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=env)
    with log.open("w", encoding="utf-8") as stderr, anyio.fail_after(60):
        async with Client(stdio_client(parameters, stderr), mode=mode, read_timeout_seconds=20) as client:
            yield client


@pytest.mark.parametrize("mode", MODES)
async def test_its_client_speaks_with_our_server_in_both_eras(mode: str, tmp_path: Path) -> None:
    async with sdk_client(SERVER, mode, tmp_path / "log") as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["Add"].output_schema is not None
        result = await client.call_tool("Add", {"a": 2, "b": 3})
        assert (result.structured_content, result.is_error) == ({"total": 5}, False)


@pytest.mark.parametrize("mode", MODES)
async def test_its_client_sees_our_errors(mode: str, tmp_path: Path) -> None:
    async with sdk_client(SERVER, mode, tmp_path / "log") as client:
        failed = await client.call_tool("Fail", {})
        assert failed.is_error
        assert failed.structured_content is not None
        assert failed.structured_content["errorCode"] == "OUT_OF_LUCK"
        with pytest.raises(MCPError) as refused:
            await client.call_tool("Add", {"a": "x"})
        assert refused.value.error.code == -32602
        assert refused.value.error.data["details"]["path"] == "$.a"
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("Nope", {})
        assert unknown.value.error.data["errorCode"] == "TOOL_NOT_FOUND"


@pytest.mark.parametrize("mode", MODES)
async def test_its_client_hears_our_progress_and_makes_calls_at_once(mode: str, tmp_path: Path) -> None:
    steps: list[float] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        assert (total, message) == (2, "working")
        steps.append(progress)

    async with sdk_client(SERVER, mode, tmp_path / "log") as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: client.call_tool("Wait", {"progress": 2}, progress_callback=heard))
            for _ in range(20):
                assert (await client.call_tool("Echo", {"text": "t"})).content
            tasks.cancel_scope.cancel()
        assert (await client.call_tool("Echo", {"text": "t"})).content
    assert steps == [1, 2]


async def test_its_client_lists_and_calls_the_memory(tmp_path: Path) -> None:
    env = memory_environment(tmp_path)
    async with sdk_client(memory_command(tmp_path), "auto", tmp_path / "log", env) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} >= {"Inject", "Query"}
        text = "The lighthouse of Aldermoor was built in 1874."
        injected = await client.call_tool("Inject", {"text": text, "metadata": {"uri": "note:1"}})
        assert not injected.is_error, injected
        found = await client.call_tool("Query", {"query": "When was the lighthouse built?"})
        assert found.structured_content is not None
        assert found.structured_content["hits"][0]["uri"] == "note:1"


@pytest.mark.parametrize("era", [None, "modern", "legacy"])
async def test_our_client_speaks_with_its_server(era: EraName | None, tmp_path: Path) -> None:
    async with spawned(SDK_SERVER, era=era, stderr=tmp_path / "log") as client:
        assert client.revision == ("2025-11-25" if era == "legacy" else "2026-07-28")
        assert {tool.name for tool in await client.list_tools()} == {"add", "fail", "wait", "steps"}
        assert client.server.name == "sdk-2"
        assert (await client.call_tool("add", {"a": 2, "b": 3}, timeout=20)).structured == {"result": 5}


async def test_our_client_sees_its_errors_progress_and_cancellation(tmp_path: Path) -> None:
    steps: list[float] = []
    async with spawned(SDK_SERVER, stderr=tmp_path / "log") as client:
        failed = await client.call_tool("fail", timeout=20)
        assert failed.is_error
        assert "fail" in failed.text
        assert (await client.call_tool("nope", timeout=20)).is_error
        with pytest.raises(RequestTimedOut):
            await client.call_tool("wait", timeout=0.1)
        done = await client.call_tool("steps", timeout=20, on_progress=lambda done, *_: steps.append(done))
        assert done.text == "done"
    assert steps == [1, 2]
