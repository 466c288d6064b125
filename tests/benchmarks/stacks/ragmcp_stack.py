"""Our own layer: `serve` is a server with one trivial tool, `measure` our client against it."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import anyio

from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.server.tools import tool
from ragmcp.stdio.connect import open_stdio
from ragmcp.stdio.serve import serve_stdio
from tests.benchmarks.stacks.http import run_app
from tests.benchmarks.stacks.measure import measure

MODULE = "tests.benchmarks.stacks.ragmcp_stack"
MESSAGE_BYTES = 64 << 20


@tool(read_only=True)
async def length(call: Call, text: str) -> str:
    """How many characters the text has."""
    return str(len(text))


async def client() -> None:
    command = [sys.executable, "-m", MODULE, "serve"]
    async with open_stdio(
        command, client_name="bench", client_version="1", message_bytes=MESSAGE_BYTES
    ) as peer:
        await measure(lambda text: peer.call_tool("length", {"text": text}, timeout=None))


def serve_http() -> None:
    from ragmcp.http.asgi import Endpoint
    from ragmcp.http.limits import HttpLimits

    limits = HttpLimits(
        message_bytes=MESSAGE_BYTES,
        header_bytes=16_384,
        headers=64,
        body_seconds=30,
        keep_alive_seconds=15,
        sessions=2_000,
        session_idle_seconds=600,
        replay_bytes=1 << 20,
        streams=2_000,
        retry_ms=1_000,
        leave_seconds=5,
    )
    endpoint = Endpoint(Server("bench", "1", [length]), limits)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await endpoint.mcp(scope, receive, send)
            return
        async with endpoint:
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})

    run_app(app)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            anyio.run(partial(serve_stdio, Server("bench", "1", [length]), message_bytes=MESSAGE_BYTES))
        case ["serve-http"]:
            serve_http()
        case _:
            anyio.run(client)
