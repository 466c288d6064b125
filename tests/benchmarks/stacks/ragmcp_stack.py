"""Our own layer: `serve` is a server with one trivial tool, `measure` our client against it."""

from __future__ import annotations

import sys
from functools import partial

import anyio

from ragmcp.server import Call, Server
from ragmcp.tools import tool
from ragmcp.transports.stdio import open_stdio, serve_stdio
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


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        anyio.run(partial(serve_stdio, Server("bench", "1", [length]), message_bytes=MESSAGE_BYTES))
    else:
        anyio.run(client)
