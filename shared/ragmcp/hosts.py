"""How other MCP hosts write a server into their settings: the blocks to paste.

Here because both programs print them, `ragchat mcp config` and the page of `ragmemory http`, and neither may
import the other; `ragconfig` holds data only. Light: the names are needed to parse a command line.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

SERVER_NAME = "ragmemory"
# Where the bearer token is looked for besides a file: a host's settings name it, and its user sets it.
TOKEN_VARIABLE = "RAGMEMORY_TOKEN"


class Host(NamedTuple):
    """What is particular about a host's settings."""

    title: str
    where: str
    key: str = "mcpServers"
    """The member that holds the servers."""
    started: Mapping[str, Any] = {}
    """What stands with the command of a server that the host starts."""
    reached: Mapping[str, Any] | None = None
    """What stands with a URL; None: the host only starts servers."""
    secret: str = f"${{{TOKEN_VARIABLE}}}"
    """How it refers to a secret that its settings do not hold."""
    inputs: tuple[Mapping[str, Any], ...] = ()
    """What it then has to ask its user for."""


_CLINE = {"disabled": False, "autoApprove": ["Query"]}

HOSTS = {
    "claude-desktop": Host(
        "Claude Desktop", "claude_desktop_config.json (Settings > Developer > Edit Config)"
    ),
    "claude-code": Host(
        "Claude Code",
        ".mcp.json in the project's folder",
        started={"type": "stdio"},
        reached={"type": "http"},
    ),
    "vscode": Host(
        "VS Code",
        ".vscode/mcp.json, or the user's (MCP: Open User Configuration)",
        "servers",
        {"type": "stdio"},
        {"type": "http"},
        "${input:ragmemory-token}",
        (
            {
                "type": "promptString",
                "id": "ragmemory-token",
                "description": "ragmemory token",
                "password": True,
            },
        ),
    ),
    "cline": Host(
        "Cline",
        "cline_mcp_settings.json (MCP Servers > Configure > Configure MCP Servers)",
        started=_CLINE,
        reached={"type": "streamableHttp", **_CLINE},
        secret="PUT-THE-TOKEN-HERE",
    ),
    "cursor": Host(
        "Cursor",
        "~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder",
        reached={},
        secret=f"${{env:{TOKEN_VARIABLE}}}",
    ),
}


def started(host: Host, command: Sequence[str], environ: Mapping[str, str]) -> dict[str, Any]:
    """The host's whole settings with one server that it starts by `command`, `environ` added to its own."""
    entry: dict[str, Any] = {"command": command[0], "args": list(command[1:])}
    if environ:
        entry["env"] = dict(environ)
    return {host.key: {SERVER_NAME: {**entry, **host.started}}}


def reached(
    host: Host, url: str, command: Sequence[str], *, token: bool, token_file: str = ""
) -> dict[str, Any]:
    """The host's whole settings with the server that runs at `url`; `token`: whether it wants one.

    The token itself is never in them. A host that only starts servers starts a bridge by `command`, which is
    the program `ragmemory`.
    """
    if host.reached is None:
        file = ["--token-file", token_file or "PATH-OF-THE-TOKEN-FILE"] if token else []
        return started(host, [*command, "bridge", url, *file], {})
    entry: dict[str, Any] = {"url": url, **host.reached}
    if not token:
        return {host.key: {SERVER_NAME: entry}}
    entry["headers"] = {"Authorization": f"Bearer {host.secret}"}
    inputs = {"inputs": list(host.inputs)} if host.inputs else {}
    return {**inputs, host.key: {SERVER_NAME: entry}}


def server_command() -> list[str]:
    """The installed `ragmemory` by its absolute path; else this Python running the module."""
    import shutil
    import sysconfig

    installed = shutil.which(SERVER_NAME, path=sysconfig.get_path("scripts"))
    return [installed] if installed else [sys.executable, "-m", SERVER_NAME]
