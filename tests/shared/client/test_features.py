"""A client and servers of every kind; scripted ones say exactly what the test wants to hear answered.

Covers `handlers`, `ragmcp.protocol.results` and `ragmcp.legacy.client`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import msgspec
import pytest

from ragmcp.client import core
from ragmcp.client.features import Client, EraName
from ragmcp.errors import (
    ConnectionClosed,
    NotEncodable,
    RequestTimedOut,
    UnreadableAnswer,
    UnsupportedRevision,
    WireError,
)
from ragmcp.protocol.results import server_info
from ragmcp.protocol.schema.base import UNKNOWN, Result
from ragmcp.protocol.schema.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from tests.support.scripted import INITIALIZED, Script, connected, failure, success


def legacy(answer_to_discover: Callable[[dict[str, Any]], list[Any]]) -> Script:
    def script(message: dict[str, Any]) -> list[Any]:
        match message["method"]:
            case "server/discover":
                return answer_to_discover(message)
            case "initialize":
                return [success(message, **INITIALIZED)]
            case "tools/list":
                return [success(message, tools=[])]
        return []

    return script


@pytest.mark.parametrize(
    "answer",
    [
        lambda message: [failure(message, -32601)],
        lambda message: [failure(message, -32602)],
        lambda message: [failure(message, -32000, "Server not initialized")],
        lambda message: [failure(message, 0)],
        lambda message: [success(message)],
        lambda message: [success(message, supportedVersions=["2025-11-25"], capabilities={})],
        lambda _: [],
        lambda _: [b"Starting up ...", b"{}", b"[]"],
    ],
    ids=["-32601", "-32602", "-32000", "0", "empty result", "legacy only", "silence", "noise"],
)
async def test_a_server_that_does_not_discover_gets_the_handshake(
    answer: Callable[[dict[str, Any]], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "PROBE_SECONDS", 0.1)
    async with connected(legacy(answer), era=None) as (client, server):
        assert (client.revision, client.server.name) == ("2025-06-18", "old")
        assert await client.list_tools() == []
        spoken = [method for method in server.methods() if method != "notifications/cancelled"]
        assert spoken == ["server/discover", "initialize", "notifications/initialized", "tools/list"]
        assert "_meta" not in server.heard[-1]["params"]


@pytest.mark.parametrize(("era", "method"), [("modern", "server/discover"), ("legacy", "ping")])
async def test_a_ping_is_one_request_and_fails_if_the_server_refuses_it(era: EraName, method: str) -> None:
    refuses = False

    def script(message: dict[str, Any]) -> list[Any]:
        match message["method"]:
            case "initialize":
                return [success(message, **INITIALIZED)]
            case "notifications/initialized":
                return []
        return [failure(message, -32603) if refuses else success(message, resultType="complete")]

    async with connected(script, era) as (client, server):
        await client.ping()
        assert server.methods()[-1] == method
        refuses = True
        with pytest.raises(WireError):
            await client.ping()


async def test_a_modern_server_is_not_asked_to_shake_hands() -> None:
    def script(message: dict[str, Any]) -> list[Any]:
        info = {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "2"}}
        return [
            success(
                message,
                resultType="complete",
                supportedVersions=["2026-07-28"],
                capabilities={},
                instructions="Ask nicely.",
                _meta=info,
            )
        ]

    async with connected(script, era=None) as (client, server):
        assert (client.revision, client.server.name) == ("2026-07-28", "new")
        assert client.instructions == "Ask nicely."
        assert server.methods() == ["server/discover"]
        meta = server.heard[0]["params"]["_meta"]
        assert meta["io.modelcontextprotocol/clientInfo"] == {"name": "me", "version": "1"}
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {}


def test_a_server_whose_name_is_not_text_is_unknown() -> None:
    meta = b'{"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "\xff", "version": "1"}}}'
    assert server_info(msgspec.json.decode(meta, type=Result)) is UNKNOWN


async def test_a_modern_server_that_started_too_slowly_for_the_probe_is_probed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(core, "PROBE_SECONDS", 0.1)

    def script(message: dict[str, Any]) -> list[Any]:
        if message["method"] == "initialize":
            awake.append(True)
            return [failure(message, -32022, data={"supported": ["2026-07-28"]})]
        discovered = {"supportedVersions": ["2026-07-28"], "capabilities": {}}
        return [success(message, **discovered)] if awake else []

    awake: list[bool] = []
    async with connected(script, era=None) as (client, _):
        assert client.revision == "2026-07-28"


async def test_a_modern_server_without_a_common_revision_is_an_error() -> None:
    with pytest.raises(UnsupportedRevision, match="2099-01-01"):
        async with connected(lambda m: [failure(m, -32022, data={"supported": ["2099-01-01"]})], era=None):
            pass


async def test_our_own_kind_of_server_is_not_probed() -> None:
    async with connected(lambda m: [success(m, tools=[])]) as (client, server):
        await client.list_tools()
        assert server.methods() == ["tools/list"]


async def test_a_handshake_with_an_unknown_revision_is_refused() -> None:
    def script(message: dict[str, Any]) -> list[Any]:
        return [success(message, **(INITIALIZED | {"protocolVersion": "1999-01-01"}))]

    with pytest.raises(UnreadableAnswer, match="1999-01-01"):
        async with connected(script, era="legacy"):
            pass


async def test_a_list_is_read_to_its_last_page() -> None:
    def script(message: dict[str, Any]) -> list[Any]:
        cursor = message["params"].get("cursor", "0")
        tool = {"name": f"tool-{cursor}", "inputSchema": {"type": "object"}}
        more = {"nextCursor": str(int(cursor) + 1)} if cursor != "2" else {}
        return [success(message, tools=[tool], **more)]

    async with connected(script) as (client, _):
        assert [tool.name for tool in await client.list_tools()] == ["tool-0", "tool-1", "tool-2"]


async def test_a_tool_that_cannot_be_read_does_not_hide_the_others() -> None:
    tools = [{"name": "bad", "inputSchema": "none"}, {"name": "good", "inputSchema": {}}, 7]
    async with connected(lambda message: [success(message, tools=tools)]) as (client, _):
        assert [tool.name for tool in await client.list_tools()] == ["good"]
        assert [text.partition(" is left out: ")[0] for text in client.left_out] == [
            "The tool bad",
            "The tool 7",
        ]


async def test_an_error_of_a_list_names_what_was_asked() -> None:
    async with connected(lambda message: [failure(message, -32603, "db locked")]) as (client, _):
        with pytest.raises(WireError, match="It refused tools/list: db locked"):
            await client.list_tools()


async def test_every_kind_of_content_is_understood() -> None:
    content = [
        {"type": "text", "text": "one", "annotations": {"priority": 1}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "a:b", "text": "t"}},
        {"type": "resource_link", "uri": "a:b", "name": "n"},
        {"type": "text", "text": "two"},
    ]
    async with connected(lambda m: [success(m, content=content, structuredContent=[1])]) as (client, _):
        result = await client.call_tool("t", timeout=None)
        kinds = [TextContent, ImageContent, AudioContent, EmbeddedResource, ResourceLink, TextContent]
        assert [type(item) for item in result.content] == kinds
        assert (result.text, result.structured(list), result.is_error) == ("one\ntwo", [1], False)


@pytest.mark.parametrize("result", [{}, {"content": 5}, {"content": [{"type": "hologram"}]}])
async def test_a_result_that_is_none_is_an_unreadable_answer(result: dict[str, Any]) -> None:
    async with connected(lambda m: [success(m, **result)]) as (client, _):
        with pytest.raises(UnreadableAnswer, match="tools/call"):
            await client.call_tool("t", timeout=None)


async def test_a_wire_error_keeps_code_message_and_data() -> None:
    async with connected(lambda m: [failure(m, -5, "no luck", {"errorCode": "LUCK"})]) as (client, _):
        with pytest.raises(WireError) as raised:
            await client.call_tool("t", timeout=None)
        assert (raised.value.code, str(raised.value), raised.value.error_code) == (-5, "no luck", "LUCK")


async def test_arguments_without_json_form_are_refused_before_they_are_sent() -> None:
    async with connected(lambda _: []) as (client, server):
        with pytest.raises(NotEncodable):
            await client.call_tool("t", {"text": "\ud800"}, timeout=1)
        assert server.heard == []


async def test_noise_between_answers_is_ignored_and_never_answered() -> None:
    noise = [b"Listening on stdio ...", b"\xff\xfe", b'{"jsonrpc":"2.0","id":777,"result":{}}', b"[]"]
    async with connected(lambda m: [*noise, success(m, tools=[])]) as (client, server):
        assert await client.list_tools() == []
        assert await client.list_tools() == []
        assert server.methods() == ["tools/list", "tools/list"]


async def test_a_server_that_pings_is_answered_and_one_that_asks_more_is_refused() -> None:
    answered: list[dict[str, Any]] = []

    def script(message: dict[str, Any]) -> list[Any]:
        if "method" not in message:
            answered.append(message)
            return [success(waiting[0], tools=[])] if len(answered) == 2 else []
        waiting.append(message)
        ask = {"jsonrpc": "2.0", "method": "ping", "id": "p"}
        return [ask, ask | {"method": "roots/list", "id": "r"}]

    waiting: list[dict[str, Any]] = []
    async with connected(script) as (client, _):
        await client.list_tools()
    assert answered[0] == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert (answered[1]["id"], answered[1]["error"]["code"]) == ("r", -32601)


async def test_progress_reaches_the_call_it_belongs_to_and_a_failing_listener_harms_nobody() -> None:
    def script(message: dict[str, Any]) -> list[Any]:
        token = message["params"]["_meta"]["progressToken"]
        news = {"progressToken": token, "progress": 1}
        notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": news}
        stray = {**notification, "params": {"progressToken": "nobody", "progress": 1}}
        broken = {**notification, "params": {"progress": "x"}}
        return [stray, broken, notification, notification, success(message, content=[])]

    steps: list[float] = []

    def listen(done: float, _total: float | None, _message: str | None) -> None:
        steps.append(done)
        raise RuntimeError("a failing listener")

    async with connected(script) as (client, _):
        await client.call_tool("t", timeout=None, on_progress=listen)
    assert steps == [1, 1]


async def test_an_answer_after_the_timeout_is_ignored() -> None:
    late: list[dict[str, Any]] = []

    def script(message: dict[str, Any]) -> list[Any]:
        if message["method"] == "notifications/cancelled":
            assert message["params"]["requestId"] == late[0]["id"]
            return [success(late[0], content=[{"type": "text", "text": "late"}])]
        if message["params"]["name"] == "slow":
            late.append(message)
            return []
        return [success(message, content=[{"type": "text", "text": "in time"}])]

    async with connected(script) as (client, _):
        with pytest.raises(RequestTimedOut):
            await client.call_tool("slow", timeout=0.05)
        assert (await client.call_tool("fast", timeout=5)).text == "in time"


async def test_everybody_who_waits_is_told_when_the_connection_ends() -> None:
    failures: list[str] = []

    async def ask(client: Client) -> None:
        try:
            await client.call_tool("t", timeout=None)
        except ConnectionClosed as error:
            failures.append(error.method)

    asked = 0

    def script(_: dict[str, Any]) -> list[Any] | None:
        nonlocal asked
        asked += 1
        return None if asked == 3 else []

    async with connected(script) as (client, _), anyio.create_task_group() as tasks:
        for _number in range(3):
            tasks.start_soon(ask, client)
        await client.closed()
        with pytest.raises(ConnectionClosed):
            await client.call_tool("t", timeout=None)
    assert failures == ["tools/call"] * 3


async def test_what_the_body_raises_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with connected(lambda _: []):
            raise ZeroDivisionError
