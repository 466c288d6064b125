"""A server written with the official SDK 1.x; runs in that SDK's own environment."""

import asyncio
import importlib

# Type checkers see the SDK 2.x of our own environment, where this module means something else.
fastmcp = importlib.import_module("mcp.server.fastmcp")
server = fastmcp.FastMCP("sdk-1")


@server.tool()  # type: ignore[untyped-decorator, unused-ignore]
async def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


@server.tool()  # type: ignore[untyped-decorator, unused-ignore]
async def fail() -> str:
    """Fails."""
    raise ValueError("no luck")


@server.tool()  # type: ignore[untyped-decorator, unused-ignore]
async def wait() -> str:
    """Never ends."""
    await asyncio.Event().wait()
    return ""


if __name__ == "__main__":
    server.run("stdio")
