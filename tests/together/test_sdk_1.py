"""The official SDK 1.x (legacy protocol only) and us over real stdio, in its own environment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragmcp.client import EraName
from ragmcp.errors import RequestTimedOut
from tests.support.mcp_process import ENV, ROOT, SERVER, spawned
from tests.support.processes import memory_command, memory_environment

PEERS = ROOT / "tests" / "peers"
PYTHON = ROOT / ".peers" / "mcp1" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason="the SDK 1.x is not here; `make .peers/mcp1/.done` installs it"
)


def seen_by_its_client(
    command: list[str], *calls: tuple[str, dict[str, Any]], env: dict[str, str] = ENV
) -> dict[str, Any]:
    """What the SDK's client reports of a server."""
    words = [str(PYTHON), str(PEERS / "mcp1_client.py"), json.dumps(env), json.dumps(calls), *command]
    done = subprocess.run(words, capture_output=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr.decode()
    saw: dict[str, Any] = json.loads(done.stdout)
    return saw


def test_its_client_speaks_with_our_server() -> None:
    saw = seen_by_its_client(
        SERVER,
        ("Add", {"a": 2, "b": 3}),
        ("Fail", {}),
        ("Add", {"a": "x"}),
        ("Echo", {"text": "ü" * 10_000}),
    )
    assert (saw["revision"], saw["server"]) == ("2025-11-25", "test-server")
    assert {"Add", "Echo", "Fail"} <= set(saw["tools"])
    added, failed, refused, echoed = saw["results"]
    assert added["structuredContent"] == {"total": 5}
    assert failed["isError"]
    assert refused["error"]["code"] == -32602
    assert refused["error"]["data"]["details"]["path"] == "$.a"
    assert echoed["content"][0]["text"] == "ü" * 10_000


def test_its_client_lists_and_calls_the_memory(tmp_path: Path) -> None:
    text = "The lighthouse of Aldermoor was built in 1874."
    saw = seen_by_its_client(
        memory_command(tmp_path),
        ("Inject", {"text": text, "metadata": {"uri": "note:1"}}),
        ("Query", {"query": "When was the lighthouse built?"}),
        env=memory_environment(tmp_path),
    )
    assert {"Inject", "Query"} <= set(saw["tools"])
    assert saw["results"][1]["structuredContent"]["hits"][0]["uri"] == "note:1"


@pytest.mark.parametrize("era", [None, "legacy"])
async def test_our_client_speaks_with_its_server(era: EraName | None, tmp_path: Path) -> None:
    command = [str(PYTHON), str(PEERS / "mcp1_server.py")]
    async with spawned(command, era=era, stderr=tmp_path / "log") as client:
        assert (client.revision, client.server.name) == ("2025-11-25", "sdk-1")
        assert {tool.name for tool in await client.list_tools()} == {"add", "fail", "wait"}
        assert (await client.call_tool("add", {"a": 2}, timeout=20)).structured == {"result": 3}
        failed = await client.call_tool("fail", timeout=20)
        assert failed.is_error
        assert "no luck" in failed.text
        with pytest.raises(RequestTimedOut):
            await client.call_tool("wait", timeout=0.1)
        assert (await client.call_tool("add", {"a": 3}, timeout=20)).structured == {"result": 4}
