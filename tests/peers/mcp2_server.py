"""A server written with the official SDK 2.x."""

import asyncio

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("sdk-2")


@server.tool()
async def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


@server.tool()
async def fail() -> str:
    """Fails."""
    raise ValueError("no luck")


@server.tool()
async def wait() -> str:
    """Never ends."""
    await asyncio.Event().wait()
    return ""


@server.tool()
async def steps(context: Context) -> str:
    """Tells how far it is."""
    for step in (1, 2):
        await context.report_progress(step, 2)
    return "done"


if __name__ == "__main__":
    server.run("stdio")
