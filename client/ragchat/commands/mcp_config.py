"""`ragchat mcp config HOST`: print the block that adds this memory to another MCP host."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from ragchat.commands.invocation import Invocation
from ragchat.setup.host_block import own
from ragcommon.hosts import HOSTS, Host, reached, server_command, write
from ragconfig.home import user_path

MCP_PATH = "/mcp"


def config(run: Invocation) -> None:
    """Print the block on stdout, and where to paste it on stderr."""
    host = HOSTS[run.arguments.host]
    run.console.note(f"Paste this into {host.where} and restart the program:")
    if run.arguments.repository and not host.workspace_fields:
        run.console.note("The program must start the server in a folder of the repository.")
    if run.arguments.url:
        settings = _running(host, run)
    else:
        settings = own(host, run.settings, run.config_file, repository=run.arguments.repository)
    if run.console.json or host.format == "json":
        run.console.document(settings)
    else:
        run.console.print(write(settings, host.format))


def _running(host: Host, run: Invocation) -> dict[str, Any]:
    """The block for the server that `ragchat serve` runs."""
    file = run.arguments.token_file
    path = str(user_path(file)) if file else ""
    return reached(host, _address(run.arguments.url), server_command(), token=bool(file), token_file=path)


def _address(url: str) -> str:
    """The MCP endpoint of a server; `url` may be its root."""
    parts = urlsplit(url)
    return url if parts.path not in ("", "/") else parts._replace(path=MCP_PATH).geturl()
