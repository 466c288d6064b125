"""Modern requests over HTTP, over real sockets.

Covers `dispatch`, `exchange`, `limits` and `server`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Annotated, Any

import anyio
import httpx2
import pytest
from hypothesis import settings
from msgspec import Meta

from ragmcp.http.access import LOCAL
from ragmcp.http.asgi import Endpoint
from ragmcp.http.dispatch import RequestRecord
from ragmcp.protocol.schema.subscriptions import list_changed
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.server.tools import tool
from tests.shared.raw_asgi import asgi_scope, body_then_silence
from tests.support.http_server import (
    ACCEPT,
    ObservedApp,
    http_client,
    limits,
    modern_headers,
    modern_request,
    raise_descriptor_limit,
    request,
    served,
)
from tests.support.mcp_server import make_server


async def test_a_tool_call_is_answered_as_json_in_one_piece() -> None:
    async with http_client() as client:
        response = await client.modern("tools/call", {"name": "Echo", "arguments": {"text": "hello"}})
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert "mcp-session-id" not in response.headers
    assert response.json()["result"]["content"] == [{"type": "text", "text": "hello"}]


async def nothing(_: object) -> None:
    """Sends nothing."""


async def test_an_endpoint_that_was_not_entered_says_what_is_missing() -> None:
    endpoint = Endpoint(Server("s"))
    with pytest.raises(RuntimeError, match="only within `async with endpoint:`"):
        await endpoint(asgi_scope("POST", {}), body_then_silence(), nothing)


@pytest.mark.parametrize(
    ("method", "params", "headers", "status", "code", "word"),
    [
        ("tools/list", {}, {"mcp-method": "prompts/list"}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/list", {}, {"mcp-method": "TOOLS/LIST"}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/list", {}, {"mcp-method": None}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/call", {"name": "Echo"}, {"mcp-name": "Add"}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/call", {"name": "Echo"}, {"mcp-name": None}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/call", {"name": "Echo"}, {"mcp-name": "=?base64?!?="}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/list", {}, {"mcp-protocol-version": "1.0"}, 400, -32020, "HEADER_MISMATCH"),
        ("tools/call", {"name": "Nope"}, {}, 400, -32602, "TOOL_NOT_FOUND"),
        ("tools/call", {"name": "Echo", "arguments": [""]}, {}, 400, -32602, "INVALID_PARAMS"),
        ("tools/call", {"name": "NeedsElicitation"}, {}, 400, -32021, "MISSING_CLIENT_CAPABILITY"),
        ("tools/call", {"name": "Surrogate"}, {}, 200, -32603, "INTERNAL_ERROR"),
        ("nope", {}, {}, 404, -32601, "METHOD_NOT_FOUND"),
        ("initialize", {}, {}, 404, -32601, "METHOD_NOT_FOUND"),
        ("ping", {}, {}, 404, -32601, "METHOD_NOT_FOUND"),
        ("resources/list", {}, {}, 404, -32601, "METHOD_NOT_FOUND"),
    ],
)
async def test_a_refused_call_has_its_status_and_a_json_rpc_error(
    method: str, params: Any, headers: Any, status: int, code: int, word: str
) -> None:
    async with http_client() as client:
        response = await client.modern(method, params, id="x", headers=headers)
    assert response.status_code == status
    answer = response.json()
    assert answer["id"] == "x"
    assert answer["error"]["code"] == code
    assert answer["error"]["data"]["errorCode"] == word
    assert answer["error"]["data"]["requestId"] == "x"


async def test_progress_makes_the_answer_a_stream() -> None:
    @tool()
    async def step(call: Call) -> str:
        """Says how far it is."""
        await call.progress(1, 2, "half")
        return "done"

    message = modern_request("tools/call", {"name": "step", "_meta": {"progressToken": "t"}})
    async with (
        http_client(Server("s", "1", [step])) as client,
        client.stream(message, modern_headers(message)) as events,
    ):
        assert events.response.headers["content-type"] == "text/event-stream"
        assert events.response.headers["x-accel-buffering"] == "no"
        assert events.response.headers["cache-control"] == "no-store"
        first = await events.next()
        assert first
        assert "id" not in first  # "Resumable SSE streams via Last-Event-ID are not supported."
        assert '"progress":1' in first["data"]
        assert (await events.message())["result"]["content"][0]["text"] == "done"
        assert await events.next() is None


async def test_an_error_after_the_stream_began_is_its_last_event() -> None:
    @tool()
    async def step(call: Call) -> str:
        """Fails late."""
        await call.progress(1)
        call.require("sampling")
        return ""

    message = modern_request("tools/call", {"name": "step", "_meta": {"progressToken": "t"}})
    async with (
        http_client(Server("s", "1", [step])) as client,
        client.stream(message, modern_headers(message)) as events,
    ):
        await events.message()
        assert (await events.message())["error"]["code"] == -32021
        assert await events.next() is None


class Hanging:
    """A tool that says when it began and when it was cancelled."""

    def __init__(self) -> None:
        self.began, self.cancelled = anyio.Event(), anyio.Event()

        @tool()
        async def hang(call: Call, speak: bool = False) -> str:
            """Never ends."""
            if speak:
                await call.progress(1)
            self.began.set()
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled.set()
            return ""

        self.server = Server("s", "1", [hang])


@pytest.mark.parametrize("speak", [True, False])
async def test_a_client_that_hangs_up_cancels_its_call(speak: bool) -> None:
    hanging, answered = Hanging(), list[RequestRecord]()
    arguments = {"name": "hang", "arguments": {"speak": speak}, "_meta": {"progressToken": "t"}}
    message = modern_request("tools/call", arguments)
    async with http_client(hanging.server, on_answered=answered.append) as client:
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                async with client.stream(message, modern_headers(message)) as events:
                    await events.next()
                    await events.next()

            tasks.start_soon(ask)
            with anyio.fail_after(60):
                await hanging.began.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            await hanging.cancelled.wait()
        await client.until(lambda: client.endpoint.stream_count == 0)
    assert [(item.tool, item.error_code) for item in answered] == [("hang", "CANCELLED")]


async def test_some_seconds_of_silence_make_a_stream_of_comments() -> None:
    hanging = Hanging()
    message = modern_request("tools/call", {"name": "hang"})
    async with (
        http_client(hanging.server, limits=limits(keep_alive_seconds=0.02)) as client,
        client.stream(message, modern_headers(message)) as events,
    ):
        assert await events.next() == {"": ""}
        assert await events.next() == {"": ""}


async def test_news_are_streamed_to_a_listener_until_the_server_leaves() -> None:
    server = make_server()
    message = modern_request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id=7)
    async with http_client(server) as client:
        async with client.stream(message, modern_headers(message)) as events:
            assert (await events.message())["method"] == "notifications/subscriptions/acknowledged"
            assert client.endpoint.stream_count == 1
            server.announce(list_changed("tools"))
            assert (await events.message())["method"] == "notifications/tools/list_changed"
            client.endpoint.leave()
            assert (await events.message())["id"] == 7
            assert await events.next() is None
        refused = await client.modern("tools/list")
    assert refused.status_code == 503
    assert refused.json()["error"]["data"]["errorCode"] == "SERVER_LEAVING"


@pytest.mark.parametrize("header", [{"host": "evil.example"}, {"origin": "http://evil.example"}])
async def test_a_web_page_of_another_machine_is_refused_unless_somebody_lets_it_in(
    header: Mapping[str, str],
) -> None:
    message = modern_request("tools/list")
    usual = {"content-type": "application/json", "accept": ACCEPT, **modern_headers(message), **header}
    for guard, status in ((LOCAL, 403), (None, 200)):
        async with (
            Endpoint(make_server(), limits(), guard=guard) as endpoint,
            served(endpoint) as url,
            httpx2.AsyncClient(trust_env=False) as http,
        ):
            assert (await http.post(url, json=message, headers=usual)).status_code == status


async def test_a_call_still_running_is_cancelled_when_the_server_has_left() -> None:
    hanging = Hanging()
    async with anyio.create_task_group() as tasks:
        async with http_client(hanging.server, limits=limits(leave_seconds=0.01)) as client:

            async def ask() -> None:
                with pytest.raises(httpx2.HTTPError):
                    await client.modern("tools/call", {"name": "hang"})

            tasks.start_soon(ask)
            await hanging.began.wait()
        await hanging.cancelled.wait()


@pytest.mark.parametrize("streams", [False, True])
async def test_a_call_for_which_no_time_was_left_is_told_so(
    streams: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Uvicorn says on stderr what it thinks of responses that do not end."""
    hanging, answered = Hanging(), anyio.Event()
    keep_alive = 0.01 if streams else 10
    endpoint = Endpoint(hanging.server, limits(leave_seconds=0.1, keep_alive_seconds=keep_alive))
    app = ObservedApp(endpoint)
    message = modern_request("tools/call", {"name": "hang", "arguments": {}})
    async with (
        served(app) as url,
        httpx2.AsyncClient(trust_env=False) as http,
        anyio.create_task_group() as tasks,
    ):

        async def ask() -> None:
            usual = {"content-type": "application/json", "accept": ACCEPT}
            response = await http.post(url, json=message, headers=usual | modern_headers(message))
            if streams:
                assert (response.status_code, response.text.strip(":\n")) == (200, "")
            else:
                assert response.status_code == 503
                assert response.json()["id"] == message["id"]
                assert response.json()["error"]["data"]["errorCode"] == "SERVER_LEAVING"
            answered.set()

        async with endpoint:
            tasks.start_soon(ask)
            await hanging.began.wait()
            await app.until(lambda: endpoint.stream_count == int(streams))
        await answered.wait()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("headers", "status", "word"),
    [
        ({"accept": "application/json"}, 406, "NOT_ACCEPTABLE"),
        ({"accept": "text/event-stream"}, 406, "NOT_ACCEPTABLE"),
        ({"accept": "application/json, text/event-stream;q=0"}, 406, "NOT_ACCEPTABLE"),
        ({"accept": "text/html"}, 406, "NOT_ACCEPTABLE"),
        ({"accept": "*/*"}, 200, ""),
        ({"accept": "application/*, text/event-stream; q=0.5"}, 200, ""),
        ({"content-type": "text/plain"}, 415, "UNSUPPORTED_MEDIA_TYPE"),
        ({"content-type": "application/jsonp"}, 415, "UNSUPPORTED_MEDIA_TYPE"),
        ({"content-type": "Application/JSON; charset=utf-8"}, 200, ""),
        ({"content-encoding": "gzip"}, 415, "UNSUPPORTED_MEDIA_TYPE"),
        ({"x-large": "x" * 20_000}, 431, "HEADERS_TOO_LARGE"),
        ({f"x-{number}": "" for number in range(101)}, 431, "HEADERS_TOO_LARGE"),
        ({"mcp-session-id": "nonsense"}, 200, ""),
        ({"last-event-id": "nonsense"}, 200, ""),
    ],
)
async def test_what_a_client_says_of_itself_is_looked_at(headers: Any, status: int, word: str) -> None:
    async with http_client() as client:
        response = await client.modern("tools/list", headers=headers)
    assert response.status_code == status
    assert response.json().get("error", {}).get("data", {}).get("errorCode", "") == word
    assert "mcp-session-id" not in response.headers


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (b"", 400, "PARSE_ERROR"),
        (b"{", 400, "PARSE_ERROR"),
        (b"\xff\xfe", 400, "PARSE_ERROR"),
        (b"[" * 100_000, 400, "PARSE_ERROR"),
        (b'{"a":' * 100_000, 400, "PARSE_ERROR"),
        (b"[]", 400, "INVALID_REQUEST"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', 400, "INVALID_REQUEST"),
        (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', 400, "INVALID_REQUEST"),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', 400, "INVALID_REQUEST"),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', 400, "INVALID_REQUEST"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', 400, "INVALID_PARAMS"),
        (b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}', 400, "INVALID_PARAMS"),
        (b" " * (2**20 + 1), 413, "BODY_TOO_LARGE"),
    ],
)
async def test_a_body_that_is_no_modern_request_is_refused(body: bytes, status: int, word: str) -> None:
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}
    if b"tools/list" in body:
        headers["mcp-method"] = "tools/list"
    async with http_client() as client:
        response = await client.post(body, headers)
    assert response.status_code == status
    assert response.json()["error"]["data"]["errorCode"] == word


