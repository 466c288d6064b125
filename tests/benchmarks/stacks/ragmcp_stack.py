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

    endpoint = Endpoint(Server("bench", tools=[length]))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await endpoint(scope, receive, send)
            return
        async with endpoint:
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})

    run_app(app)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            anyio.run(partial(serve_stdio, Server("bench", tools=[length]), message_bytes=MESSAGE_BYTES))
        case ["serve-http"]:
            serve_http()
        case _:
            anyio.run(client)
