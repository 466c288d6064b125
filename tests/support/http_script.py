"""An HTTP server that says exactly what a test wants to hear answered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from msgspec import Struct

from ragmcp.client.features import Client, EraName
from ragmcp.client.handlers import NO_HANDLERS, Handlers
from ragmcp.http.connect import open_http
from tests.support.http_server import served


class Heard(Struct):
    """One HTTP request."""

    verb: str
    path: str
    headers: Mapping[str, str]
    message: Any

    @property
    def method(self) -> str:
        """What the message says, or the verb of a request without one."""
        return str(self.message["method"]) if self.message and "method" in self.message else self.verb


class Said(Struct):
    """One HTTP response: a body, or pieces of a stream; `breaks` cuts it off where it would end."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = {}
    pieces: Iterable[bytes | anyio.Event] | None = None
    breaks: bool = False


Script = Callable[[Heard], Said | Awaitable[Said]]


class Broken(Exception):
    """Ends a connection in the middle of a response."""


class Scripted:
    """The application, and what it has heard."""

    def __init__(self, script: Script) -> None:
        self.heard: list[Heard] = []
        self.gone: list[Heard] = []
        self.left = anyio.Event()
        self._script = script

    def methods(self) -> list[str]:
        """What was heard."""
        return [heard.method for heard in self.heard]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while (event := await receive())["type"] == "http.request":
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        heard = Heard(scope["method"], scope["path"], headers, json.loads(body) if body else None)
        self.heard.append(heard)
        said = self._script(heard)
        await self._answer(said if isinstance(said, Said) else await said, heard, receive, send)

    async def _answer(self, said: Said, heard: Heard, receive: Any, send: Any) -> None:
        streams = said.pieces is not None
        kind = "text/event-stream" if streams else "application/json"
        headers = {"content-type": kind} | dict(said.headers)
        start = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": said.status, "headers": start})
        if not streams:
            body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
            await send({"type": "http.response.body", "body": body})
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, heard, receive, tasks.cancel_scope)
            for piece in said.pieces or []:
                if isinstance(piece, anyio.Event):
                    await piece.wait()
                else:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            tasks.cancel_scope.cancel()
        if said.breaks:
            raise Broken
        await send({"type": "http.response.body", "body": b""})

    async def _watch(self, heard: Heard, receive: Any, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.gone.append(heard)
        self.left.set()
        scope.cancel()


def result(heard: Heard, **fields: Any) -> Any:
    """The JSON-RPC answer to what was heard."""
    return {"jsonrpc": "2.0", "id": heard.message["id"], "result": fields}


def error(heard: Heard, code: int, text: str = "no", data: Any = None) -> Any:
    """The JSON-RPC refusal of what was heard."""
    return {
        "jsonrpc": "2.0",
        "id": heard.message["id"],
        "error": {"code": code, "message": text, "data": data},
    }


def event(message: Any, **fields: Any) -> bytes:
    """One event of a stream."""
    lines = [f"{name}: {value}" for name, value in fields.items()]
    return "\n".join([*lines, f"data: {json.dumps(message)}", "", ""]).encode()


def discovered(heard: Heard) -> Any:
    """The answer of a modern server to `server/discover`."""
    return result(heard, resultType="complete", supportedVersions=["2026-07-28"], capabilities={"tools": {}})


def initialized(heard: Heard, revision: str = "2025-11-25") -> Any:
    """The answer of a legacy server to `initialize`."""
    server = {"name": "old", "version": "1"}
    return result(heard, protocolVersion=revision, capabilities={"tools": {}}, serverInfo=server)


@asynccontextmanager
async def scripted(
    script: Script,
    era: EraName | None = "modern",
    *,
    path: str = "/mcp",
    message_bytes: int = 100_000,
    handlers: Handlers = NO_HANDLERS,
    token: str | None = None,
    silence_seconds: float | None = 10,
) -> AsyncIterator[tuple[Client, Scripted]]:
    """A client of such a server."""
    server = Scripted(script)
    with anyio.fail_after(60):
        async with (
            served(server) as url,
            open_http(
                url + path,
                client_name="me",
                client_version="1",
                message_bytes=message_bytes,
                era=era,
                handlers=handlers,
                token=token,
                silence_seconds=silence_seconds,
            ) as client,
        ):
            yield client, server
