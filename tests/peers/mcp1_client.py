"""The official SDK 1.x as a client: `mcp1_client.py COMMAND…` says as JSON what it saw of a server."""

import asyncio
import importlib
import json
import sys
from datetime import timedelta
from typing import Any

# Type checkers see the SDK 2.x of our own environment, where these modules differ.
mcp: Any = importlib.import_module("mcp")
stdio: Any = importlib.import_module("mcp.client.stdio")


async def look(command: list[str], calls: list[list[Any]]) -> dict[str, Any]:
    """Shake hands, list the tools, make the calls."""
    parameters = mcp.StdioServerParameters(command=command[0], args=command[1:], env=json.loads(sys.argv[1]))
    async with (
        stdio.stdio_client(parameters) as (read, write),
        mcp.ClientSession(read, write, read_timeout_seconds=timedelta(seconds=20)) as session,
    ):
        hello = await session.initialize()
        await session.send_ping()
        listed = await session.list_tools()
        news: list[float] = []

        async def heard(done: float, _total: float | None, _message: str | None) -> None:
            news.append(done)

        results = []
        for name, arguments in calls:
            try:
                result = await session.call_tool(name, arguments, progress_callback=heard)
                results.append(result.model_dump(mode="json"))
            except mcp.McpError as error:
                results.append({"error": error.error.model_dump(mode="json")})
        return {
            "revision": hello.protocolVersion,
            "server": hello.serverInfo.name,
            "tools": [tool.name for tool in listed.tools],
            "results": results,
            "news": news,
        }


if __name__ == "__main__":
    saw = asyncio.run(look(sys.argv[3:], json.loads(sys.argv[2])))
    sys.stdout.write(json.dumps(saw))