async def test_a_chunked_body_is_counted_as_it_comes() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * 500_000

    async with http_client() as client:
        headers = {"content-type": "application/json"}
        response = await client.http.post(client.url, content=pieces(), headers=headers)
    assert response.status_code == 413
    assert response.headers["connection"] == "close"


async def test_a_body_that_trickles_times_out() -> None:
    async with http_client(limits=limits(body_seconds=0.05)) as client:
        port = int(client.url.rpartition(":")[2])
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(
                b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
            received = b""
            with anyio.fail_after(60):
                async for data in stream:
                    received += data
    assert received.startswith(b"HTTP/1.1 408 ")
    assert b"BODY_TOO_SLOW" in received


async def test_a_body_that_still_arrives_when_the_server_leaves_is_not_called_too_slow() -> None:
    waits = anyio.Event()
    sent: list[Any] = []

    async def receive() -> Any:
        waits.set()
        await anyio.sleep_forever()

    async def send(message: Any) -> None:
        sent.append(message)

    async with anyio.create_task_group() as tasks, Endpoint(make_server(), limits(leave_seconds=0)) as here:
        tasks.start_soon(here, asgi_scope("POST", {}), receive, send)
        await waits.wait()
    assert sent[0]["status"] == 503
    assert b"SERVER_LEAVING" in sent[1]["body"]


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_a_client_that_does_not_read_holds_nobody_up(revision: str) -> None:
    stopped = anyio.Event()

    @tool()
    async def talk(call: Call) -> str:
        """Says much."""
        try:
            for step in range(100):
                await call.progress(step, message="x" * 2**20)
        finally:
            stopped.set()
        return "done"

    params = {"name": "talk", "_meta": {"progressToken": "t"}}
    message = modern_request("tools/call", params) if revision > "2026" else request("tools/call", params)
    body = json.dumps(message).encode()
    async with http_client(Server("s", "1", [talk]), limits=limits(body_seconds=0.1)) as client:
        own = modern_headers(message) if revision > "2026" else await client.session(revision)
        head = {"host": "localhost", "content-type": "application/json", "accept": ACCEPT} | own
        lines = [f"{name}: {value}" for name, value in head.items()]
        post = "\r\n".join(["POST / HTTP/1.1", *lines, f"content-length: {len(body)}", "", ""]).encode()
        async with await anyio.connect_tcp("127.0.0.1", int(client.url.rpartition(":")[2])) as stream:
            await stream.send(post + body)
            with anyio.fail_after(60):
                await stopped.wait()


async def test_a_notification_is_accepted_without_a_body() -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/whatever"}
    async with http_client() as client:
        response = await client.post(message, {"mcp-protocol-version": "2026-07-28"})
        assert response.status_code == 202
        assert response.content == b""
        assert (await client.post(message, {"mcp-protocol-version": "x"})).status_code == 400


async def test_an_unknown_revision_is_told_which_ones_there_are() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "v999"}
    async with http_client() as client:
        response = await client.modern(
            "server/discover", {"_meta": meta}, headers={"mcp-protocol-version": "v999", "mcp-method": None}
        )
        mixed = await client.modern("server/discover", {"_meta": meta})
    assert response.status_code == mixed.status_code == 400
    error = response.json()["error"]
    assert error["code"] == -32022
    assert error["data"]["requested"] == "v999"
    assert error["data"]["supported"] == ["2026-07-28"]
    assert mixed.json()["error"]["code"] == -32020


