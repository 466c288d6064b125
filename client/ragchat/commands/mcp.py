"""`ragchat mcp config HOST`: the block that puts this memory into another MCP host."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

from msgspec import Struct

from ragchat.commands import Run
from ragchat.memory_process import memory_path
from ragmcp.home import HOME_VARIABLE

SERVER_NAME = "ragmemory"


class Host(Struct, frozen=True):
    """How a host writes its MCP servers: the key that holds them, what an entry has beside the command."""

    where: str
    key: str = "mcpServers"
    extra: dict[str, Any] = {}


HOSTS = {
    "claude-desktop": Host("claude_desktop_config.json (Settings > Developer > Edit Config)"),
    "claude-code": Host(".mcp.json in the project's folder", extra={"type": "stdio"}),
    "vscode": Host(
        ".vscode/mcp.json, or the user's (MCP: Open User Configuration)",
        "servers",
        {"type": "stdio"},
    ),
    "cline": Host(
        "cline_mcp_settings.json (MCP Servers > Configure > Configure MCP Servers)",
        extra={"disabled": False, "autoApprove": ["Query"]},
    ),
    "cursor": Host("~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder"),
}


def config(run: Run) -> int:
    """The block on stdout, where it goes on stderr."""
    host = HOSTS[run.arguments.host]
    run.console.note(f"Put this into {host.where}, and restart the host:")
    run.console.document(block(host, run))
    return 0


def block(host: Host, run: Run) -> dict[str, Any]:
    """The host's whole settings object with this one server in it."""
    command, *arguments = server_command()
    arguments += ["--memory", str(memory_path(run.settings))]
    if run.config_file is not None:
        arguments += ["--config", str(run.config_file)]
    entry: dict[str, Any] = {"command": command, "args": arguments}
    # A host does not start its servers from the user's shell: what that sets must stand in the block.
    if home := os.environ.get(HOME_VARIABLE):
        entry["env"] = {HOME_VARIABLE: str(Path(home).expanduser().absolute())}
    return {host.key: {SERVER_NAME: {**entry, **host.extra}}}


def server_command() -> list[str]:
    """The installed `ragmemory` by its absolute path; else this Python running the module."""
    installed = shutil.which(SERVER_NAME, path=sysconfig.get_path("scripts"))
    return [installed] if installed else [sys.executable, "-m", SERVER_NAME]
