"""A server written with the official SDK 2.x; `python -m tests.peers.mcp2_server stdio | http PORT`."""

import sys
from typing import Annotated, Any

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.server.streamable_http import EventMessage
from pydantic import BaseModel

from tests.peers.events import Events
from tests.peers.offers import TONES, WELCOME, grown, offer
from tests.support.serving import both, run_app

# A coloured traceback takes half a second.
server: Any = MCPServer("sdk-2", instructions="Of the SDK 2.x.", log_level="CRITICAL")
offer(server)


class Name(BaseModel):
    name: str


async def steps(context: Context) -> str:
    """Tells how far it is."""
    for step in (1, 2):
        await context.report_progress(step, 2, "working")
    return "done"


async def log(context: Context) -> str:
    """Sends log messages."""
    await context.log("info", "said plainly")
    await context.log("error", "said aloud")
    return "logged"


def name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


async def ask(answer: Annotated[Name, Resolve(name)]) -> str:
    """Asks the user's name."""
    return f"accept: {answer.name}"


def thought() -> Sample:
    question = types.TextContent(text="What is two and two?")
    return Sample([types.SamplingMessage(role="user", content=question)], max_tokens=100)


async def think(answer: Annotated[types.CreateMessageResult, Resolve(thought)]) -> str:
    """Asks the client's model."""
    return f"{answer.model}: {answer.content.text if isinstance(answer.content, types.TextContent) else ''}"


async def where(answer: Annotated[types.ListRootsResult, Resolve(ListRoots)]) -> str:
    """Names the client's roots."""
    return ", ".join(str(root.uri) for root in answer.roots)


async def grow(context: Context) -> str:
    """Offers one more tool, and says that a note has changed."""
    server.add_tool(grown)
    # One way for each era, and no error where it is not the client's.
    await context.notify_tools_changed()
    await context.notify_resource_updated(WELCOME)
    await context.session.send_tool_list_changed()
    await context.session.send_resource_updated(WELCOME)
    return "grown"


async def interrupted(context: Context) -> str:
    """Closes the stream of its answer before it answers."""
    await context.close_sse_stream()
    return "resumed"


async def complete(reference: Any, argument: Any, context: Any) -> types.Completion:
    return types.Completion(values=[tone for tone in TONES if tone.startswith(argument.value)])


for tool in (steps, log, ask, think, where, grow, interrupted):
    server.tool()(tool)
server.completion()(complete)

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["http", port]:
            events = Events(EventMessage)
            streamable = server.streamable_http_app(event_store=events, retry_interval=20)
            run_app(both(streamable, server.sse_app()), int(port))
        case _:
            server.run("stdio")
