"""What a client and a server say to each other, written down on its way and checked against the schemas."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2

from ragmcp.concurrency import background_task
from ragmcp.http.exchange import App, Receive, Scope, Send
from ragmcp.protocol.framing import EventDecoder, Line
from tests.support import schemas
from tests.support.http_server import served

RELAY = Path(__file__).with_name("relay.py")
MESSAGE_BYTES = 200 * 2**20

# These belong to one connection, or are the client library's own to write.
NOT_PASSED_ON = {
    b"host",
    b"connection",
    b"content-length",
    b"accept-encoding",
    b"transfer-encoding",
    b"keep-alive",
}


class Recording:
    """The messages of one client and one server, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def command(self, command: Sequence[str]) -> list[str]:
        """Runs a stdio server, and writes down what it says and hears."""
        return [sys.executable, str(RELAY), str(self.path), *command]

    @asynccontextmanager
    async def http(self, url: str) -> AsyncIterator[str]:
        """A proxy of the HTTP server whose root is `url`; the proxy's root."""
        # No limits: a stream is silent for as long as it likes, and there may be many.
        limits = httpx2.Limits(max_connections=None)
        async with (
            httpx2.AsyncClient(timeout=None, limits=limits) as client,
            served(self._proxy(client, url)) as root,
        ):
            yield root

    def check(self) -> schemas.Conversation:
        """What was spoken, all of which fits. Raises AssertionError; skips where there are no schemas."""
        schemas.need()
        conversation = schemas.Conversation()
        for line in self.path.read_text(encoding="utf-8").splitlines():
            sender, _, message = line.partition(" ")
            conversation.check("client" if sender == "client" else "server", json.loads(message))
        return conversation

    def _write(self, sender: schemas.Side, message: Line) -> None:
        with self.path.open("ab") as file:
            file.write(sender.encode() + b" " + json.dumps(json.loads(message)).encode() + b"\n")

    def _proxy(self, client: httpx2.AsyncClient, root: str) -> App:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            body = await _body(receive)
            if body:
                self._write("client", body)
            query = scope["query_string"].decode()
            request = client.build_request(
                scope["method"],
                root + scope["path"] + (f"?{query}" if query else ""),
                headers=[header for header in scope["headers"] if header[0] not in NOT_PASSED_ON],
                content=body,
            )
            with anyio.CancelScope() as open_here:

                async def until_gone() -> None:
                    while (await receive())["type"] != "http.disconnect":
                        pass
                    open_here.cancel()

                async with background_task(until_gone):
                    await self._pass_on(client, request, send)

        return app

    async def _pass_on(self, client: httpx2.AsyncClient, request: httpx2.Request, send: Send) -> None:
        response = await client.send(request, stream=True)
        try:
            headers = [(name.lower(), value) for name, value in response.headers.raw]
            headers = [header for header in headers if header[0] not in NOT_PASSED_ON]
            await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
            kind = response.headers.get("content-type", "")
            events = EventDecoder(MESSAGE_BYTES) if kind.startswith("text/event-stream") else None
            whole = bytearray()
            async for part in response.aiter_raw():
                if events is None:
                    whole += part
                for event in events.feed(part) if events else ():
                    if event.type != "endpoint":  # Of the old transport, and no message.
                        self._write("server", event.data)
                await send({"type": "http.response.body", "body": part, "more_body": True})
            if whole and kind.startswith("application/json"):
                self._write("server", whole)
            await send({"type": "http.response.body"})
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)
