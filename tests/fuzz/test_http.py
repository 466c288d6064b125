"""Hostile bytes and requests for `ragmemory http`: it keeps running, answers, and reports no fault."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from tests.fuzz.wire import (
    FEW,
    META,
    PARAMS,
    bodies,
    check_answer,
    edge_messages,
    encoded,
    messages,
    one_of,
    pieces,
)
from tests.support.http_memory import HttpMemory, http_memory

# The next request is answered within a second; on a busy machine a few more pass.
ANSWER_SECONDS = 5.0
JSON_HEADS = {
    "host": "localhost",
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}
SETTINGS = {
    # What never comes is not waited for, and floods are not refused before they do any harm.
    "RAGCHAT_HTTP_HEAD_SECONDS": "0.3",
    "RAGCHAT_HTTP_BODY_SECONDS": "0.2",
    "RAGCHAT_HTTP_REQUESTS_PER_SECOND": "0",
    "RAGCHAT_HTTP_SESSIONS": "20",
    "RAGCHAT_HTTP_PLAIN_FORM": "true",
}
PATHS = ["/mcp", "/mcp", "/mcp", "/sse", "/messages", "/messages?session_id=x", "/", "/health", "/metrics"]
ODD_TARGETS = [
    *(
        "*",
        "//",
        "/%00",
        "/..%2f",
        "/mcp?" + "a=1&" * 500,
        "/" + "x" * 3_000,
        "http://localhost/mcp",
        "/mcp#x",
    ),
    *("http://[::1", "http://evil@localhost/mcp", "/.well-known/mcp", "localhost:80", "/\u00ff", "mcp"),
]
values = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=30)
ODD_HEADS = {
    "host": one_of(["localhost:1", "[::1]", "localhost:x", "evil.com", "", "[", "a" * 5_000]),
    "origin": one_of(["null", "http://localhost", "http://evil@localhost", ""]),
    "accept": one_of(["*/*", "text/event-stream", "application/json", "text/html", "", ";;q=,", "a" * 5_000]),
    "content-type": one_of(["application/json; charset=utf-8", "text/plain", "", "application/json;" * 99]),
    "content-encoding": one_of(["gzip", "identity", ""]),
    "mcp-protocol-version": one_of(["2026-07-28", "2025-11-25", "2025-03-26", "1", "", "\xff"]),
    "mcp-method": one_of(["tools/call", "tools/list", "", "=?base64?!!!?="]),
    "mcp-name": one_of(["Query", "Inject", "", "=?base64?/w==?=", "=?base64?4pyT?="]),
    "mcp-session-id": one_of(["x", "", "a" * 500]),
    "last-event-id": one_of(["1-1", "0", "-", "9" * 50 + "-" + "9" * 50]),
    "traceparent": one_of(["00-" + "0" * 32 + "-" + "0" * 16 + "-00", "x"]),
    "authorization": one_of(["Bearer x", "Basic \xff", "Bearer"]),
    "expect": one_of(["100-continue", "nothing"]),
    "upgrade": one_of(["websocket", "h2c"]),
    "connection": one_of(["upgrade", "keep-alive", "close, keep-alive"]),
    "cookie": one_of(["a" * 10_000]),
    "access-control-request-method": one_of(["POST"]),
}
heads = st.fixed_dictionaries({}, optional={name: odd | values for name, odd in ODD_HEADS.items()})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpMemory]:
    folder: Path = tmp_path_factory.mktemp("memory")
    with http_memory(folder, "--toolsets", "memory,documents,history,maintenance", **SETTINGS) as server:
        yield server
        check(server)
    assert server.process.returncode == 0


def connected(server: HttpMemory) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.told["port"]), ANSWER_SECONDS)
    # Else a body waits 40 ms for the receipt of its head.
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def written(
    method: str, target: str, heads: dict[str, str], body: list[bytes], *, chunked: bool
) -> list[bytes]:
    """A request, in pieces; its length is right unless `heads` name another one."""
    length = {"transfer-encoding": "chunked"} if chunked else {"content-length": str(sum(map(len, body)))}
    lines = [f"{name}: {value}" for name, value in ({**length, **heads}).items()]
    start = "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode("latin-1", "replace")
    if not chunked:
        return [start, *body]
    return [start, *(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in body if piece), b"0\r\n\r\n"]


def post(message: Any, heads: dict[str, str]) -> bytes:
    """A whole request in one piece: what comes 0.2 s after its head, as on a busy machine, is not read."""
    return b"".join(written("POST", "/mcp", heads, [encoded(message)], chunked=False))


class Answer(Struct):
    """A response; of an event stream, which may have no end, only its head."""

    status: int
    heads: dict[str, str]
    body: bytes = b""

    @property
    def is_last(self) -> bool:
        """Whether no other response can be read after it."""
        ends = self.heads.get("connection") == "close" or "content-length" not in self.heads
        return ends and self.status != 204


def read_answer(file: BinaryIO, method: str) -> Answer | None:
    """The next response; None where the connection is closed: that is what bytes get that are no HTTP."""
    try:
        words = file.readline().split()
        if not words:
            return None
        lines = iter(lambda: file.readline().decode("latin-1").strip(), "")
        heads = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        answer = Answer(int(words[1]), heads)
        if method != "HEAD" and not heads.get("content-type", "").startswith("text/event-stream"):
            length = heads.get("content-length", "0" if answer.status in (100, 204) else "-1")
            answer.body = file.read(int(length))
    except ConnectionError:
        return None
    assert answer.status != 500
    check_answer(answer.body)
    return answer


def modern(message: Any) -> dict[str, str]:
    """The headers that belong to a modern message, as far as it is one."""
    params = message.get("params")
    method, name = message.get("method"), params.get("name") if isinstance(params, dict) else None
    named = {"mcp-method": method, "mcp-name": name, "mcp-protocol-version": "2026-07-28"}
    texts = {key: value for key, value in named.items() if isinstance(value, str)}
    return JSON_HEADS | {key: text for key, text in texts.items() if text.isascii() and text.isprintable()}


def check(server: HttpMemory) -> None:
    """It answers the next request, and has logged nothing that it would blame itself for."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
    with connected(server) as client:
        client.sendall(post(message, modern(message)))
        answer = read_answer(client.makefile("rb"), "POST")
    assert answer is not None
    assert json.loads(answer.body)["result"]["tools"]
    assert "Traceback" not in server.log.read_text(encoding="utf-8")


