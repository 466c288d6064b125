"""A server whose tools note each call in a file, and of which each dies in its first: `python -m …`."""

from __future__ import annotations

import os
from pathlib import Path

import anyio

from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.server.tools import tool
from ragmcp.stdio.serve import serve_stdio


@tool(read_only=True)
async def look(_: Call, file: str) -> str:
    """Only reads."""
    return note(file)


@tool(idempotent=True)
async def keep(_: Call, file: str) -> str:
    """May be called again."""
    return note(file)


@tool()
async def change(_: Call, file: str) -> str:
    """Must not be called again."""
    return note(file)


def note(file: str) -> str:
    with Path(file).open("a", encoding="utf-8") as calls:
        calls.write("called\n")
        calls.flush()
        if calls.tell() == len("called\n"):
            os._exit(3)
    return "done"


if __name__ == "__main__":
    anyio.run(lambda: serve_stdio(Server("dying", "1", [look, keep, change]), message_bytes=2**20))