async def test_a_header_that_is_there_twice_is_refused() -> None:
    message = modern_request("tools/list")
    headers = [*modern_headers(message).items(), ("mcp-method", "tools/call")]
    usual = [("content-type", "application/json"), ("accept", "*/*")]
    async with http_client() as client:
        response = await client.http.post(client.url, json=message, headers=[*usual, *headers])
    assert response.json()["error"]["code"] == -32020


@pytest.mark.parametrize(
    ("arguments", "headers", "status"),
    [
        ({"region": "us-west1"}, {"mcp-param-region": "us-west1"}, 200),
        ({"region": "us-west1"}, {"Mcp-Param-REGION": "us-west1"}, 200),
        ({"region": "Zürich"}, {"mcp-param-region": "=?base64?WsO8cmljaA==?="}, 200),
        ({"region": "us-west1"}, {"mcp-param-region": "us-east1"}, 400),
        ({"region": "us-west1"}, {}, 400),
        ({"region": "Hello"}, {"mcp-param-region": "=?base64?SGVsbG8?="}, 400),
        ({"region": "x", "count": 42}, {"mcp-param-region": "x", "mcp-param-count": "42.0"}, 200),
        ({"region": "x", "count": 42}, {"mcp-param-region": "x", "mcp-param-count": "43"}, 400),
        ({"region": "x", "count": 42}, {"mcp-param-region": "x", "mcp-param-count": "9" * 5000}, 400),
        ({"region": "x"}, {"mcp-param-region": "x", "mcp-param-count": "42"}, 400),
        ({"region": "x"}, {"mcp-param-region": "x", "mcp-param-other": "y"}, 200),
    ],
)
async def test_arguments_that_headers_repeat_are_compared(arguments: Any, headers: Any, status: int) -> None:
    @tool(read_only=True)
    async def query(
        _: Call,
        region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})],
        count: Annotated[int, Meta(extra_json_schema={"x-mcp-header": "Count"})] = 0,
    ) -> str:
        """Answers."""
        return f"{region} {count}"

    async with http_client(Server("s", "1", [query])) as client:
        response = await client.modern(
            "tools/call", {"name": "query", "arguments": arguments}, headers=headers
        )
    assert response.status_code == status
    if status == 400:
        assert response.json()["error"]["code"] == -32020


