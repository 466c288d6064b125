"""A server written with fastmcp; `python -m tests.peers.fastmcp_server stdio | http PORT`."""

import logging
import sys
from typing import Any

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.server.event_store import EventStore
from pydantic import BaseModel

from tests.peers.offers import TONES, WELCOME, grown, offer
from tests.support.serving import both, run_app

logging.disable()  # A coloured traceback takes half a second.
server = FastMCP("fastmcp", instructions="Of fastmcp.")
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
    await context.info("said plainly")
    await context.error("said aloud")
    return "logged"


def needing(request: Any) -> types.InputRequiredResult:
    """What a tool returns in the modern era that still needs an answer."""
    return types.InputRequiredResult(input_requests={"answer": request}, request_state="asked once")


async def ask(context: Context) -> Any:
    """Asks the user's name."""
    if context.request_context.protocol_version < "2026-07-28":
        answer = await context.elicit("What is your name?", Name)
        return f"{answer.action}: {answer.data.name if answer.action == 'accept' else None}"
    if answer := (context.input_responses or {}).get("answer"):
        return f"{answer.action}: {(answer.content or {}).get('name')}"
    form = types.ElicitRequestFormParams(
        message="What is your name?", requested_schema=Name.model_json_schema()
    )
    return needing(types.ElicitRequest(params=form))


async def think(context: Context) -> Any:
    """Asks the client's model."""
    question = types.TextContent(text="What is two and two?")
    messages = [types.SamplingMessage(role="user", content=question)]
    if context.request_context.protocol_version < "2026-07-28":
        thought = await context.session.create_message(messages, max_tokens=100)
    elif not (thought := (context.input_responses or {}).get("answer")):
        params = types.CreateMessageRequestParams(messages=messages, max_tokens=100)
        return needing(types.CreateMessageRequest(params=params))
    return f"{thought.model}: {thought.content.text}"


async def where(context: Context) -> Any:
    """Names the client's roots."""
    if context.request_context.protocol_version < "2026-07-28":
        answer = await context.session.list_roots()
    elif not (answer := (context.input_responses or {}).get("answer")):
        return needing(types.ListRootsRequest())
    return ", ".join(str(root.uri) for root in answer.roots)


async def grow(context: Context) -> str:
    """Offers one more tool, and says that a note has changed."""
    server.tool()(grown)
    await context.send_notification(types.ToolListChangedNotification())
    updated = types.ResourceUpdatedNotificationParams(uri=WELCOME)
    await context.send_notification(types.ResourceUpdatedNotification(params=updated))
    return "grown"


async def interrupted(context: Context) -> str:
    """Closes the stream of its answer before it answers."""
    await context.close_sse_stream()
    return "resumed"


def complete(reference: Any, argument: Any, context: Any) -> list[str]:
    return [tone for tone in TONES if tone.startswith(argument.value)]


for tool in (steps, log, ask, think, where, grow, interrupted):
    server.tool()(tool)
server.completion(complete)

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["http", port]:
            streamable = server.http_app(event_store=EventStore(), retry_interval=20)
            run_app(both(streamable, server.http_app(transport="sse")), int(port))
        case _:
            server.run("stdio", show_banner=False)
