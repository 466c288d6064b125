"""fastmcp, in its own environment: `serve` is a server with one trivial tool, `measure` its own client."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from tests.benchmarks.stacks.http import run_app
from tests.benchmarks.stacks.measure import measure

if TYPE_CHECKING:
    from fastmcp import FastMCP

MODULE = "tests.benchmarks.stacks.fastmcp_stack"


def make_server() -> FastMCP:
    from fastmcp import FastMCP

    server = FastMCP("bench")

    async def length(text: str) -> str:
        """How many characters the text has."""
        return str(len(text))

    server.tool(length)
    return server


async def client() -> None:
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    transport = StdioTransport(sys.executable, ["-m", MODULE, "serve"], env=dict(os.environ))
    async with Client(transport) as peer:
        await measure(lambda text: peer.call_tool("length", {"text": text}))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            make_server().run(transport="stdio", show_banner=False)
        case ["serve-http"]:
            run_app(make_server().http_app(json_response=True))
        case _:
            asyncio.run(client())
