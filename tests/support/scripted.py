"""A server over a connection that says exactly what a test wants to hear answered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from ragmcp.client.features import Client, EraName, connect
from ragmcp.client.handlers import NO_HANDLERS, Handlers
from ragmcp.concurrency import background_task
from ragmcp.protocol.schema.base import Implementation
from tests.support.in_memory import memory_pair

Script = Callable[[dict[str, Any]], list[Any] | None]
ME = Implementation(name="me", version="1")

INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "serverInfo": {"name": "old", "version": "1"},
}


class Scripted:
    """A server that says what the script tells it to; None ends the connection."""

    def __init__(self, script: Script) -> None:
        self.heard: list[dict[str, Any]] = []
        self._script = script
        self.here, self.there = memory_pair()

    async def run(self) -> None:
        while data := await self.there.receive():
            for line in data.splitlines():
                message = json.loads(line)
                self.heard.append(message)
                answers = self._script(message)
                if answers is None:
                    self.there.close()
                for answer in answers or []:
                    self.say(answer)

    def say(self, message: Any) -> None:
        """Unasked."""
        self.there.write(message if isinstance(message, bytes) else json.dumps(message).encode())

    def methods(self) -> list[str]:
        """What was heard."""
        return [message["method"] for message in self.heard]


@asynccontextmanager
async def connected(
    script: Script,
    era: EraName | None = "modern",
    message_bytes: int = 10_000,
    handlers: Handlers = NO_HANDLERS,
) -> AsyncIterator[tuple[Client, Scripted]]:
    """A client of it."""
    server = Scripted(script)
    with anyio.fail_after(60):
        async with (
            background_task(server.run),
            connect(server.here, ME, message_bytes=message_bytes, era=era, handlers=handlers) as client,
        ):
            yield client, server


def success(message: dict[str, Any], **result: Any) -> dict[str, Any]:
    """The answer to a message."""
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def failure(message: dict[str, Any], code: int, text: str = "no", data: Any = None) -> dict[str, Any]:
    """The refusal of a message."""
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text, "data": data}}