async def test_requests_are_logged_with_their_trace_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ragmcp")
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    other = "00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203331-01"
    answered: list[RequestRecord] = []
    async with http_client(on_answered=answered.append) as client:
        echo = {"name": "Echo", "arguments": {"text": "private"}}
        await client.modern(
            "tools/call", echo | {"_meta": {"traceparent": trace}}, headers={"traceparent": other}
        )
        await client.modern("tools/call", {"name": "Fail"}, headers={"traceparent": other})
        await client.modern(
            "tools/call", {"name": "Nope\nfaked"}, headers={"traceparent": "x", "mcp-name": None}
        )
        await client.modern("no\nsuch", headers={"mcp-method": None})
        await client.post(b"{")
    assert [(item.method, item.tool, item.error_code) for item in answered] == [
        ("tools/call", "Echo", ""),
        ("tools/call", "Fail", "OUT_OF_LUCK"),
        ("tools/call", "", "HEADER_MISMATCH"),
        ("", "", "HEADER_MISMATCH"),
        ("", "", "PARSE_ERROR"),
    ]
    assert all(0 <= item.seconds < 5 for item in answered)
    lines = [record.getMessage() for record in caplog.records]
    assert trace in lines[0]
    assert "tools/call Echo: OK in" in lines[0]
    assert other in lines[1]
    assert "private" not in caplog.text
    assert "faked" not in caplog.text


