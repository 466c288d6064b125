"""The examples of docs/library.md print what the page says (`ragmemory.memory`, the names of `ragmcp`)."""

from __future__ import annotations

import pydoc
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import ragmcp
import ragmemory
from ragconfig.settings import packaged
from ragmcp import Call, Client, Endpoint, RagMcpError, Server, ToolError, ToolResult, open_http, tool
from ragmcp.http.limits import HttpLimits
from tests.support.ports import free_port
from tests.support.processes import LONGEST_SECONDS, Held

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))
# By the example that the page shows before it.
OUTPUTS = dict(re.findall(r"```python\n# (\S+)\n(?:(?!```).)*```\n+```text\n(.*?)```", PAGE, re.DOTALL))
CLIENT_OUTPUT, MEMORY_OUTPUT = OUTPUTS["client.py"], OUTPUTS["notes.py"]
# The socket listens before the server runs, so the client can connect at once.
USE_OF_THE_MOUNTED_SERVER = """
import socket
import anyio, uvicorn
from mounted import app
from ragmcp import open_http

async def main():
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listening])
        async with open_http(url, token="secret") as client:
            print(*[tool.name for tool in await client.list_tools()])
        server.should_exit = True

anyio.run(main)
"""
USE_OF_THE_PROXY = """
import sys
import anyio
from ragmcp import open_stdio

async def main():
    async with open_stdio([sys.executable, "proxy.py"]) as client:
        print(*[tool.name for tool in await client.list_tools()])
        print((await client.call_tool("add", {"a": 2, "b": 3})).text)
        print((await client.call_tool("add", {"a": "two"})).text)

anyio.run(main)
"""


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAGCHAT_HOME", str(tmp_path / "home"))
    for name, code in EXAMPLES.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    return tmp_path


def printed(folder: Path, *words: str) -> str:
    command = [sys.executable, "-W", "error", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST_SECONDS)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_client_uses_the_server_over_stdio(examples: Path) -> None:
    assert printed(examples, "client.py") == CLIENT_OUTPUT


async def test_the_client_uses_the_server_over_http(examples: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    command = [sys.executable, str(examples / "server.py"), str(port)]
    with Held(command, stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        while b"running on" not in await anyio.to_thread.run_sync(server.stderr.readline):
            pass
        assert await anyio.to_thread.run_sync(printed, examples, "client.py", url) == CLIENT_OUTPUT


def test_the_second_client_uses_the_other_features(examples: Path) -> None:
    assert printed(examples, "gardener.py") == OUTPUTS["gardener.py"]


def test_the_proxy_forwards_to_both_servers(examples: Path) -> None:
    listed, *answers = printed(examples, "-c", USE_OF_THE_PROXY).splitlines()
    assert listed == "add summarize plant water"
    assert answers == ["5", "Invalid parameter $.a: expected `int`, got `str`.", "add takes: a, b."]


def test_the_mounted_server_answers(examples: Path) -> None:
    assert printed(examples, "-c", USE_OF_THE_MOUNTED_SERVER) == "plant water\n"


def test_the_scripts_remember_find_remove_and_undo(examples: Path) -> None:
    assert printed(examples, "notes.py") == MEMORY_OUTPUT
    assert printed(examples, "upkeep.py") == OUTPUTS["upkeep.py"]


def test_a_script_that_stores_much_runs_once(examples: Path) -> None:
    much = EXAMPLES["notes.py"].replace('"# Roses', '"A thorn. " * 80_000 + "\\n\\n# Roses')
    (examples / "much.py").write_text(much, encoding="utf-8")
    assert printed(examples, "much.py").splitlines()[:2] == MEMORY_OUTPUT.splitlines()[:2]


def test_every_name_is_imported_when_it_is_first_used() -> None:
    code = "import sys, ragmcp, ragmemory; print(*(name for name in sys.modules if name.startswith('ragm')))"
    assert printed(Path(), "-c", code).split() == ["ragmcp", "ragmemory"]
    assert [Client, Endpoint, RagMcpError, Server, ToolError, ToolResult, Call, open_http, tool]
    assert not hasattr(ragmcp, "Nothing")


def test_all_names_can_be_imported_at_once(tmp_path: Path) -> None:
    assert printed(tmp_path, "-c", "from ragmcp import *; print(tool.__name__)") == "tool\n"
    assert printed(tmp_path, "-c", "from ragmemory import *; print(Hit.__name__)") == "Hit\n"


def test_each_name_that_a_type_checker_sees_is_found_at_run_time_too() -> None:
    assert sorted(ragmcp.__all__) == sorted(" ".join(ragmcp._HOMES.values()).split())
    assert sorted(ragmemory.__all__) == sorted(ragmemory._HOMES)


@pytest.mark.parametrize("package", [ragmcp, ragmemory], ids=["ragmcp", "ragmemory"])
def test_help_describes_every_name_of_a_package(package: Any) -> None:
    described = pydoc.plain(pydoc.render_doc(package))
    assert [name for name in package.__all__ if name not in described] == []
    assert described.count(" | ") > 100  # the classes with their methods


def test_the_limits_of_the_library_are_those_of_the_program() -> None:
    table = packaged("memory.toml")["http"]
    assert {name: table[name] for name in HttpLimits.__struct_fields__} == {
        name: getattr(HttpLimits(), name) for name in HttpLimits.__struct_fields__
    }
