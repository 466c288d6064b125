"""Whatever comes over HTTP, the answer is HTTP; a JSON-RPC error, where something is wrong. Never a crash."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragmcp.http.asgi import Endpoint
from ragmcp.http.exchange import App, Message, Scope
from ragmcp.server.core import Server
from ragmemory.http.plain import PlainEndpoint
from tests.support.http_server import ACCEPT, limits, modern_headers, modern_request, request, served
from tests.support.mcp_server import Add, Echo
from tests.support.processes import LONGEST_SECONDS

SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | json_values,
        "id": st.integers() | st.text() | json_values,
        "method": st.sampled_from(["tools/list", "tools/call", "initialize", "ping", "subscriptions/x"])
        | st.text(),
        "params": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(["Echo", "Add"]) | json_values,
                "arguments": json_values,
                "cursor": json_values,
                "_meta": st.just(modern_request("x")["params"]["_meta"]) | json_values,
                "protocolVersion": st.just("2025-03-26") | json_values,
                "clientInfo": st.just({"name": "n", "version": "0"}) | json_values,
                "capabilities": st.just({}) | json_values,
            },
        )
        | json_values,
        "result": json_values,
        "error": json_values,
    },
)


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


good = encoded(modern_request("tools/call", {"name": "Echo", "arguments": {"text": "ü"}}))
bodies = (
    st.binary(max_size=300)
    | messages.map(encoded)
    | st.lists(messages, max_size=3).map(encoded)
    | messages.map(lambda message: encoded(message).decode().encode("utf-16"))
    | st.integers(0, len(good)).map(lambda end: good[:end])
    | st.tuples(st.integers(0, len(good)), st.binary(max_size=5)).map(
        lambda at: good[: at[0]] + at[1] + good[at[0] :]
    )
)
values = st.binary(max_size=40).filter(lambda value: not set(value) & set(b"\r\n\0"))
headers = st.fixed_dictionaries(
    {},
    optional={
        b"host": st.just(b"localhost") | values,
        b"origin": st.just(b"http://localhost:1") | values,
        b"accept": st.just(ACCEPT.encode()) | values,
        b"content-type": st.just(b"application/json") | values,
        b"content-length": st.integers(0, 10**30).map(lambda size: b"%d" % size) | values,
        b"mcp-protocol-version": st.sampled_from([b"2026-07-28", b"2025-11-25", b"2025-03-26"]) | values,
        b"mcp-method": st.sampled_from([b"tools/list", b"tools/call"]) | values,
        b"mcp-name": st.just(b"Echo") | values,
        b"mcp-session-id": values,
        b"last-event-id": st.sampled_from([b"1-1", b"0-0"]) | values,
        b"traceparent": values,
        b"authorization": values,
    },
)
usual = {
    b"host": b"localhost",
    b"accept": ACCEPT.encode(),
    b"content-type": b"application/json",
    b"mcp-protocol-version": b"2026-07-28",
    b"mcp-method": b"tools/call",
    b"mcp-name": b"Echo",
}


@pytest.fixture(autouse=True)
def _no_traceback(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.ERROR)
    yield
    assert not caplog.records


def endpoint(form: type[Endpoint] = Endpoint) -> Endpoint:
    return form(Server("fuzz", "1", [Echo, Add]), limits(body_seconds=0.2, leave_seconds=0))


class Client:
    """One request without a network: pieces of a body in, one response out."""

    def __init__(self, pieces: list[bytes], *, ends: bool) -> None:
        self._pieces = pieces
        self._ends = ends
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        if self._pieces:
            piece = self._pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces) or not self._ends}
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def ask(self, app: App, scope: Scope, *, plain: bool = False) -> None:
        await app(scope, self.receive, self.send)
        if not self.sent:
            assert not self._ends, "a request that waited was not answered"
            return
        start, *rest = self.sent
        assert start["type"] == "http.response.start"
        assert 200 <= start["status"] < 600
        assert start["status"] != 500
        assert [message.get("more_body", False) for message in rest[-1:]] == [False]
        body = b"".join(message["body"] for message in rest)
        check_body(start["status"], dict(start["headers"]), body, plain=plain)


def check_body(status: int, head: dict[bytes, bytes], body: bytes, *, plain: bool) -> None:
    if status >= 400:
        answer = json.loads(body)
        for one in answer if isinstance(answer, list) else [answer]:
            assert one.get("jsonrpc") == "2.0" or (plain and one.keys() <= {"id", "error"})
            assert isinstance(one["error"]["code"], int)
            assert one["error"]["data"].keys() >= {"errorCode", "details", "requestId"}
    elif head.get(b"content-type") == b"application/json":
        json.loads(body)


@settings(suppress_health_check=SLOW)
@given(
    method=st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "OPTIONS", "PUT"]),
    named=headers,
    complete=st.booleans(),
    body=bodies,
    cuts=st.lists(st.integers(0, 300), max_size=3),
    ends=st.booleans(),
    where=st.sampled_from(["mcp", "sse", "messages"]),
    query=st.binary(max_size=20),
    plain=st.booleans(),
    session=st.sampled_from([None, "2025-03-26", "2025-11-25"]),
)
async def test_any_request_gets_a_response(
    method: str,
    named: dict[bytes, bytes],
    complete: bool,
    body: bytes,
    cuts: list[int],
    ends: bool,
    where: str,
    query: bytes,
    plain: bool,
    session: str | None,
) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    pieces = [body[start:end] for start, end in pairwise(edges)]
    given_headers = (usual if complete else {}) | named
    with anyio.fail_after(LONGEST_SECONDS):
        async with endpoint(PlainEndpoint if plain else Endpoint) as here:
            if session is not None:
                given_headers[b"mcp-session-id"] = await open_session(here, session)
                given_headers[b"mcp-protocol-version"] = session.encode()
            scope: Scope = {
                "type": "http",
                "method": method,
                "path": f"/{where}",
                "query_string": query,
                "headers": [*given_headers.items()],
                "client": ("127.0.0.1", 1),
            }
            app = here if where == "mcp" else getattr(here, where)
            await Client(pieces, ends=ends and where == "mcp").ask(app, scope, plain=plain)


async def open_session(here: Endpoint, revision: str) -> bytes:
    params = {"protocolVersion": revision, "clientInfo": {"name": "n", "version": "0"}, "capabilities": {}}
    client = Client([encoded(request("initialize", params))], ends=True)
    head = [(b"host", b"localhost"), (b"accept", b"*/*"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": head}
    await here(scope, client.receive, client.send)
    id: bytes = dict(client.sent[0]["headers"])[b"mcp-session-id"]
    return id


def raw_request(body: bytes, **changes: str) -> bytes:
    head = {"Host": "localhost", "Content-Type": "application/json", "Accept": ACCEPT}
    head |= {"Content-Length": str(len(body)), **modern_headers(json.loads(good)), **changes}
    lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
    return "\r\n".join(lines).encode() + body


whole = raw_request(good)
raw = (
    st.binary(max_size=400)
    | st.integers(0, len(whole)).map(lambda end: whole[:end])
    | st.tuples(st.integers(0, len(whole)), st.binary(max_size=8)).map(
        lambda at: whole[: at[0]] + at[1] + whole[at[0] :]
    )
    | bodies.map(raw_request)
)


@settings(max_examples=8, deadline=None, suppress_health_check=SLOW)
@given(pieces=st.lists(raw, min_size=30, max_size=30))
async def test_any_bytes_on_a_socket_are_survived(pieces: list[bytes]) -> None:
    async with endpoint() as here, served(here) as url:
        port = int(url.rpartition(":")[2])
        async with anyio.create_task_group() as tasks:
            for piece in pieces:
                tasks.start_soon(survive, port, piece)
        received = await exchange(port, raw_request(good, Connection="close"), LONGEST_SECONDS)
    assert received.startswith(b"HTTP/1.1 200 "), "it does not answer any more"


async def survive(port: int, data: bytes) -> None:
    received = await exchange(port, data)
    assert not received or received.startswith((b"HTTP/1.1 ", b"HTTP/1.0 "))
    assert b"Traceback" not in received
    assert b" 500 " not in received[:20]


async def exchange(port: int, data: bytes, seconds: float = 0.4) -> bytes:
    """What comes back within a moment: not every request has an end, and not every answer a close."""
    received = b""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(data)
        with anyio.move_on_after(seconds), contextlib.suppress(anyio.BrokenResourceError):
            async for part in stream:
                received += part
    return received
