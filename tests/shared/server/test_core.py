"""What a server answers, message by message, in every revision; each answer fits its revision's schema.

Covers `call`.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from ragmcp.client.handlers import Handlers
from ragmcp.concurrency import background_task
from ragmcp.errors import WireError
from ragmcp.http.connect import open_http
from ragmcp.protocol.eras import LEGACY_REVISIONS
from ragmcp.protocol.schema.input import Elicit, ElicitResult
from ragmcp.server.call import Call
from ragmcp.server.core import Server, serve
from ragmcp.server.tools import tool
from tests.shared.test_concurrency import awaits_what_is_cancelled
from tests.support.http_server import http_client, request
from tests.support.in_memory import memory_pair, open_memory
from tests.support.mcp_server import make_server
from tests.support.raw_mcp import MODERN_META, raw_client
from tests.support.schemas import MODERN, REVISIONS


def server() -> Server:
    return make_server(instructions="For tests.")


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_the_legacy_handshake_settles_the_revision(revision: str) -> None:
    async with raw_client(server()) as client:
        result = (await client.initialize(revision))["result"]
        assert result["protocolVersion"] == revision
        assert result["serverInfo"] == {"name": "test-server", "version": "1.2.3"}
        assert result["capabilities"] == {"tools": {"listChanged": True}}
        assert result["instructions"] == "For tests."


async def test_a_legacy_client_of_the_future_is_offered_our_latest_legacy_revision() -> None:
    async with raw_client(server()) as client:
        assert (await client.initialize("2031-01-01"))["result"]["protocolVersion"] == "2025-11-25"


async def test_discover_says_what_a_client_must_know() -> None:
    async with raw_client(server()) as client:
        result = (await client.request("server/discover", modern=True))["result"]
        assert result["supportedVersions"] == [MODERN]
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "test-server"
        assert (result["resultType"], result["cacheScope"]) == ("complete", "public")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_tool_list_fits_its_revision(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        result = (await client.request("tools/list"))["result"]
        add = next(tool for tool in result["tools"] if tool["name"] == "Add")
        assert ("outputSchema" in add) is (revision >= "2025-06-18")
        assert ("annotations" in add) is (revision >= "2025-03-26")
        assert ("ttlMs" in result) is ("resultType" in result) is ("_meta" in result) is (revision == MODERN)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("tool", ["Add", "Echo", "Describe", "Fail", "Crash"])
async def test_a_tool_result_fits_its_revision(revision: str, tool: str) -> None:
    arguments = {"Add": {"a": 1}, "Echo": {"text": "t"}}.get(tool, {})
    async with raw_client(server(), revision) as client:
        answer = await client.request("tools/call", {"name": tool, "arguments": arguments})
        structured = tool != "Echo" and revision >= "2025-06-18"
        assert ("structuredContent" in answer["result"]) is structured
        assert answer["result"].get("isError", False) is (tool in ("Fail", "Crash"))


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_wire_error_fits_its_revision(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        assert (await client.request("tools/call", {"name": "Nope"}))["error"]["code"] == -32602


@pytest.mark.parametrize("revision", REVISIONS)
async def test_progress_fits_its_revision_and_comes_before_the_result(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        params = {"name": "Wait", "arguments": {"progress": 2}, "_meta": {"progressToken": "p"}}
        client.send(client.message("tools/call", params))
        for step in (1, 2):
            notification = await client.receive()
            assert notification["params"] == {
                "progressToken": "p",
                "progress": step,
                "total": 2,
                "message": "working",
            }


async def test_no_progress_is_sent_to_who_did_not_ask_for_it() -> None:
    async with raw_client(server()) as client:
        client.send(call("Wait", {"progress": 2}, id=1))
        assert (await client.ask(call("Echo", {"text": "t"}, id=2)))["id"] == 2


def call(name: str, arguments: dict[str, Any], *, id: int | str = 1) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, "_meta": MODERN_META}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


async def test_unsupported_versions_are_refused_with_the_supported_ones() -> None:
    async with raw_client(server()) as client:
        meta = {"io.modelcontextprotocol/protocolVersion": "1900-01-01"}
        answer = await client.request("tools/list", {"_meta": meta}, modern=True)
        assert answer["error"]["code"] == -32022
        assert answer["error"]["data"]["supported"] == [MODERN]
        assert answer["error"]["data"]["requested"] == "1900-01-01"


async def test_a_missing_capability_is_named() -> None:
    async with raw_client(server()) as client:
        answer = await client.ask(call("NeedsElicitation", {}))
        assert answer["error"]["code"] == -32021
        assert answer["error"]["data"]["requiredCapabilities"] == {"elicitation": {}}


@pytest.mark.parametrize(
    ("method", "params", "modern", "code"),
    [
        ("tools/fly", {}, True, -32601),
        ("tools/fly", {}, False, -32601),
        ("ping", {}, True, -32601),
        ("resources/list", {}, True, -32601),
        ("tools/list", {}, False, -32602),
        ("tools/list", {"cursor": "x"}, True, -32602),
        ("tools/list", {"cursor": 5}, True, -32602),
        ("tools/list", {"_meta": {"progressToken": 1.5}}, True, -32602),
        ("tools/call", {}, True, -32602),
        ("tools/call", {"name": 5}, True, -32602),
        ("tools/call", {"name": "Nope"}, True, -32602),
        ("tools/call", {"name": "Add", "arguments": [1]}, True, -32602),
        ("tools/call", {"name": "Add", "arguments": None}, True, -32602),
        ("initialize", {}, False, -32602),
        ("initialize", {"protocolVersion": 5, "capabilities": {}, "clientInfo": {}}, False, -32602),
    ],
)
async def test_what_cannot_be_done_is_refused_with_its_code(
    method: str, params: dict[str, Any], modern: bool, code: int
) -> None:
    async with raw_client(server()) as client:
        answer = await client.request(method, params, id="r", modern=modern)
        assert (answer["id"], answer["error"]["code"]) == ("r", code)
        assert answer["error"]["data"].keys() >= {"errorCode", "details", "requestId"}
        assert answer["error"]["data"]["requestId"] == "r"


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_bad_arguments_are_a_protocol_error_before_2025_11_25(revision: str) -> None:
    async with raw_client(server(), revision) as client:
        answer = await client.request("tools/call", {"name": "Add", "arguments": {"a": 1, "b": 101}})
    error = answer["error"]
    assert error["code"] == -32602
    assert error["message"] == "Invalid parameter $.b: expected `int` <= 100."
    assert error["data"] == {
        "errorCode": "INVALID_PARAMS",
        "details": {"path": "$.b", "reason": "expected `int` <= 100"},
        "requestId": 1,
    }


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize(
    ("arguments", "path", "reason"),
    [
        ({"a": 1, "b": 101}, "$.b", "expected `int` <= 100"),
        ({"a": "x"}, "$.a", "expected `int`, got `str`"),
        ({"a": 1, "c": 1}, "$.c", "unknown field"),
        ({}, "$.a", "required, but missing"),
    ],
)
async def test_bad_arguments_are_a_result_that_a_model_can_act_on_from_2025_11_25(
    revision: str, arguments: dict[str, Any], path: str, reason: str
) -> None:
    async with raw_client(server(), revision) as client:
        answer = await client.request("tools/call", {"name": "Add", "arguments": arguments})
    result = answer["result"]
    hint = "Add takes: a, b."
    assert result["isError"]
    assert [item["text"] for item in result["content"]] == [f"Invalid parameter {path}: {reason}.", hint]
    assert result["structuredContent"] == {
        "errorCode": "INVALID_PARAMS",
        "details": {"path": path, "reason": reason, "hint": hint},
        "requestId": 1,
    }


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("params", [{}, {"name": 5}, {"name": "Nope"}, {"name": "Add", "arguments": [1]}])
async def test_a_malformed_call_and_an_unknown_tool_are_protocol_errors_in_every_revision(
    revision: str, params: dict[str, Any]
) -> None:
    async with raw_client(server(), revision) as client:
        assert (await client.request("tools/call", params))["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({}, "$._meta['io.modelcontextprotocol/clientCapabilities']"),
        (
            {"io.modelcontextprotocol/clientCapabilities": 7},
            "$._meta['io.modelcontextprotocol/clientCapabilities']",
        ),
        (
            {"io.modelcontextprotocol/clientInfo": {"name": "n"}},
            "$._meta['io.modelcontextprotocol/clientInfo'].version",
        ),
        (
            {"io.modelcontextprotocol/clientInfo": {"name": 7, "version": ""}},
            "$._meta['io.modelcontextprotocol/clientInfo'].name",
        ),
        ({"progressToken": []}, "$._meta.progressToken"),
    ],
)
async def test_a_field_of_meta_is_named_in_one_way_whatever_is_wrong_with_it(more: Any, path: str) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"} | more
    async with raw_client(server()) as client:
        answer = await client.ask(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        )
    assert answer["error"]["data"]["details"]["path"] == path


async def test_an_unknown_tool_is_a_protocol_error() -> None:
    async with raw_client(server()) as client:
        assert (await client.ask(call("Nope", {})))["error"]["data"]["errorCode"] == "TOOL_NOT_FOUND"


async def test_a_tool_that_failed_is_a_result_with_the_data_of_its_error() -> None:
    async with raw_client(server()) as client:
        result = (await client.ask(call("Fail", {}, id=8)))["result"]
        assert result["isError"]
        assert result["content"] == [{"type": "text", "text": "There was no luck left."}]
        assert result["structuredContent"] == {
            "errorCode": "OUT_OF_LUCK",
            "details": {"luck": 0},
            "requestId": 8,
        }


async def test_an_unforeseen_failure_stays_between_the_server_and_its_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with raw_client(server()) as client:
        answer = await client.ask(call("Crash", {}))
        assert answer["result"]["structuredContent"]["errorCode"] == "INTERNAL_ERROR"
        assert "secret" not in json.dumps(answer)
    assert "an internal secret" in caplog.text


async def test_ping_and_other_calls_are_answered_while_a_slow_one_runs() -> None:
    async with raw_client(server()) as client:
        await client.initialize("2025-11-25")
        for id in range(5):
            client.send(call("Wait", {}, id=f"slow-{id}"))
        assert await client.request("ping", id=7) == {"jsonrpc": "2.0", "id": 7, "result": {}}
        assert (await client.ask(call("Add", {"a": 1}, id=8)))["id"] == 8


async def test_a_cancelled_call_ends_and_is_not_answered(capfd: pytest.CaptureFixture[str]) -> None:
    async with raw_client(server()) as client:
        client.send(call("Wait", {}, id="slow"))
        assert (await client.ask(call("Add", {"a": 1}, id=2)))["id"] == 2
        cancel = {"requestId": "slow", "reason": "enough"}
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})
        for id in range(3, 6):
            assert (await client.ask(call("Add", {"a": 1}, id=id)))["id"] == id
        assert "Wait was cancelled" in capfd.readouterr().err
        # Its id is free again.
        assert (await client.ask(call("Add", {"a": 1}, id="slow")))["id"] == "slow"


async def test_a_cancellation_in_the_same_breath_as_its_request_is_honoured() -> None:
    async with raw_client(server()) as client:
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        lines = [call("Wait", {}, id=1), cancel, call("Add", {"a": 1}, id=2)]
        client.send(b"\n".join(json.dumps(line).encode() for line in lines))
        assert (await client.receive())["id"] == 2


async def test_batches_are_answered_in_one_line_in_the_one_revision_that_has_them() -> None:
    async with raw_client(server()) as client:
        await client.initialize("2025-03-26")
        answers = await client.ask(
            [
                {"jsonrpc": "2.0", "id": 1, "method": "ping"},
                {"jsonrpc": "2.0", "method": "notifications/whatever"},
                {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "Nope"}},
            ]
        )
        assert {answer["id"]: "error" in answer for answer in answers} == {1: False, 2: True}


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_batches_are_refused_elsewhere(revision: str) -> None:
    async with raw_client(server()) as client:
        await client.initialize(revision)
        answer = await client.ask([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)


async def test_everything_malformed_is_answered_and_the_server_lives_on() -> None:
    deep = b"[" * 1_000_000 + b"]" * 1_000_000
    malformed = [
        b"hello",
        b"{",
        b"[]",
        b"5",
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 400 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\udc00"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"\xc3\x28"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + deep + b"}",
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Echo","arguments":{"text":'
        + deep
        + b"}}}",
        deep,
        b"\x00\x01\x02",
    ]
    async with raw_client(server()) as client:
        for line in malformed:
            answer = await client.ask(line)
            assert answer["error"]["code"] in (-32700, -32600), (line[:60], answer)
        assert (await client.request("ping", id="alive"))["id"] == "alive"


async def test_a_line_over_the_limit_gets_a_clear_error_and_the_connection_lives_on() -> None:
    async with raw_client(server(), message_bytes=1000) as client:
        answer = await client.ask(call("Echo", {"text": "x" * 2000}, id=3))
        assert (answer["id"], answer["error"]["data"]["errorCode"]) == (3, "MESSAGE_TOO_LARGE")
        assert (await client.ask(call("Echo", {"text": "short"}, id=4)))["id"] == 4


@pytest.mark.parametrize("over", [2000, 5000])
async def test_a_line_that_is_far_too_long_is_refused_before_the_server_leaves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, over: int
) -> None:
    """A line of `over` bytes in portions, without an end: the limit is 1000 bytes, and 3000 more end it."""
    monkeypatch.setattr("ragmcp.peer.MAX_OVERLONG_BYTES", 3000)
    here, there = memory_pair()
    line = b'{"jsonrpc":"2.0","id":3,"method":"ping","params":{"text":"'.ljust(over, b"x")

    async def answer() -> None:
        await serve(server(), there, message_bytes=1000)
        there.close()

    async with background_task(answer):
        for start in range(0, over, 500):
            there.feed(line[start : start + 500])
            await checkpoint()
        ends = over > 4000
        if not ends:
            there.feed(b'"}}\n')
        refused = json.loads(await here.receive())
        assert (refused["id"], refused["error"]["data"]["errorCode"]) == (3, "MESSAGE_TOO_LARGE")
        if ends:
            assert await here.receive() == b""
        else:
            here.write(json.dumps(call("Echo", {"text": "short"}, id=4)).encode())
            assert json.loads(await here.receive())["id"] == 4
    assert ("without a line end" in caplog.text) is ends


async def test_responses_from_a_client_are_ignored() -> None:
    async with raw_client(server()) as client:
        client.send({"jsonrpc": "2.0", "id": 99, "result": {}})
        client.send({"jsonrpc": "2.0", "id": 98, "error": {"code": 1, "message": "m"}})
        assert (await client.request("ping", id=1))["id"] == 1


async def test_what_was_asked_before_the_end_is_answered_after_it() -> None:
    async with raw_client(server()) as client:
        for id in range(10):
            client.send(call("Add", {"a": id}, id=id))
        client.close()
        assert [(await client.receive())["id"] for _ in range(10)] == list(range(10))


async def test_a_thousand_calls_at_once_are_all_answered() -> None:
    async with raw_client(server()) as client:
        for id in range(1000):
            client.send(call("Add", {"a": id}, id=id))
        with anyio.fail_after(20):
            assert {(await client.receive())["id"] for _ in range(1000)} == set(range(1000))


async def test_a_tool_that_awaits_what_is_cancelled_fails_alone() -> None:
    may_finish = anyio.Event()

    @tool()
    async def slow(_: Call) -> str:
        """Takes its time."""
        await may_finish.wait()
        return "done"

    @tool()
    async def stray(_: Call) -> str:
        """Meets a cancellation that is not its own."""
        await awaits_what_is_cancelled()
        return ""

    with anyio.fail_after(10):
        async with (
            open_memory(Server("s", "1", [slow, stray]), era="modern") as client,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(lambda: client.call_tool("slow", timeout=None))
            with pytest.raises(WireError) as refused:
                await client.call_tool("stray", timeout=None)
            assert refused.value.code == -32603
            may_finish.set()


@pytest.mark.parametrize("way", ["memory", "http"])
async def test_a_client_whose_form_is_cancelled_says_so_and_goes_on(way: str) -> None:
    @tool()
    async def ask(call: Call) -> str:
        """Asks the user."""
        await call.ask(name=Elicit(message="Who?", requested_schema={"type": "object", "properties": {}}))
        return ""

    async def elicit(_: Elicit) -> ElicitResult:
        await awaits_what_is_cancelled()
        raise AssertionError

    server, handlers = Server("s", "1", [ask]), Handlers(elicit=elicit)
    with anyio.fail_after(10):
        async with AsyncExitStack() as stack:
            if way == "memory":
                client = await stack.enter_async_context(open_memory(server, era="legacy", handlers=handlers))
            else:
                there = await stack.enter_async_context(http_client(server))
                client = await stack.enter_async_context(
                    open_http(
                        there.url,
                        client_name="me",
                        client_version="1",
                        message_bytes=100_000,
                        era="legacy",
                        handlers=handlers,
                    )
                )
            for _ in range(2):
                assert (await client.call_tool("ask", timeout=5)).is_error


async def test_a_client_that_leaves_while_it_is_asked_is_no_failure_of_the_tool(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool()
    async def ask(call: Call) -> str:
        """Asks the user."""
        await call.ask(name=Elicit(message="Who?", requested_schema={"type": "object", "properties": {}}))
        return ""

    shake = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "me", "version": "1"},
    }
    here, there = memory_pair()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as serving:
            serving.start_soon(partial(serve, Server("s", "1", [ask]), there, message_bytes=100_000))
            here.write(json.dumps(request("initialize", shake, id=1)).encode())
            here.write(json.dumps(request("tools/call", {"name": "ask"}, id=2)).encode())
            while b"elicitation/create" not in await here.receive():
                pass
            here.close()
    assert b"INTERNAL_ERROR" in await here.receive()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
