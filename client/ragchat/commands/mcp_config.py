"""`ragchat mcp config HOST`: print the block that adds this memory to another MCP host."""

from __future__ import annotations

from ragchat.commands.invocation import Invocation
from ragchat.setup.host_block import own, running
from ragcommon.hosts import HOSTS, write


def config(run: Invocation) -> None:
    """Print the block on stdout, and where to paste it on stderr."""
    host = HOSTS[run.arguments.host]
    run.console.note(f"Paste this into {host.where} and restart the program:")
    if run.arguments.repository and not host.workspace_fields:
        run.console.note("The program must start the server in a folder of the repository.")
    if run.arguments.url:
        settings = running(host, run.arguments.url, run.arguments.token_file or "")
    else:
        settings = own(host, run.settings, repository=run.arguments.repository)
    if run.console.json or host.format == "json":
        run.console.document(settings)
    else:
        run.console.print(write(settings, host.format))
