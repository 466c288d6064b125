"""A real HTTP server on a loopback port, in the test's own event loop, and clients of it."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import msgspec
import uvicorn

from ragmcp.http import connect
from ragmcp.http.asgi import Endpoint
from ragmcp.http.exchange import App, Message, Receive, Scope, Send
from ragmcp.http.limits import HttpLimits
from ragmcp.protocol.headers import NAMED_BY, encode_value
from ragmcp.server.core import Server
from tests.support.mcp_server import make_server
from tests.support.processes import LONGEST_SECONDS

LIMITS = HttpLimits(
    message_bytes=2**20,
    header_bytes=2**14,
    headers=100,
    body_seconds=10,
    keep_alive_seconds=10,
    sessions=100,
    session_idle_seconds=600,
    replay_bytes=2**20,
    streams=2000,
    retry_ms=500,
    leave_seconds=1,
)

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "http", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
ACCEPT = "application/json, text/event-stream"


def limits(**changes: Any) -> HttpLimits:
    """The usual limits, but for these."""
    return msgspec.structs.replace(LIMITS, **changes)


@asynccontextmanager
async def served(app: App, port: int = 0, certificate: Path | None = None) -> AsyncIterator[str]:
    """Serve an ASGI application (0: on any free port); yields the URL of its root.

    With a `certificate`, which is a file with its key too, over TLS.
    """
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:  # Else asyncio leaves Nagle's delay on.
        listener.bind(("127.0.0.1", port))
        listener.listen(2048)
        config = uvicorn.Config(
            app,
            interface="asgi3",
            http="httptools",
            ws="none",
            lifespan="off",
            proxy_headers=False,
            log_level="error",
            timeout_keep_alive=60,  # a busy machine may pause for longer than the usual 5 s
            ssl_certfile=certificate,
        )
        config.load()
        # Server.serve() without its main loop, which looks ten times a second whether it is to end.
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup([listener])
        try:
            scheme = "https" if certificate else "http"
            yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            # The next server may get the same port: what clients know of this one would mislead them.
            connect._found.clear()
            # Server.shutdown() sleeps for a tenth of a second first.
            state = server.server_state
            for one in server.servers:
                one.close()
            for connection in list(state.connections):
                connection.shutdown()
            with anyio.move_on_after(1, shield=True):
                while state.connections or state.tasks:
                    await anyio.lowlevel.checkpoint()
            for task in state.tasks:
                task.cancel()


class ObservedApp:
    """An ASGI application whose state a test can wait for: it changes when a response begins or ends."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._changed = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def observed(message: Message) -> None:
            await send(message)
            self._changed.set()

        try:
            await self._app(scope, receive, observed)
        finally:
            self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a change makes the condition true."""
        with anyio.fail_after(LONGEST_SECONDS):
            while not condition():
                self._changed = anyio.Event()
                await self._changed.wait()


class HttpClient:
    """Sends requests over real sockets, with the headers that belong to them, to `endpoint` behind `app`."""

    def __init__(self, http: httpx2.AsyncClient, url: str, endpoint: Endpoint, app: ObservedApp) -> None:
        self.http = http
        self.url = url
        self.endpoint = endpoint
        self._app = app

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a response that begins or ends makes the condition true."""
        await self._app.until(condition)

    async def post(self, message: Any, headers: Mapping[str, str] | None = None) -> httpx2.Response:
        """A body with `headers` besides the usual two."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        usual = {"content-type": "application/json", "accept": ACCEPT}
        return await self.http.post(self.url, content=body, headers=usual | dict(headers or {}))

    async def modern(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: int | str = 1,
        headers: Mapping[str, str | None] | None = None,
    ) -> httpx2.Response:
        """A modern request as it should be, but for `headers` (None: left out)."""
        message = modern_request(method, params, id=id)
        given: dict[str, str | None] = {**modern_headers(message), **(headers or {})}
        return await self.post(message, {name: value for name, value in given.items() if value is not None})

    async def session(
        self, revision: str = "2025-11-25", capabilities: Mapping[str, Any] | None = None
    ) -> dict[str, str]:
        """The headers of a new legacy session."""
        params = {
            "protocolVersion": revision,
            "clientInfo": {"name": "http", "version": "0"},
            "capabilities": capabilities or {},
        }
        response = await self.post(request("initialize", params))
        assert response.status_code == 200, response.text
        assert response.json()["result"]["protocolVersion"] == revision
        headers = {"mcp-session-id": response.headers["mcp-session-id"]}
        if revision >= "2025-06-18":
            headers["mcp-protocol-version"] = revision
        done = await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers)
        assert done.status_code == 202
        return headers

    @asynccontextmanager
    async def stream(
        self, message: Any, headers: Mapping[str, str] | None = None, method: str = "POST"
    ) -> AsyncIterator[EventSource]:
        """The events of a response, as they come."""
        usual = {"accept": ACCEPT}
        content = None
        if message is not None:
            usual["content-type"] = "application/json"
            content = json.dumps(message).encode()
        async with self.http.stream(
            method, self.url, content=content, headers=usual | dict(headers or {})
        ) as response:
            yield EventSource(response)


def raise_descriptor_limit(wanted: int) -> None:
    """As far as that goes without asking anybody."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard == resource.RLIM_INFINITY or hard >= wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


class EventSource:
    """The events of one response."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> dict[str, str] | None:
        """The fields of the next event, `""` being the comment; None at the end of the stream."""
        fields: dict[str, str] = {}
        with anyio.fail_after(LONGEST_SECONDS):
            async for line in self._lines:
                if not line and fields:
                    return fields
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
        return fields or None

    async def message(self) -> Any:
        """The next JSON-RPC message; None at the end of the stream."""
        while (event := await self.next()) is not None:
            if event.get("data"):
                return json.loads(event["data"])
        return None


def request(method: str, params: Any = None, *, id: int | str = 1) -> Any:
    """A request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def modern_request(method: str, params: Mapping[str, Any] | None = None, *, id: int | str = 1) -> Any:
    """A modern request."""
    params = dict(params or {})
    params["_meta"] = META | params.get("_meta", {})
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def modern_headers(message: Any) -> dict[str, str]:
    """The headers that belong to a modern request."""
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": message["method"]}
    if field := NAMED_BY.get(message["method"]):
        headers["mcp-name"] = encode_value(message["params"][field])
    return headers


@asynccontextmanager
async def http_client(
    server: Server | None = None, form: type[Endpoint] = Endpoint, **options: Any
) -> AsyncIterator[HttpClient]:
    """A client of a server of its own; `options` are the endpoint's, and `limits` has its usual values."""
    chosen = options.pop("limits", LIMITS)
    unlimited = httpx2.Limits(max_connections=None)
    async with (
        form(server or make_server(), chosen, **options) as endpoint,
        served(app := ObservedApp(endpoint)) as url,
        httpx2.AsyncClient(timeout=LONGEST_SECONDS, trust_env=False, limits=unlimited) as http,
    ):
        yield HttpClient(http, url, endpoint, app)
