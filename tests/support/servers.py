"""Files that name servers, and a `ServerManager` that runs them."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from ragchat.servers.asking import User
from ragchat.servers.managed import ServerState
from ragchat.servers.manager import ServerManager
from ragchat.servers.tools import OfferedTool
from ragconfig.settings import load_settings
from tests.support.forking import python_for
from tests.support.mcp_process import ENV, SERVER
from tests.support.processes import LONGEST_SECONDS

GOOD: dict[str, Any] = {"command": SERVER[0], "args": SERVER[1:], "env": {"PYTHONPATH": ENV["PYTHONPATH"]}}


def _program(code: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-c", code]}


# Servers that misbehave: each in its own way, until it is killed.
DEAD = _program("raise SystemExit(3)")
SILENT = _program("import sys; sys.stdin.read()")
STUBBORN = _program(
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: signal.pause()"
)
COMPLAINING = _program("import os\nwhile True: os.write(2, b'No, no, no.\\n')")
NOISY = _program("import os\nwhile True: os.write(2, b'x' * 65536)")
RUBBISH = _program("import os\nwhile True: os.write(1, b'rubbish\\n' * 5000)")
_FLOODING = str(Path(__file__).with_name("flooding_server.py"))
LOGGING = {
    "command": sys.executable,
    "args": [_FLOODING, "notifications/message", '{"level": "info", "data": "again"}'],
}
CHANGING = {"command": sys.executable, "args": [_FLOODING, "notifications/tools/list_changed", "{}"]}


def held_back(gate: Path) -> dict[str, Any]:
    """The good server, which starts when a line is written to `gate`, a named pipe. POSIX."""
    os.mkfifo(gate)
    wait = f"read _ < {shlex.quote(str(gate))}; exec {shlex.join(SERVER)}"
    return {**GOOD, "command": "sh", "args": ["-c", wait]}


def write(home: Path, **servers: dict[str, Any]) -> None:
    """Our own server is forked: see forking.py."""
    forked = {"command": python_for(os.environ)}
    named = {name: one | forked if one.get("args") == GOOD["args"] else one for name, one in servers.items()}
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "mcp.json").write_text(json.dumps({"mcpServers": named}))


@asynccontextmanager
async def managed(
    home: Path,
    *,
    settled: Collection[str] | None = None,
    user: User | None = None,
    longest: float = LONGEST_SECONDS,
    **flags: float,
) -> AsyncIterator[ServerManager]:
    """A manager with its servers started, and all of them settled or those named.

    `user` is the one whom they may ask. All that is done with the manager takes at most `longest` seconds.
    """
    settings = load_settings(
        flags={f"servers.{name}": value for name, value in flags.items()},
        environ={"RAGCHAT_HOME": str(home)},
        folder=home,
    )
    with anyio.fail_after(longest):
        async with ServerManager(settings) as manager:
            manager.user = user
            manager.start()
            for name, connection in manager.connections.items():
                if connection.state is not ServerState.UNASKED and (settled is None or name in settled):
                    await connection.wait_started()
            yield manager


def tool(manager: ServerManager, name: str) -> OfferedTool:
    """The tool that a model knows by this name."""
    return next(tool for tool in manager.tools() if tool.name == name)
