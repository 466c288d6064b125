"""The tests' own MCP server over HTTP as a process: `python -m tests.support.mcp_http PORT`."""

from __future__ import annotations

import sys

import anyio

from ragmcp.http.asgi import Endpoint
from ragmcp.http.exchange import App, Receive, Scope, Send
from tests.support.http_server import limits
from tests.support.mcp_server import MESSAGE_BYTES, make_whole_server
from tests.support.serving import serve_app

LIMITS = limits(message_bytes=MESSAGE_BYTES, retry_ms=20)
COMMAND = [sys.executable, "-m", "tests.support.mcp_http"]


async def main(port: int) -> None:
    """Serve until a signal comes, at the paths where other libraries look."""
    async with Endpoint(make_whole_server(), LIMITS) as endpoint:
        apps: dict[str, App] = {"/mcp": endpoint, "/sse": endpoint.sse, "/messages": endpoint.messages}

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                await apps[scope["path"]](scope, receive, send)

        await serve_app(app, port)


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]))