async def test_the_plain_form_is_an_invalid_request_where_it_is_not() -> None:
    async with http_client() as client:
        response = await client.post({"method": "Add", "params": {"a": 1}})
    assert response.status_code == 400
    assert response.json()["error"]["data"]["errorCode"] == "INVALID_REQUEST"


async def test_hundreds_of_idle_streams_do_not_stop_the_next_call() -> None:
    raise_descriptor_limit(4_096)
    message = modern_request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    body = json.dumps(message).encode()
    head = {"host": "localhost", "content-type": "application/json", "accept": ACCEPT} | modern_headers(
        message
    )
    lines = [f"{name}: {value}" for name, value in head.items()]
    post = "\r\n".join(["POST / HTTP/1.1", *lines, f"content-length: {len(body)}", "", ""]).encode() + body
    many = 10 * settings().max_examples  # 1,000 in the profile `full`
    async with http_client() as client, AsyncExitStack() as streams:
        port = int(client.url.rpartition(":")[2])
        for _ in range(many):
            stream = await streams.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
            await stream.send(post)
        with anyio.fail_after(60):
            await client.until(lambda: client.endpoint.stream_count == many)
            response = await client.modern("tools/call", {"name": "Echo", "arguments": {"text": "one more"}})
            assert response.json()["result"]["content"][0]["text"] == "one more"
            await streams.aclose()
            await client.until(lambda: client.endpoint.stream_count == 0)


async def test_a_stream_too_many_is_refused_and_calls_that_need_none_are_not() -> None:
    async with http_client(limits=limits(streams=0)) as client:
        refused = await client.modern("subscriptions/listen", {"notifications": {}})
        answered = await client.modern("tools/list")
    assert refused.status_code == 503
    assert refused.json()["error"]["data"]["errorCode"] == "TOO_MANY_OPEN"
    assert answered.status_code == 200


@pytest.mark.parametrize("modern", [True, False])
async def test_a_call_goes_without_its_progress_where_there_is_no_room_for_a_stream(modern: bool) -> None:
    @tool()
    async def step(call: Call) -> str:
        """Says how far it is."""
        await call.progress(1)
        return "done"

    params = {"name": "step", "_meta": {"progressToken": "t"}}
    async with http_client(Server("s", "1", [step]), limits=limits(streams=0)) as client:
        if modern:
            answered = await client.modern("tools/call", params)
        else:
            answered = await client.post(request("tools/call", params), await client.session())
    assert answered.json()["result"]["content"][0]["text"] == "done"


async def test_an_endpoint_that_is_cancelled_while_it_leaves_is_left_all_the_same() -> None:
    started = anyio.Event()

    @tool()
    async def block(_: Call) -> str:
        """Never ends."""
        started.set()
        await anyio.sleep_forever()
        return ""

    async def send(_: Any) -> None:
        pass

    message = modern_request("tools/call", {"name": "block", "arguments": {}})
    scope = asgi_scope("POST", modern_headers(message))
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as life:
                async with Endpoint(Server("s", "1", [block]), limits(leave_seconds=60)) as endpoint:
                    tasks.start_soon(endpoint, scope, body_then_silence(message), send)
                    await started.wait()
                    life.cancel()
            assert life.cancelled_caught
