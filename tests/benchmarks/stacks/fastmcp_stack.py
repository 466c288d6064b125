"""fastmcp, in its own environment: `serve` is a server with one trivial tool, `measure` its own client."""

from __future__ import annotations

import asyncio
import os
import sys

from tests.benchmarks.stacks.measure import measure

MODULE = "tests.benchmarks.stacks.fastmcp_stack"


def serve() -> None:
    from fastmcp import FastMCP

    server = FastMCP("bench")

    async def length(text: str) -> str:
        """How many characters the text has."""
        return str(len(text))

    server.tool(length)
    server.run(transport="stdio", show_banner=False)


async def client() -> None:
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    transport = StdioTransport(sys.executable, ["-m", MODULE, "serve"], env=dict(os.environ))
    async with Client(transport) as peer:
        await measure(lambda text: peer.call_tool("length", {"text": text}))


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else asyncio.run(client())