def send(client: socket.socket, parts: list[bytes]) -> None:
    try:
        for part in parts:
            client.sendall(part)
    except OSError:  # It was refused before its end: what counts is the answer, and that the server lives.
        pass


@FEW
@given(
    method=st.sampled_from(
        ["POST"] * 6 + ["GET", "DELETE", "OPTIONS", "PUT", "HEAD", "TRACE", "PATCH", "QUERY"]
    ),
    target=one_of(PATHS * 3 + ODD_TARGETS),
    odd=heads,
    body=pieces(bodies),
    chunked=st.booleans(),
)
def test_every_request_gets_a_response_that_blames_its_sender(
    server: HttpMemory, method: str, target: str, odd: dict[str, str], body: list[bytes], chunked: bool
) -> None:
    with connected(server) as client:
        send(client, written(method, target, JSON_HEADS | odd, body, chunked=chunked))
        read_answer(client.makefile("rb"), method)
    check(server)


@FEW
@given(st.lists(messages(modern=True), min_size=1, max_size=4), st.integers(0, 3))
def test_requests_that_come_at_once_are_answered_in_their_order(
    server: HttpMemory, asked: list[Any], missing: int
) -> None:
    whole = b"".join(post(message, modern(message)) for message in asked)
    with connected(server) as client:
        send(client, [whole[: len(whole) - missing]])
        answers = client.makefile("rb")
        for message in asked[: len(asked) - bool(missing)]:
            answer = read_answer(answers, "POST")
            assert answer is not None
            if answer.is_last:
                break
            told = json.loads(answer.body or b"{}")
            assert told.get("id") in (message.get("id"), None), message
    check(server)


@FEW
@given(
    pieces(st.binary(max_size=300) | bodies | st.just(b"".join(written("GET", "/", {}, [], chunked=True))))
)
def test_bytes_that_are_no_request_are_survived(server: HttpMemory, parts: list[bytes]) -> None:
    with connected(server) as client:
        send(client, parts)
    check(server)


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
def test_every_field_may_hold_anything_in_a_session(
    server: HttpMemory, has_time: Callable[[], bool], revision: str
) -> None:
    with connected(server) as client:
        answers = client.makefile("rb")

        def ask(message: Any, heads: dict[str, str]) -> Answer:
            send(client, [post(message, JSON_HEADS | heads)])
            answer = read_answer(answers, "POST")
            assert answer is not None
            return answer

        params = PARAMS["initialize"] | {"protocolVersion": revision}
        begun = ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}, {})
        session = {"mcp-session-id": begun.heads["mcp-session-id"]}
        for message in edge_messages(31, modern=False):
            if not has_time():
                break
            ask(message, session)
    check(server)
