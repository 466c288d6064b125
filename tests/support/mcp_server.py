"""A real MCP server on stdio, for tests: `python -m tests.support.mcp_server`."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Annotated, Any

import anyio
from msgspec import Meta, Struct

from ragmcp.errors import ToolError
from ragmcp.protocol.schema.content import TextContent
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.server.tools import ToolResult, tool
from ragmcp.stdio.serve import serve_stdio

MESSAGE_BYTES = 200 * 2**20


class Sum(Struct):
    """The outcome of Add."""

    total: int


class Size(Struct):
    """How much there was."""

    characters: int


@tool(read_only=True)
async def Echo(call: Call, text: str) -> str:
    """Gives the text back."""
    return text


@tool(read_only=True)
async def Add(
    call: Call, a: int, b: Annotated[int, Meta(ge=0, le=100, description="what to add")] = 1
) -> Sum:
    """Adds two numbers."""
    return Sum(a + b)


@tool(read_only=True)
async def Measure(call: Call, text: str) -> Size:
    """Says how long a text is."""
    return Size(len(text))


@tool(read_only=True)
async def Produce(call: Call, characters: int) -> str:
    """Makes a text of a given length."""
    return "x" * characters


@tool(read_only=True)
async def Describe(call: Call) -> ToolResult[Sum]:
    """Chooses its own text."""
    return ToolResult([TextContent(text=f"{call.terms.client.name} speaks {call.terms.revision}")], Sum(1))


@tool()
async def Fail(call: Call) -> str:
    """Fails in the way tools fail."""
    raise ToolError("OUT_OF_LUCK", "There was no luck left.", {"luck": 0})


@tool()
async def Crash(call: Call) -> str:
    """Fails in an unexpected way."""
    raise RuntimeError("an internal secret")


@tool()
async def Die(call: Call) -> str:
    """Takes the whole process along."""
    os._exit(3)


@tool(read_only=True)
async def Pid(call: Call) -> str:
    """The server's process id."""
    return str(os.getpid())


@tool(read_only=True)
async def Environment(call: Call) -> str:
    """The names of the server's environment variables."""
    return " ".join(os.environ)


waiting: set[anyio.Event] = set()


@tool()
async def Wait(call: Call, progress: int = 0) -> str:
    """Never ends by itself; says that it began."""
    print("Wait began", file=sys.stderr, flush=True)
    over = anyio.Event()
    waiting.add(over)
    try:
        for step in range(progress):
            await call.progress(step + 1, progress, "working")
        await anyio.sleep_forever()
    finally:
        print("Wait was cancelled", file=sys.stderr, flush=True)
        waiting.discard(over)
        over.set()
    return ""


@tool(read_only=True)
async def Quiet(call: Call) -> str:
    """Answers when no Wait is under way any more."""
    for over in tuple(waiting):
        await over.wait()
    return "quiet"


@tool()
async def Shout(call: Call) -> str:
    """Prints to stdout, from Python and from C."""
    print("from Python", flush=True)
    libc = ctypes.CDLL(None)
    libc.puts(b"from C")
    libc.fflush(None)
    os.write(1, b"from a descriptor\n")
    return "shouted"


@tool()
async def NeedsElicitation(call: Call) -> str:
    """Works only with clients that can ask their user."""
    call.require("elicitation")
    return "asked"


@tool()
async def Surrogate(call: Call) -> str:
    """Returns what has no JSON form."""
    return "\ud800"


TOOLS = [
    Echo,
    Add,
    Measure,
    Produce,
    Describe,
    Fail,
    Crash,
    Die,
    Pid,
    Environment,
    Wait,
    Quiet,
    Shout,
    NeedsElicitation,
    Surrogate,
]


def make_server(**options: Any) -> Server:
    """The tools alone."""
    return Server("test-server", "1.2.3", TOOLS, **options)


def make_whole_server() -> Server:
    """Everything a server can offer."""
    from tests.support import mcp_offers as offers

    server = make_server(
        instructions="For tests.",
        resources=offers.Notes(),
        prompts=[offers.Summarize],
        complete=offers.complete,
        logs=True,
    )
    asking = (offers.Ask, offers.Think, offers.Where)
    changing = (offers.growing(server), offers.turning(server))
    for more in (*asking, *changing, offers.Log, offers.Mirror, offers.Interrupted):
        server.tools[more.name] = more
    return server


def main() -> None:
    """Serve until stdin ends."""
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGE_BYTES
    server = make_whole_server()
    anyio.run(lambda: serve_stdio(server, message_bytes=limit))


if __name__ == "__main__":
    main()
