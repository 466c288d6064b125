"""Files that name servers, and a `ServerManager` that runs them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from ragchat.servers.connection import State
from ragchat.servers.manager import ServerManager
from ragchat.servers.tools import ServerTool
from ragconfig.settings import load_settings
from tests.support.mcp_process import ENV, SERVER
from tests.support.processes import LONGEST_SECONDS

GOOD: dict[str, Any] = {"command": SERVER[0], "args": SERVER[1:], "env": {"PYTHONPATH": ENV["PYTHONPATH"]}}


def write(home: Path, **servers: dict[str, Any]) -> None:
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


@asynccontextmanager
async def managed(home: Path, **flags: float) -> AsyncIterator[ServerManager]:
    """A manager with its servers started and settled."""
    settings = load_settings(
        flags={f"servers.{name}": value for name, value in flags.items()},
        environ={"RAGCHAT_HOME": str(home)},
        folder=home,
    )
    with anyio.fail_after(LONGEST_SECONDS):
        async with ServerManager(settings) as manager:
            manager.start()
            for connection in manager.connections.values():
                if connection.state is not State.UNASKED:
                    await connection.settled.wait()
            yield manager


def tool(manager: ServerManager, name: str) -> ServerTool:
    """The tool that a model knows by this name."""
    return next(tool for tool in manager.tools() if tool.name == name)
