"""What any MCP host may rely on in the memory server: a real `ragmemory`, line by line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import LONGEST_SECONDS, Held
from tests.support.raw_mcp import MODERN_META

VERSION = "io.modelcontextprotocol/protocolVersion"
HANDSHAKE = {"capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
PING = b'{"jsonrpc":"2.0","id":"alive","method":"ping"}'
PONG = {"jsonrpc": "2.0", "id": "alive", "result": {}}
DEEP = b"[" * 1_000_000 + b"]" * 1_000_000


class Memory:
    """A server process and the lines to and from it."""

    def __init__(self, home: Path) -> None:
        self.process = Held(
            [sys.executable, "-m", "ragmemory"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "RAGCHAT_HOME": str(home)},
            cwd=home,  # not this project, which may have a memory of its own
        )

    def send(self, line: bytes, end: bytes = b"\n") -> None:
        assert self.process.stdin
        self.process.stdin.write(line + end)
        self.process.stdin.flush()

    def receive(self) -> Any:
        return json.loads(self.process.line())

    def ask(self, line: bytes | dict[str, Any] | list[Any]) -> Any:
        self.send(line if isinstance(line, bytes) else json.dumps(line).encode())
        return self.receive()

    def initialize(self, revision: str) -> Any:
        answer = self.ask(request("initialize", HANDSHAKE | {"protocolVersion": revision}))
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return answer

    def leave(self) -> tuple[int, bytes]:
        """End its stdin; the exit code and what else stood on its stdout."""
        rest, _ = self.process.communicate(timeout=LONGEST_SECONDS)
        return self.process.returncode, rest


@contextmanager
def running(home: Path) -> Iterator[Memory]:
    server = Memory(home)
    with server.process:
        yield server
        if server.process.poll() is None:
            assert server.leave() == (0, b"")


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Memory]:
    with running(tmp_path) as memory:
        yield memory


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """One for all tests that speak without a handshake."""
    with running(tmp_path_factory.mktemp("modern")) as memory:
        yield memory


@pytest.fixture(scope="module")
def with_handshake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """The same, with the handshake behind it."""
    with running(tmp_path_factory.mktemp("legacy")) as memory:
        memory.initialize("2025-11-25")
        yield memory


def request(method: str, params: dict[str, Any] | None = None, id: int | str = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def modern(
    method: str, params: dict[str, Any] | None = None, *, version: object = "2026-07-28"
) -> dict[str, Any]:
    return request(method, {**(params or {}), "_meta": MODERN_META | {VERSION: version}})


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return modern("tools/call", {"name": tool, "arguments": arguments})


def test_a_request_that_is_cancelled_before_it_begins_and_twice_ends_nothing_else(memory: Memory) -> None:
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    memory.send(
        b"\n".join(json.dumps(line).encode() for line in (modern("tools/list"), cancelled, cancelled))
    )
    memory.send(PING)
    assert memory.receive() == PONG


@pytest.mark.smoke
def test_without_a_handshake_it_tells_what_it_speaks_and_what_it_can(memory: Memory) -> None:
    found = memory.ask(modern("server/discover"))["result"]
    tools = memory.ask(modern("tools/list"))["result"]

    assert "2026-07-28" in found["supportedVersions"]
    assert {tool["name"] for tool in tools["tools"]} == {"Inject", "Query"}
    for result in (found, tools):
        assert result["resultType"] == "complete"
        assert result["ttlMs"] >= 0
        assert result["cacheScope"] in ("public", "private")


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_handshake_settles_the_revision_and_what_is_shown_at_it(fresh: Memory, revision: str) -> None:
    assert fresh.initialize(revision)["result"]["protocolVersion"] == revision
    assert fresh.ask(PING) == PONG

    tools = fresh.ask(request("tools/list"))["result"]["tools"]
    found = fresh.ask(request("tools/call", {"name": "Query", "arguments": {"query": "x"}}))["result"]

    structured = revision >= "2025-06-18"
    assert all(("outputSchema" in tool) is structured for tool in tools)
    assert ("structuredContent" in found) is structured
    assert found["content"][0]["type"] == "text"


def test_a_stored_text_is_found_with_its_lines_and_metadata(memory: Memory) -> None:
    text = "# Sky\n\nThe sky over Bremen is blue."
    metadata = {"uri": "mem:sky", "tags": ["weather"], "mood": {"is": "fine"}}
    outcomes = [
        memory.ask(call("Inject", text=text, metadata=metadata))["result"]["structuredContent"]["status"],
        memory.ask(call("Inject", text=text, metadata=metadata))["result"]["structuredContent"]["status"],
        memory.ask(call("Inject", text=text + " ", metadata=metadata | {"mood": 1}))["result"][
            "structuredContent"
        ]["status"],
    ]
    found = memory.ask(call("Query", query="sky over Bremen", filter={"mood": 1}))["result"]
    missed = memory.ask(call("Query", query="sky over Bremen", filter={"mood": 2}))["result"]

    assert outcomes == ["added", "unchanged", "updated"]
    [hit] = found["structuredContent"]["hits"]
    assert (hit["rank"], hit["uri"], hit["start_line"], hit["end_line"]) == (1, "mem:sky", 1, 3)
    assert hit["metadata"]["tags"] == ["weather"]
    assert missed["structuredContent"]["hits"] == []


def test_requests_piped_in_are_answered_before_it_leaves(fresh: Memory) -> None:
    inject, listing = call("Inject", text="Bremen lies on the Weser."), modern("tools/list") | {"id": 2}
    fresh.send(json.dumps(inject).encode())
    fresh.send(json.dumps(listing).encode(), end=b"")
    code, rest = fresh.leave()

    answers = {answer["id"]: answer["result"] for answer in map(json.loads, rest.splitlines())}
    assert code == 0
    assert answers[1]["structuredContent"]["status"] == "added"
    assert [tool["name"] for tool in answers[2]["tools"]] == ["Inject", "Query"]


def test_a_whole_number_of_any_size_can_be_filtered_on(memory: Memory) -> None:
    for number in (2**63, -(2**70), 10**400):
        memory.ask(call("Inject", text=f"Number {number}.", metadata={"number": number}))
        result = memory.ask(call("Query", query="number", filter={"number": number}))["result"]
        assert "isError" not in result


def test_search_syntax_is_text(memory: Memory) -> None:
    memory.ask(call("Inject", text="Bremen lies on the Weser."))
    for query in ('"', "*", "NEAR(", "a:b", "-x", '"open', "AND", "';--", " ", "😀", "你好", "สวัสดี"):
        found = memory.ask(call("Query", query=query))["result"]

        assert "isError" not in found, query
        scores = [hit["score"] for hit in found["structuredContent"]["hits"]]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


def test_an_unknown_revision_is_refused_with_those_that_are_known(memory: Memory) -> None:
    error = memory.ask(modern("tools/list", version="1999-01-01"))["error"]

    assert error["code"] == -32022
    assert error["data"]["supported"] == ["2026-07-28"]
    assert error["data"]["requested"] == "1999-01-01"


@pytest.mark.parametrize(
    ("message", "code", "word"),
    [
        (modern("nowhere"), -32601, "METHOD_NOT_FOUND"),
        (modern("ping"), -32601, "METHOD_NOT_FOUND"),
        (call("Nothing"), -32602, "TOOL_NOT_FOUND"),
        (modern("tools/call", {"name": "Query", "arguments": "x"}), -32602, "INVALID_PARAMS"),
        (modern("tools/list", version=7), -32602, "INVALID_PARAMS"),
        (request("tools/list"), -32602, "INVALID_PARAMS"),
    ],
)
@pytest.mark.smoke
def test_a_call_that_cannot_be_made_is_an_error_with_a_word_for_programs(
    memory: Memory, message: dict[str, Any], code: int, word: str
) -> None:
    error = memory.ask(message)["error"]

    assert error["code"] == code
    assert error["data"].keys() >= {"errorCode", "details", "requestId"}
    assert (error["data"]["errorCode"], error["data"]["requestId"]) == (word, 1)


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (call("Query"), "$.query"),
        (call("Query", query=5), "$.query"),
        (call("Query", query="x", top_k=0), "$.top_k"),
        (call("Query", query="x", top_k=10**30), "$.top_k"),
        (call("Query", query="x", more=1), "$.more"),
        (call("Query", query="x", filter={"tags": 5}), "$.filter.tags"),
        (call("Inject", text=""), "$.text"),
    ],
)
@pytest.mark.smoke
def test_arguments_that_do_not_fit_are_a_result_that_names_the_field_and_those_that_exist(
    memory: Memory, message: dict[str, Any], path: str
) -> None:
    result = memory.ask(message)["result"]

    assert result["isError"]
    assert result["structuredContent"]["errorCode"] == "INVALID_PARAMS"
    assert result["structuredContent"]["details"]["path"] == path
    assert result["structuredContent"]["requestId"] == 1
    sentence, hint = (item["text"] for item in result["content"])
    assert path in sentence
    assert hint.split(" takes: ")[1].startswith(("query, top_k", "text, metadata"))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"garbage", -32700),
        (b'{"jsonrpc":"2.0","id":1,', -32700),
        (b"\x00", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}', -32700),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + DEEP + b"}}", -32700),
        (b"null", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1234567890123456789012,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else str(value),
)
@pytest.mark.smoke
def test_a_bad_line_is_answered_and_the_server_lives_on(
    with_handshake: Memory, line: bytes, code: int
) -> None:
    assert with_handshake.ask(line)["error"]["code"] == code
    assert with_handshake.ask(PING) == PONG


def test_what_asks_for_no_answer_gets_none(with_handshake: Memory) -> None:
    for line in (
        b"",
        b"   ",
        b"\r",
        b'{"jsonrpc":"2.0","method":"notifications/nowhere"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
        b'{"jsonrpc":"2.0","method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":5,"result":{}}',
    ):
        with_handshake.send(line)

    with_handshake.send(PING, end=b"\r\n")
    assert with_handshake.receive() == PONG


def test_batches_belong_to_one_revision(fresh: Memory) -> None:
    fresh.initialize("2025-03-26")
    note = {"jsonrpc": "2.0", "method": "notifications/nowhere"}

    answers = fresh.ask([request("ping", id=6), note, request("ping", id="7")])

    assert {answer["id"]: answer["result"] for answer in answers} == {6: {}, "7": {}}


def test_an_id_is_free_again_only_when_its_request_is_answered(memory: Memory) -> None:
    slow = json.dumps(call("Query", query="word " * 3000)).encode()
    memory.send(slow + b"\n" + slow)

    answers = [memory.receive(), memory.receive()]

    assert sorted(answer.get("error", {}).get("code", 0) for answer in answers) == [-32600, 0]
    assert "result" in memory.ask(call("Query", query="x"))


def test_a_server_nobody_asked_leaves_when_its_stdin_ends(fresh: Memory) -> None:
    assert fresh.leave() == (0, b"")
