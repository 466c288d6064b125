"""The modern era over HTTP, from the end that asks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import anyio
import httpx2
import pytest

from ragmcp.errors import (
    ConnectionClosed,
    MessageTooLarge,
    NotEncodable,
    RagMcpError,
    RequestTimedOut,
    ServerUnreachable,
    UnreadableAnswer,
    WireError,
)
from ragmcp.http.client import MAX_REDIRECTS, shown
from ragmcp.http.connect import open_http
from ragmcp.http.errors import HttpRefused
from ragmcp.http.reach import Reach, is_loopback
from ragmcp.oauth.authorization import OAuth
from ragmcp.oauth.errors import AuthorizationFailed
from ragmcp.oauth.store import Registration
from tests.support.http_script import Heard, Said, Scripted, error, event, result, scripted
from tests.support.http_server import served
from tests.support.oauth_grants import ClientCredentials
from tests.support.ports import free_port
from tests.support.processes import LONGEST_SECONDS


def answering(**fields: Any) -> Callable[[Heard], Said]:
    return lambda heard: Said(body=result(heard, **fields))


def streaming(*pieces: Callable[[Heard], bytes | anyio.Event], **options: Any) -> Callable[[Heard], Said]:
    return lambda heard: Said(pieces=[piece(heard) for piece in pieces], **options)


def answer(heard: Heard) -> bytes:
    return event(result(heard, content=[{"type": "text", "text": "done"}]))


async def test_every_request_says_in_its_headers_what_it_is() -> None:
    async with scripted(answering(contents=[], content=[], messages=[])) as (client, server):
        await client.call_tool("add", {"a": 1}, timeout=5)
        await client.read_resource("note://süß")
        await client.get_prompt("p")
    call, read, prompt = server.heard
    for heard in server.heard:
        assert heard.headers["mcp-protocol-version"] == "2026-07-28"
        assert heard.headers["mcp-method"] == heard.message["method"]
        assert heard.headers["accept"] == "application/json, text/event-stream"
        assert heard.headers["content-type"] == "application/json"
        assert "mcp-session-id" not in heard.headers
    assert [heard.headers["mcp-name"] for heard in (call, prompt)] == ["add", "p"]
    assert read.headers["mcp-name"] == "=?base64?bm90ZTovL3PDvMOf?="


async def test_connections_are_used_again() -> None:
    ports = set()

    async def remember(scope: Any, receive: Any, send: Any) -> None:
        ports.add(scope["client"][1])
        await server(scope, receive, send)

    from tests.support.http_script import Scripted
    from tests.support.http_server import served

    kinds = iter([answering(content=[]), streaming(answer)] * 5)
    server = Scripted(lambda heard: next(kinds)(heard))
    async with (
        served(remember) as url,
        open_http(url, client_name="me", client_version="1", message_bytes=1000, era="modern") as client,
    ):
        for _ in range(10):
            await client.call_tool("t", timeout=5)
    assert len(ports) == 1


async def test_an_answer_may_be_a_stream_with_news_before_it() -> None:
    def progress(heard: Heard) -> bytes:
        token = heard.message["params"]["_meta"]["progressToken"]
        news = {"progressToken": token, "progress": 1}
        return event({"jsonrpc": "2.0", "method": "notifications/progress", "params": news})

    steps: list[float] = []
    said = streaming(lambda _: b": hello\n\n", progress, lambda _: b"id: 1\ndata: \n\n", answer)
    async with scripted(said) as (client, _):
        done = await client.call_tool("t", timeout=5, on_progress=lambda step, *_: steps.append(step))
    assert (done.text, steps) == ("done", [1])


async def test_a_failing_listener_harms_nobody() -> None:
    log = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "x"}}
    async with scripted(streaming(lambda _: event(log), answer)) as (client, _):
        assert (await client.call_tool("t", timeout=5)).text == "done"


async def test_leaving_a_call_closes_its_stream() -> None:
    never = anyio.Event()
    async with scripted(streaming(lambda _: b":\n\n", lambda _: never)) as (client, server):
        with pytest.raises(RequestTimedOut, match=r"tools/call within 0\.2 s"):
            await client.call_tool("t", timeout=0.2)
        await server.left.wait()
        assert server.methods() == ["tools/call"]


async def test_a_stream_without_an_answer_is_a_closed_connection() -> None:
    async with scripted(streaming(lambda _: b"id: 5\ndata: \n\n")) as (client, server):
        with pytest.raises(ConnectionClosed, match="ended without an answer"):
            await client.call_tool("t", timeout=5)
        assert server.methods() == ["tools/call"]
        assert not client.is_closed


async def test_a_stream_that_breaks_is_a_closed_connection() -> None:
    async with scripted(streaming(lambda _: b":\n\n", breaks=True)) as (client, _):
        with pytest.raises(ConnectionClosed, match="before it answered tools/call"):
            await client.call_tool("t", timeout=5)


async def test_an_answer_counts_even_if_its_stream_breaks_after_it() -> None:
    async with scripted(streaming(answer, breaks=True)) as (client, _):
        assert (await client.call_tool("t", timeout=5)).text == "done"


async def test_a_server_that_says_nothing_is_not_waited_for_for_ever() -> None:
    never = anyio.Event()

    async def silent(_: Heard) -> Said:
        await never.wait()
        return Said()

    async with scripted(silent, silence_seconds=0.2) as (client, _):
        with pytest.raises(RequestTimedOut, match=r"within 0\.2 s"):
            await client.call_tool("t", timeout=None)
        never.set()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (Said(body=b"hello"), UnreadableAnswer),
        (Said(body=b""), UnreadableAnswer),
        (Said(body=b"[]"), UnreadableAnswer),
        (Said(body={"jsonrpc": "2.0", "method": "x"}), UnreadableAnswer),
        (Said(body={"jsonrpc": "2.0", "id": 1, "result": {"content": 5}}), UnreadableAnswer),
        (Said(pieces=[b"data: nonsense\n\n"]), UnreadableAnswer),
        (Said(body=b"\x1f\x8b", headers={"content-encoding": "gzip"}), UnreadableAnswer),
        (Said(500, b"<html>oops</html>"), HttpRefused),
        (Said(503, b"busy"), HttpRefused),
        (Said(204), UnreadableAnswer),
        (Said(304), HttpRefused),
        (Said(307, headers={"location": "/mcp"}), HttpRefused),
        (Said(body=b"x" * 2000), MessageTooLarge),
        (Said(pieces=[b"data: " + b"x" * 2000]), ConnectionClosed),
        (Said(pieces=[b"data: " + b"x" * 2000 + b"\n\n"]), MessageTooLarge),
    ],
)
async def test_what_is_no_answer_is_an_error_and_the_next_call_goes_well(
    said: Said, expected: type[RagMcpError]
) -> None:
    first = [said] * (1 + MAX_REDIRECTS * ("location" in said.headers))
    script = lambda heard: first.pop() if first else Said(body=result(heard, content=[]))  # noqa: E731
    async with scripted(script, message_bytes=1000) as (client, _):
        with pytest.raises(expected):
            await client.call_tool("t", timeout=5)
        await client.call_tool("t", timeout=5)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            Said(body=b"<h1>Log in</h1>", headers={"content-type": "text/html"}),
            r"http://127\.0\.0\.1:\d+/mcp sent text/html: ",
        ),
        (Said(pieces=[b": "], breaks=True), r"\(http://127\.0\.0\.1:\d+/mcp\)"),
        (Said(pieces=[b": "]), r"its stream ended without an answer \(http://127\.0\.0\.1:\d+/mcp\)"),
    ],
    ids=["page", "cut", "ended"],
)
async def test_an_answer_that_is_none_is_reported_with_the_address_of_the_server(
    said: Said, sentence: str
) -> None:
    async with scripted(lambda _: said) as (client, _):
        with pytest.raises(RagMcpError, match=sentence):
            await client.call_tool("t", timeout=5)


async def test_an_error_keeps_its_code_its_data_and_its_status() -> None:
    async with scripted(lambda heard: Said(400, error(heard, -32602, "bad", {"errorCode": "BAD"}))) as (c, _):
        with pytest.raises(WireError) as raised:
            await c.call_tool("t", timeout=5)
    assert (raised.value.code, raised.value.error_code, raised.value.http_status) == (-32602, "BAD", 400)


@pytest.mark.parametrize(
    ("status", "body", "sentence", "hint"),
    [
        (
            401,
            {"jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": "no token"}},
            "no token",
            "token",
        ),
        (403, b"", "Forbidden", "token"),
        (404, b"<h1>Nothing</h1>", "Not Found", "/mcp"),
        (429, b"slow down", "slow down", "Wait"),
    ],
)
async def test_a_status_says_what_to_do(status: int, body: Any, sentence: str, hint: str) -> None:
    async with scripted(lambda _: Said(status, body)) as (client, _):
        with pytest.raises(HttpRefused, match=sentence) as raised:
            await client.call_tool("t", timeout=5)
    assert hint in raised.value.hint


async def test_a_server_that_is_not_there_is_named_with_what_to_do() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp?key=secret"
    with pytest.raises(ServerUnreachable) as raised:
        async with open_http(url, client_name="me", client_version="1", message_bytes=1000):
            pass
    assert str(raised.value) == (
        f"The server at http://127.0.0.1:{port}/mcp cannot be reached: nothing listens there."
    )
    assert "running" in raised.value.hint


async def test_a_server_that_is_there_again_is_no_closed_connection() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    async with open_http(
        url, client_name="me", client_version="1", message_bytes=1000, era="modern"
    ) as client:
        with pytest.raises(ServerUnreachable):
            await client.call_tool("t", timeout=5)
        assert client.is_closed
        async with served(Scripted(answering(content=[])), port):
            await client.call_tool("t", timeout=5)
            assert not client.is_closed


async def test_a_connection_that_cannot_be_made_again_says_why() -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"

    async def lost() -> None:
        async with open_http(
            url, client_name="me", client_version="1", message_bytes=1000, era="modern"
        ) as client:
            with pytest.raises(ServerUnreachable):
                await client.call_tool("t", timeout=5)
            await client.closed()
            raise ConnectionClosed

    with pytest.raises(ConnectionClosed, match="was closed: nothing listens there"):
        await lost()


@pytest.mark.parametrize(
    "url",
    [
        "example.org/mcp",
        "ftp://example.org",
        "ws://127.0.0.1/",
        "http://me:s3cret@h:x/?key=s3cret",
        "/mcp",
        "",
    ],
)
async def test_what_is_no_address_is_called_so(url: str) -> None:
    with pytest.raises(ServerUnreachable) as raised:
        async with open_http(url, client_name="me", client_version="1", message_bytes=1000):
            pass
    assert "http://" in raised.value.hint
    assert "s3cret" not in str(raised.value)


async def test_a_redirect_within_the_server_is_followed_and_remembered() -> None:
    def script(heard: Heard) -> Said:
        if heard.path == "/mcp":
            return Said(307, headers={"location": "/mcp/"})
        return Said(body=result(heard, content=[]))

    async with scripted(script) as (client, server):
        await client.call_tool("t", timeout=5)
        await client.call_tool("t", timeout=5)
    assert [heard.path for heard in server.heard] == ["/mcp", "/mcp/", "/mcp/"]


async def test_a_redirect_to_another_server_is_refused_and_the_token_stays_here() -> None:
    async with scripted(lambda heard: Said(body=result(heard, content=[]))) as (_, other):
        target = "http://localhost:1/mcp"
        async with scripted(lambda _: Said(307, headers={"location": target}), token="secret") as (
            client,
            server,
        ):
            with pytest.raises(HttpRefused, match="it redirects to http://localhost:1/mcp"):
                await client.call_tool("t", timeout=5)
        assert other.heard == []
        assert server.heard[0].headers["authorization"] == "Bearer secret"


async def test_a_token_is_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key = "/mcp?key=s3cr3t-t0k3n"
    async with scripted(answering(content=[]), token="s3cr3t-t0k3n", path=key) as (client, _):
        await client.call_tool("t", timeout=5)
    lines = [record.getMessage() for record in caplog.records]
    assert not any("s3cr3t-t0k3n" in line for line in lines)
    assert "s3cr3t-t0k3n" not in str(shown(httpx2.URL("http://me:s3cr3t-t0k3n@h/p?k=s3cr3t-t0k3n")))


class Unrenewable(OAuth):
    """An authorization whose server has nothing more to give."""

    def __init__(self) -> None:
        super().__init__("", ClientCredentials(Registration("us", "secret")))

    async def headers(self, verb: str, url: str, reach: Reach) -> dict[str, str]:  # noqa: ARG002
        return {}

    async def renew(self, response: httpx2.Response, reach: Reach) -> bool:  # noqa: ARG002
        raise AuthorizationFailed(str(response.url), "the user has declined")


async def test_a_response_is_closed_when_its_refusal_cannot_be_lifted() -> None:
    server = Scripted(lambda _: Said(401, pieces=[b"no", anyio.Event()]))
    with anyio.fail_after(LONGEST_SECONDS):
        async with (
            served(server) as address,
            open_http(
                f"{address}/mcp",
                client_name="me",
                client_version="1",
                message_bytes=1000,
                era="modern",
                authorization=Unrenewable(),
            ) as client,
        ):
            with pytest.raises(AuthorizationFailed, match="the user has declined"):
                await client.call_tool("t", timeout=5)
            await server.left.wait()


async def test_what_has_no_json_form_is_refused_before_it_is_sent() -> None:
    async with scripted(answering(content=[])) as (client, server):
        with pytest.raises(NotEncodable):
            await client.call_tool("t", {"text": "\ud800"}, timeout=5)
        assert server.heard == []


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("a.localhost", True),
        ("10.0.0.1", False),
        ("x", False),
    ],
)
def test_no_proxy_leads_to_this_machine(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


# Tools and their headers

REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
BAD = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Re gion"}}}


def tools(**schemas: Any) -> list[Any]:
    return [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]


async def test_a_tool_that_asks_for_headers_in_a_wrong_way_is_left_out_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    offered = tools(
        good=REGION, bad=BAD, plain={"type": "object", "$ref": "http://localhost:1/x", "x-own": [1]}
    )
    async with scripted(answering(tools=offered, content=[])) as (client, server):
        listed = await client.list_tools()
        assert [tool.name for tool in listed] == ["good", "plain"]
        assert listed[1].input_schema == offered[2]["inputSchema"]
        await client.call_tool("good", {"region": "süd"}, timeout=5)
    assert server.heard[1].headers["mcp-param-region"] == "=?base64?c8O8ZA==?="
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "The tool bad is left out: 'Re gion' is not a valid header name"
    ]


async def test_a_call_with_outdated_headers_is_made_again_with_those_the_server_wants() -> None:
    def script(heard: Heard) -> Said:
        if heard.method == "tools/list":
            return Said(body=result(heard, tools=tools(t=REGION), ttlMs=60_000, cacheScope="public"))
        if "mcp-param-region" in heard.headers:
            return Said(body=result(heard, content=[]))
        return Said(400, error(heard, -32020, "Header mismatch"))

    async with scripted(script) as (client, server):
        await client.call_tool("t", {"region": "north"}, timeout=5)
        with pytest.raises(WireError, match="Header mismatch"):
            await client.call_tool("t", {}, timeout=5)
    assert server.methods() == ["tools/call", "tools/list", "tools/call"] * 2


async def test_what_is_only_said_is_accepted_or_refused() -> None:
    said = [Said(202), Said(400, b"no")]
    async with scripted(lambda _: said.pop(0)) as (client, server):
        await client.channel.notify("notifications/own", {})
        with pytest.raises(HttpRefused):
            await client.channel.notify("notifications/own", {})
    assert server.heard[0].headers["mcp-method"] == "notifications/own"
