"""Messages as they stand on the wire, exchanged with a server that runs beside the test.

Each message of the server is checked against the schema of the revision that is spoken.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from ragmcp.concurrency import background_task
from ragmcp.server.core import Server, serve
from tests.support import schemas
from tests.support.in_memory import MemoryStream, memory_pair

MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class RawClient:
    """Sends messages as they are given, and shows what comes."""

    def __init__(self, stream: MemoryStream) -> None:
        self._stream = stream
        self._received: list[Any] = []
        self._conversation = schemas.Conversation()
        self._meta: dict[str, Any] = {}

    def send(self, message: Any) -> None:
        """One message, or a batch; bytes go as they are."""
        self._conversation.note("client", message)
        self._stream.write(message if isinstance(message, bytes) else json.dumps(message).encode())

    async def receive(self) -> Any:
        """The next message."""
        with anyio.fail_after(60):
            while not self._received:
                data = await self._stream.receive()
                assert data, "the server has left"
                self._received += [json.loads(line) for line in data.splitlines()]
        message = self._received.pop(0)
        if schemas.present():
            self._conversation.check("server", message)
        return message

    async def ask(self, message: Any) -> Any:
        """The next message after this one was sent."""
        self.send(message)
        return await self.receive()

    async def request(
        self, method: str, params: dict[str, Any] | None = None, *, id: int | str = 1, modern: bool = False
    ) -> Any:
        """The answer to a request."""
        return await self.ask(self.message(method, params, id=id, modern=modern))

    def message(
        self, method: str, params: dict[str, Any] | None = None, *, id: int | str = 1, modern: bool = False
    ) -> Any:
        """The request itself."""
        params = dict(params or {})
        if meta := self._meta or (MODERN_META if modern else {}):
            params["_meta"] = meta | params.get("_meta", {})
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}

    async def speak(self, revision: str, **capabilities: Any) -> None:
        """From here on all requests are of `revision`, from a client with these capabilities."""
        if revision == schemas.MODERN:
            self._meta = MODERN_META | {"io.modelcontextprotocol/clientCapabilities": capabilities}
        else:
            await self.initialize(revision, **capabilities)

    async def initialize(self, revision: str, **capabilities: Any) -> Any:
        """The legacy handshake; its answer."""
        client = {
            "protocolVersion": revision,
            "clientInfo": {"name": "raw", "version": "0"},
            "capabilities": capabilities,
        }
        answer = await self.request("initialize", client, id="initialize")
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def close(self) -> None:
        """No more requests."""
        self._stream.close()


@asynccontextmanager
async def raw_client(
    server: Server, revision: str = "", *, message_bytes: int = 10 * 2**20, **capabilities: Any
) -> AsyncIterator[RawClient]:
    """A raw client of `server`; with a revision it speaks that already, and has these capabilities."""
    here, there = memory_pair()

    async def answer() -> None:
        await serve(server, there, message_bytes=message_bytes)
        there.close()

    async with background_task(answer):
        client = RawClient(here)
        if revision:
            await client.speak(revision, **capabilities)
        yield client
