"""A server written with the official SDK 1.x; `python -m tests.peers.mcp1_server stdio | http PORT`."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pydantic

from tests.peers.events import Events
from tests.peers.offers import TONES, WELCOME, grown, offer
from tests.support.serving import both, run_app

# Type checkers see the SDK 2.x of our own environment, where these modules mean something else.
fastmcp: Any = import_module("mcp.server.fastmcp")
exceptions: Any = import_module("mcp.shared.exceptions")
transport: Any = import_module("mcp.server.streamable_http")
types: Any = import_module("mcp.types")
if TYPE_CHECKING:
    Context = Any
else:
    Context = fastmcp.Context

server = fastmcp.FastMCP(
    "sdk-1",
    instructions="Of the SDK 1.x.",
    log_level="CRITICAL",  # A coloured traceback takes half a second.
    event_store=Events(transport.EventMessage),
    retry_interval=20,
)
offer(server)


class Name(pydantic.BaseModel):
    name: str


async def steps(context: Context) -> str:
    """Tells how far it is."""
    for step in (1, 2):
        await context.report_progress(step, 2, "working")
    return "done"


async def log(context: Context) -> str:
    """Sends log messages."""
    await context.info("said plainly")
    await context.error("said aloud")
    return "logged"


async def ask(context: Context) -> str:
    """Asks the user's name."""
    answer = await context.elicit("What is your name?", Name)
    return f"{answer.action}: {answer.data.name if answer.action == 'accept' else None}"


async def think(context: Context) -> str:
    """Asks the client's model."""
    question = types.TextContent(type="text", text="What is two and two?")
    message = types.SamplingMessage(role="user", content=question)
    thought = await context.session.create_message([message], max_tokens=100)
    return f"{thought.model}: {thought.content.text}"


async def where(context: Context) -> str:
    """Names the client's roots."""
    return ", ".join(str(root.uri) for root in (await context.session.list_roots()).roots)


async def grow(context: Context) -> str:
    """Offers one more tool, and says that a note has changed."""
    server.add_tool(grown)
    await context.session.send_tool_list_changed()
    await context.session.send_resource_updated(pydantic.AnyUrl(WELCOME))
    return "grown"


paid: set[str] = set()


async def buy(context: Context, page: str) -> str:
    """Refuses until the user has paid on a page."""
    if page in paid:
        return "bought"
    raise exceptions.UrlElicitationRequiredError(
        [types.ElicitRequestURLParams(message="Pay there.", url=page, elicitationId="visit-1")]
    )


async def pay(context: Context, page: str, told: bool) -> str:
    """Stands for the page; `told`: says that the user is done with it."""
    paid.add(page)
    if told:
        await context.session.send_elicit_complete("unknown")
        await context.session.send_elicit_complete("visit-1")
    return "paid"


async def interrupted(context: Context) -> str:
    """Closes the stream of its answer before it answers."""
    await context.close_sse_stream()
    return "resumed"


async def complete(reference: Any, argument: Any, context: Any) -> Any:
    return types.Completion(values=[tone for tone in TONES if tone.startswith(argument.value)])


for tool in (steps, log, ask, think, where, grow, buy, pay, interrupted):
    server.tool()(tool)
server.completion()(complete)

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["http", port]:
            run_app(both(server.streamable_http_app(), server.sse_app()), int(port))
        case _:
            server.run("stdio")
