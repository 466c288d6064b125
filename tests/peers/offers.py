"""What every peer's server offers without speaking to its client. Runs in that library's own environment."""

from __future__ import annotations

from typing import Annotated, Any

import anyio
from pydantic import Field

WELCOME = "note://welcome"
TONES = ("plain", "playful", "poetic")

waiting: set[anyio.Event] = set()


async def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


async def echo(text: str) -> str:
    """Gives the text back."""
    return text


async def mirror(city: Annotated[str, Field(json_schema_extra={"x-mcp-header": "City"})]) -> str:
    """Takes an argument that modern HTTP repeats in a header."""
    return city


async def fail() -> str:
    """Fails."""
    raise ValueError("no luck")


async def wait() -> str:
    """Never ends by itself."""
    over = anyio.Event()
    waiting.add(over)
    try:
        await anyio.sleep_forever()
    finally:
        waiting.discard(over)
        over.set()
    return ""


async def quiet() -> str:
    """Answers when no wait is under way any more."""
    for over in tuple(waiting):
        await over.wait()
    return "quiet"


async def grown() -> str:
    """Was not there before."""
    return "new"


def welcome() -> str:
    """A note."""
    return "Grüße, 世界"


def named(name: str) -> str:
    """A note about anything."""
    return f"about {name}"


def summarize(topic: str, tone: str = "plain") -> str:
    """Asks for a summary."""
    return f"Summarize {topic}, {tone}."


def offer(server: Any) -> None:
    """Let a server have all that; the three libraries agree on how."""
    for tool in (add, echo, mirror, fail, wait, quiet):
        server.tool()(tool)
    server.resource(WELCOME)(welcome)
    server.resource("note://named/{name}")(named)
    server.prompt()(summarize)
