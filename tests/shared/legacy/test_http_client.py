"""Sessions and streams of the legacy era over HTTP, from the end that asks.

Covers `session_client`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from ragmcp.backoff import Backoff
from ragmcp.client.handlers import Handlers
from ragmcp.errors import ConnectionClosed, RequestTimedOut, WireError
from ragmcp.legacy import session_client
from ragmcp.protocol.framing import EventDecoder
from ragmcp.protocol.schema.base import Result
from ragmcp.protocol.schema.input import Root
from ragmcp.protocol.schema.resources import ResourceParams
from ragmcp.protocol.schema.subscriptions import Filter, list_changed
from tests.support.http_script import Heard, Said, Script, error, event, initialized, result, scripted

NO_STREAM = Said(405, b"Method Not Allowed")
DONE = [{"type": "text", "text": "done"}]


def serving(answer: Script, get: Said = NO_STREAM) -> Script:
    """A server that shakes hands and keeps a session, and does with calls what `answer` says."""
    opened: list[int] = []

    def script(heard: Heard) -> Any:
        if heard.method == "initialize":
            opened.append(1)
            return Said(body=initialized(heard), headers={"mcp-session-id": f"session-{len(opened)}"})
        if heard.verb == "GET" and "last-event-id" not in heard.headers:
            return get
        if heard.verb == "POST" and "id" not in heard.message:
            return Said(202)
        return answer(heard)

    return script


def done(heard: Heard) -> Said:
    return Said(body=result(heard, content=DONE))


async def test_a_session_is_carried_along_and_ended() -> None:
    async with scripted(serving(done), "legacy") as (client, server):
        await client.call_tool("t", timeout=5)
    # The stream of the server's own comes beside, when it comes.
    heard = [heard for heard in server.heard if heard.verb != "GET"]
    assert [item.method for item in heard] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
        "DELETE",
    ]
    first, *later = heard
    assert not {"mcp-session-id", "mcp-protocol-version", "mcp-method"} & first.headers.keys()
    for item in later:
        assert item.headers["mcp-session-id"] == "session-1"
        assert item.headers["mcp-protocol-version"] == "2025-11-25"


async def test_a_forgotten_session_is_begun_anew_with_all_that_the_server_was_told() -> None:
    forgotten = []

    def answer(heard: Heard) -> Said:
        if heard.method == "tools/call" and heard.headers["mcp-session-id"] == "session-1":
            forgotten.append(heard)
            return Said(404, error(heard, -32001, "Session not found"))
        return Said(body=result(heard, content=DONE))

    async with scripted(serving(answer), "legacy") as (client, server):
        await client.set_log_level("error")
        await client.request("resources/subscribe", ResourceParams(uri="note://a"), Result, timeout=5)
        async with anyio.create_task_group() as t:
            for _ in range(3):
                t.start_soon(lambda: client.call_tool("t", timeout=5))
    assert len(forgotten) in (1, 2, 3)
    told = [heard for heard in server.heard if heard.headers.get("mcp-session-id") == "session-2"]
    methods = [heard.method for heard in told if heard.verb == "POST"]
    assert methods[:3] == ["notifications/initialized", "logging/setLevel", "resources/subscribe"]
    assert methods.count("tools/call") == 3
    assert server.methods().count("initialize") == 2


async def test_in_a_new_session_the_lists_may_be_others() -> None:
    """The server may have been started again, after an update or with other settings."""

    def answer(heard: Heard) -> Said:
        is_known = heard.headers["mcp-session-id"] != "session-1"
        return done(heard) if is_known else Said(404, error(heard, -32001, "Session not found"))

    wanted = Filter(tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True)
    async with scripted(serving(answer), "legacy") as (client, _), client.subscribe(wanted) as news:
        await client.call_tool("t", timeout=5)
        with anyio.fail_after(10):
            changes = [await anext(news) for _ in range(3)]
    assert changes == [list_changed(name) for name in ("tools", "prompts", "resources")]


async def test_all_who_hear_at_once_that_the_session_is_forgotten_go_on_in_a_new_one() -> None:
    asked, everybody = 0, anyio.Event()

    async def script(heard: Heard) -> Any:
        nonlocal asked
        if heard.headers.get("mcp-session-id") == "session-1" and heard.method == "tools/call":
            asked += 1
            if asked == 10:
                everybody.set()
            await everybody.wait()
            return Said(404)
        return inner(heard)

    inner = serving(done)
    async with scripted(script, "legacy") as (client, server), anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(lambda: client.call_tool("t", timeout=5))
    assert server.methods().count("initialize") == 2


async def test_a_server_that_forgets_every_session_is_not_asked_for_ever() -> None:
    async with scripted(serving(lambda _: Said(404)), "legacy") as (client, server):
        with pytest.raises(ConnectionClosed):
            await client.call_tool("t", timeout=5)
        assert server.methods().count("initialize") == 2


@pytest.mark.parametrize("breaks", [False, True])
async def test_a_stream_that_ends_before_its_answer_is_resumed(breaks: bool) -> None:
    asked: list[Heard] = []

    def answer(heard: Heard) -> Said:
        if heard.verb == "POST":
            asked.append(heard)
            return Said(pieces=[b"id: 7\nretry: 10\ndata: \n\n"], breaks=breaks)
        if heard.headers["last-event-id"] == "7":
            news = {
                "jsonrpc": "2.0",
                "method": "notifications/message",
                "params": {"level": "info", "data": 1},
            }
            return Said(pieces=[event(news, id=8)], breaks=breaks)
        return Said(pieces=[event(result(asked[0], content=DONE), id=9)])

    heard: list[Any] = []
    async with scripted(serving(answer), "legacy", handlers=Handlers(on_log=heard.append)) as (
        client,
        server,
    ):
        assert (await client.call_tool("t", timeout=5)).text == "done"
    resumed = [item.headers["last-event-id"] for item in server.heard if "last-event-id" in item.headers]
    assert (resumed, len(heard)) == (["7", "8"], 1)


async def test_a_stream_that_brings_nothing_new_is_given_up() -> None:
    nothing = b"id: 7\nretry: 1\ndata: \n\n"
    async with scripted(serving(lambda _: Said(pieces=[nothing])), "legacy") as (client, server):
        with pytest.raises(ConnectionClosed, match="ended without an answer"):
            await client.call_tool("t", timeout=10)
    resumed = [item for item in server.heard if "last-event-id" in item.headers]
    assert len(resumed) == session_client.MAX_RESUMES


async def test_an_answer_may_come_on_the_servers_own_stream() -> None:
    asked = anyio.Event()
    waiting: list[Heard] = []

    def late() -> Iterator[bytes | anyio.Event]:
        yield asked
        yield event(result(waiting[0], content=DONE))

    def answer(heard: Heard) -> Said:
        waiting.append(heard)
        asked.set()
        return Said(202)

    async with scripted(serving(answer, get=Said(pieces=late())), "legacy") as (client, _):
        assert (await client.call_tool("t", timeout=5)).text == "done"


async def test_what_the_server_asks_is_answered_in_a_request_of_its_own() -> None:
    answered = anyio.Event()
    answers: list[Any] = []

    async def roots() -> list[Root]:
        return [Root(uri="file:///a")]

    def script(heard: Heard) -> Any:
        if heard.message and "method" not in heard.message:
            answers.append(heard.message)
            if len(answers) == 3:
                answered.set()
            return Said(202)
        return inner(heard)

    def answer(heard: Heard) -> Said:
        asks = [
            event({"jsonrpc": "2.0", "id": id, "method": method})
            for id, method in [("a", "roots/list"), ("b", "ping"), ("c", "sampling/createMessage")]
        ]
        return Said(pieces=[*asks, answered, event(result(heard, content=DONE))])

    inner = serving(answer)
    async with scripted(script, "legacy", handlers=Handlers(list_roots=roots)) as (client, server):
        assert (await client.call_tool("t", timeout=5)).text == "done"
    assert server.heard[0].message["params"]["capabilities"] == {"roots": {}}
    by_id = {message["id"]: message for message in answers}
    assert by_id["a"]["result"] == {"roots": [{"uri": "file:///a"}]}
    assert by_id["b"]["result"] == {}
    assert by_id["c"]["error"]["code"] == -32601


async def test_leaving_a_call_tells_the_server() -> None:
    never, told = anyio.Event(), anyio.Event()

    def script(heard: Heard) -> Any:
        if heard.method == "notifications/cancelled":
            told.set()
        return inner(heard)

    inner = serving(lambda _: Said(pieces=[b":\n\n", never]))
    async with scripted(script, "legacy") as (client, server):
        with pytest.raises(RequestTimedOut):
            await client.call_tool("t", timeout=0.2)
        await told.wait()
    (call,) = [heard for heard in server.heard if heard.method == "tools/call"]
    (cancelled,) = [heard for heard in server.heard if heard.method == "notifications/cancelled"]
    assert cancelled.message["params"]["requestId"] == call.message["id"]


async def test_the_servers_own_stream_is_opened_again_where_it_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_client, "FIRST_PAUSE_SECONDS", 0.01)
    never = anyio.Event()
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

    def answer(heard: Heard) -> Said:
        if heard.verb == "GET":
            return Said(pieces=[event(changed, id=2), never])
        return done(heard)

    script = serving(answer, get=Said(pieces=[b"id: 1\ndata: \n\n"], breaks=True))
    async with scripted(script, "legacy") as (client, _):
        async with client.subscribe(Filter(tools_list_changed=True)) as news:
            assert (await anext(news)).method == "notifications/tools/list_changed"
        never.set()


@pytest.mark.parametrize("status", [429, 503])
async def test_the_servers_own_stream_is_opened_as_soon_as_there_is_room(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(session_client, "FIRST_PAUSE_SECONDS", 0.01)
    listens, never = anyio.Event(), anyio.Event()
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    streams = iter([Said(status), Said(status), Said(pieces=[listens, event(changed), never])])

    def script(heard: Heard) -> Any:
        return next(streams, NO_STREAM) if heard.verb == "GET" else serving(done)(heard)

    async with scripted(script, "legacy") as (client, _):
        async with client.subscribe(Filter(tools_list_changed=True)) as news:
            listens.set()
            assert (await anext(news)).method == "notifications/tools/list_changed"
        never.set()


def test_no_server_makes_a_client_ask_without_a_pause() -> None:
    backoff = Backoff(1, 10)
    decoders = [EventDecoder(10) for _ in range(3)]
    decoders[0].retry_ms, decoders[1].retry_ms = 0, 200
    pauses = [session_client.pause(decoder, backoff) for decoder in decoders]
    assert pauses == [session_client.MIN_PAUSE_SECONDS, 0.2, 2]


async def test_an_error_is_an_error_in_whatever_way_it_comes() -> None:
    ways: Iterator[Callable[[Heard], Said]] = iter(
        [
            lambda heard: Said(400, error(heard, -5, "one")),
            lambda heard: Said(body=error(heard, -5, "two")),
            lambda _: Said(body={"jsonrpc": "2.0", "id": None, "error": {"code": -5, "message": "three"}}),
            lambda heard: Said(pieces=[event(error(heard, -5, "four"))]),
        ]
    )
    async with scripted(serving(lambda heard: next(ways)(heard)), "legacy") as (client, _):
        for word in ("one", "two", "three", "four"):
            with pytest.raises(WireError, match=word):
                await client.call_tool("t", timeout=5)


async def test_during_a_new_handshake_nothing_else_is_asked() -> None:
    shaken, goes_on = anyio.Event(), anyio.Event()

    async def script(heard: Heard) -> Said:
        if heard.headers.get("mcp-session-id") == "session-1" and heard.method == "tools/call":
            return Said(404)
        if heard.method == "notifications/initialized" and heard.headers["mcp-session-id"] == "session-2":
            shaken.set()
            await goes_on.wait()
        said: Said = inner(heard)
        return said

    inner: Any = serving(done)
    async with scripted(script, "legacy") as (client, server), anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: client.call_tool("first", timeout=5))
        await shaken.wait()
        tasks.start_soon(lambda: client.call_tool("second", timeout=5))
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        goes_on.set()
    sessions = [heard.headers["mcp-session-id"] for heard in server.heard if heard.method == "tools/call"]
    assert sessions == ["session-1", "session-2", "session-2"]


async def test_a_session_that_is_forgotten_while_nobody_asks_is_begun_anew() -> None:
    again = anyio.Event()

    def script(heard: Heard) -> Any:
        if heard.verb == "GET" and heard.headers["mcp-session-id"] == "session-1":
            return Said(404)
        if heard.verb == "GET":
            again.set()
        return inner(heard)

    inner = serving(done)
    async with scripted(script, "legacy") as (client, server):
        await again.wait()
        assert (await client.call_tool("t", timeout=5)).text == "done"
    assert server.methods().count("initialize") == 2


@pytest.mark.parametrize("as_error", [False, True])
async def test_a_session_that_cannot_be_begun_anew_just_now_is_begun_when_it_can(
    monkeypatch: pytest.MonkeyPatch, as_error: bool
) -> None:
    monkeypatch.setattr(session_client, "FIRST_PAUSE_SECONDS", 0.01)
    again, shakes = anyio.Event(), 0

    def script(heard: Heard) -> Any:
        nonlocal shakes
        if heard.method == "initialize":
            shakes += 1
            if shakes in (2, 3):
                return Said(503, error(heard, -32603, "Too many") if as_error else b"Service Unavailable")
        if heard.verb == "GET" and heard.headers["mcp-session-id"] == "session-1":
            return Said(404)
        if heard.verb == "GET":
            again.set()
        return inner(heard)

    inner = serving(done)
    async with scripted(script, "legacy"):
        with anyio.fail_after(30):
            await again.wait()
    assert shakes == 4


async def test_what_the_server_no_longer_wants_to_know_is_not_answered() -> None:
    asked, left = anyio.Event(), anyio.Event()

    async def roots() -> list[Root]:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            left.set()
        return []

    def answer(heard: Heard) -> Said:
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "r"}}
        ask = {"jsonrpc": "2.0", "id": "r", "method": "roots/list"}
        return Said(pieces=[event(ask), asked, event(cancelled), left, event(result(heard, content=DONE))])

    async with scripted(serving(answer), "legacy", handlers=Handlers(list_roots=roots)) as (client, server):
        assert (await client.call_tool("t", timeout=5)).text == "done"
    assert all(heard.message is None or "method" in heard.message for heard in server.heard)


async def test_a_handler_that_fails_is_an_error_to_the_server_and_says_nothing_of_why() -> None:
    answered = anyio.Event()

    async def fail() -> list[Root]:
        raise RuntimeError("a secret")

    def script(heard: Heard) -> Any:
        if heard.message and "error" in heard.message:
            answered.set()
            return Said(202)
        return inner(heard)

    ask = {"jsonrpc": "2.0", "id": "r", "method": "roots/list"}
    inner = serving(lambda heard: Said(pieces=[event(ask), answered, event(result(heard, content=DONE))]))
    async with scripted(script, "legacy", handlers=Handlers(list_roots=fail)) as (client, server):
        assert (await client.call_tool("t", timeout=5)).text == "done"
    (refused,) = [heard.message for heard in server.heard if heard.message and "error" in heard.message]
    assert (refused["error"]["code"], "secret" in str(refused)) == (-32603, False)


async def test_a_new_handshake_whose_caller_gives_up_is_made_by_the_next_one() -> None:
    reached = anyio.Event()

    def answer(heard: Heard) -> Said:
        if heard.headers["mcp-session-id"] == "session-1":
            return Said(404, error(heard, -32001, "Session not found"))
        return done(heard)

    shakes = serving(answer)

    def script(heard: Heard) -> Any:
        if heard.method == "notifications/initialized" and heard.headers["mcp-session-id"] == "session-2":
            reached.set()
            return Said(202, pieces=[anyio.Event()])
        return shakes(heard)

    async with scripted(script, "legacy") as (client, server):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: client.call_tool("t", timeout=None))
            await reached.wait()
            tasks.cancel_scope.cancel()
        await client.call_tool("t", timeout=5)
    assert server.methods().count("initialize") == 3
    assert server.methods().count("notifications/initialized") == 3
