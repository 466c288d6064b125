"""The official Python SDK: `serve` is a server with one trivial tool, `measure` its own client against it."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from tests.benchmarks.stacks.http import run_app
from tests.benchmarks.stacks.measure import measure

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

MODULE = "tests.benchmarks.stacks.sdk_stack"


def make_server() -> MCPServer:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench")

    @server.tool()
    async def length(text: str) -> str:
        """How many characters the text has."""
        return str(len(text))

    return server


async def client() -> None:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    transport = stdio_client(StdioServerParameters(command=sys.executable, args=["-m", MODULE, "serve"]))
    async with Client(transport) as peer:
        await measure(lambda text: peer.call_tool("length", {"text": text}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            make_server().run("stdio")
        case ["serve-http"]:
            run_app(make_server().streamable_http_app(json_response=True))
        case _:
            asyncio.run(client())
