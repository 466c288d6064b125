"""The official Python SDK: `serve` is a server with one trivial tool, `measure` its own client against it."""

from __future__ import annotations

import asyncio
import sys

from tests.benchmarks.stacks.measure import measure

MODULE = "tests.benchmarks.stacks.sdk_stack"


def serve() -> None:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench")

    @server.tool()
    async def length(text: str) -> str:
        """How many characters the text has."""
        return str(len(text))

    server.run("stdio")


async def client() -> None:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    transport = stdio_client(StdioServerParameters(command=sys.executable, args=["-m", MODULE, "serve"]))
    async with Client(transport) as peer:
        await measure(lambda text: peer.call_tool("length", {"text": text}))


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else asyncio.run(client())
