"""Listening to a server, through breaks and to the end.

Covers `ragmcp.legacy.client`.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from ragmcp.client import subscriptions as subscriptions_module
from ragmcp.client.client import Client
from ragmcp.errors import ConnectionClosed, RequestTimedOut, WireError
from ragmcp.protocol.schema.subscriptions import Filter
from tests.support.http_script import Heard, Said, error, event, initialized, result
from tests.support.http_script import scripted as over_http
from tests.support.scripted import INITIALIZED, connected, failure, success

TOOLS = Filter(tools_list_changed=True)
CHANGED = "notifications/tools/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def notification(method: str, subscription: Any = None, **params: Any) -> Any:
    meta = {} if subscription is None else {"_meta": {"io.modelcontextprotocol/subscriptionId": subscription}}
    return {"jsonrpc": "2.0", "method": method, "params": {**params, **meta}}


def agreeing(message: dict[str, Any]) -> list[Any]:
    if message["method"] == "subscriptions/listen":
        wanted = message["params"]["notifications"]
        return [notification(ACKNOWLEDGED, message["id"], notifications=wanted)]
    return []


async def test_news_go_to_whom_their_id_means() -> None:
    async with (
        connected(agreeing) as (client, server),
        client.subscribe(TOOLS) as first,
        client.subscribe(TOOLS) as second,
    ):
        one, two = (message["id"] for message in server.heard)
        server.say(notification(CHANGED, 999))
        server.say(notification(CHANGED, two))
        assert (await anext(second)).method == CHANGED
        with anyio.move_on_after(0.05) as patience:
            await anext(first)
        assert patience.cancelled_caught
        server.say(notification(CHANGED, one))
        assert (await anext(first)).method == CHANGED
    assert server.methods().count("notifications/cancelled") == 2


async def test_what_the_server_will_not_tell_is_known() -> None:
    def script(message: dict[str, Any]) -> list[Any]:
        return [notification(ACKNOWLEDGED, message["id"], notifications={})] if "id" in message else []

    async with connected(script) as (client, _), client.subscribe(TOOLS) as news:
        assert (news.requested, news.honoured) == (TOOLS, Filter())


async def test_a_server_that_cannot_tell_anything_says_so() -> None:
    async with connected(lambda message: [failure(message, -32601)]) as (client, _):
        with pytest.raises(WireError):
            async with client.subscribe(TOOLS):
                pass


async def test_a_server_that_does_not_agree_in_time_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscriptions_module, "ACKNOWLEDGE_SECONDS", 0.05)
    async with connected(lambda _: []) as (client, _):
        with pytest.raises(RequestTimedOut):
            async with client.subscribe(TOOLS):
                pass


async def test_the_servers_own_end_is_the_end_of_the_news() -> None:
    async with connected(agreeing) as (client, server), client.subscribe(TOOLS) as news:
        id = server.heard[0]["id"]
        server.say(notification(CHANGED, id))
        server.say(success(server.heard[0], resultType="complete"))
        assert [change.method async for change in news] == [CHANGED]


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_the_end_of_the_connection_is_told_to_who_listens(era: Any) -> None:
    def script(message: dict[str, Any]) -> list[Any] | None:
        if message["method"] == "tools/call":
            return None
        return [success(message, **INITIALIZED)] if message["method"] == "initialize" else agreeing(message)

    async with connected(script, era) as (client, _), client.subscribe(TOOLS) as news:
        with pytest.raises(ConnectionClosed):
            await client.call_tool("die", timeout=5)
        with pytest.raises(ConnectionClosed):
            await anext(news)


async def test_what_the_body_raises_comes_out_as_it_is() -> None:
    async with connected(agreeing) as (client, _):
        with pytest.raises(ZeroDivisionError):
            async with client.subscribe(TOOLS):
                raise ZeroDivisionError


async def test_a_stream_that_breaks_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions_module, "FIRST_PAUSE_SECONDS", 0.01)
    never = anyio.Event()

    def script(heard: Heard) -> Said:
        if heard.method == "tools/list":
            return Said(body=result(heard, tools=[], ttlMs=60_000, cacheScope="public"))
        acknowledged = event(notification(ACKNOWLEDGED, heard.message["id"], notifications={}))
        listens = [item for item in server.heard if item.method == "subscriptions/listen"]
        if len(listens) < 3:
            return Said(pieces=[acknowledged], breaks=len(listens) == 1)
        return Said(pieces=[acknowledged, event(notification(CHANGED, heard.message["id"])), never])

    async with over_http(script) as (client, server):
        await client.list_tools()
        async with client.subscribe(TOOLS) as news:
            assert (await anext(news)).method == CHANGED
            # What was kept may have been outdated while nobody listened.
            await client.list_tools()
    assert server.methods().count("tools/list") == 2


async def test_news_that_are_refused_after_a_break_end_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscriptions_module, "FIRST_PAUSE_SECONDS", 0.01)

    def script(heard: Heard) -> Said:
        if len(server.heard) > 1:
            return Said(400, error(heard, -32602, "no more"))
        return Said(pieces=[event(notification(ACKNOWLEDGED, heard.message["id"], notifications={}))])

    async with over_http(script) as (client, server), client.subscribe(TOOLS) as news:
        with pytest.raises(WireError, match="no more"):
            await anext(news)


async def test_a_legacy_server_is_asked_to_watch_once_for_all_and_then_no_more() -> None:
    def script(message: dict[str, Any]) -> list[Any]:
        if message["method"] == "initialize":
            return [success(message, **INITIALIZED)]
        return [success(message)] if "id" in message else []

    notes = Filter(resource_subscriptions=["a:1", "a:2"])
    async with (
        connected(script, "legacy") as (client, server),
        client.subscribe(notes),
        client.subscribe(Filter(resource_subscriptions=["a:2"])) as news,
    ):
        server.say(notification("notifications/resources/updated", uri="a:1"))
        server.say(notification("notifications/resources/updated", uri="a:2"))
        assert (await anext(news)).subject == "a:2"
    told = [
        (message["method"].rpartition("/")[2], message["params"]["uri"])
        for message in server.heard
        if message["method"].startswith("resources/")
    ]
    assert told == [
        ("subscribe", "a:1"),
        ("subscribe", "a:2"),
        ("unsubscribe", "a:1"),
        ("unsubscribe", "a:2"),
    ]


class Watched:
    """A legacy server that keeps the first answers back until `may_answer`, and what it was asked."""

    def __init__(self, held: tuple[str, str, str]) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.holding = anyio.Event()
        self.may_answer = anyio.Event()
        self._held = held
        self._sessions = 0

    def __call__(self, heard: Heard) -> Any:
        session = heard.headers.get("mcp-session-id", "")
        if heard.method == "initialize":
            self._sessions += 1
            return Said(body=initialized(heard), headers={"mcp-session-id": str(self._sessions)})
        if heard.verb != "POST" or "id" not in heard.message:
            return Said(202 if heard.verb == "POST" else 405)
        if heard.method == "tools/call" and session == "1":
            return Said(404, error(heard, -32001, "Session not found"))
        if heard.method.startswith("resources/"):
            asked = (session, heard.method.removeprefix("resources/"), heard.message["params"]["uri"])
            self.asked.append(asked)
            if asked == self._held and not self.holding.is_set():
                return self._later(heard)
        return Said(body=result(heard, content=[]))

    async def _later(self, heard: Heard) -> Said:
        self.holding.set()
        await self.may_answer.wait()
        return Said(body=result(heard))


async def listen(client: Client, *uris: str, settled: anyio.Event | None = None) -> None:
    """Until it is cancelled."""
    async with client.subscribe(Filter(resource_subscriptions=[*uris])):
        if settled is not None:
            settled.set()
        await anyio.sleep_forever()


async def test_who_gives_up_while_it_subscribes_takes_nothing_from_others() -> None:
    server = Watched(held=("1", "subscribe", "a"))
    async with (
        over_http(server, "legacy") as (client, _),
        client.subscribe(Filter(resource_subscriptions=["b"])),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listen, client, "a", "b")
        await server.holding.wait()
        tasks.cancel_scope.cancel()
    server.may_answer.set()
    assert [asked for asked in server.asked if asked[2] == "b"] == [
        ("1", "subscribe", "b"),
        ("1", "unsubscribe", "b"),
    ]
    assert ("1", "unsubscribe", "a") not in server.asked


async def test_a_subscription_whose_first_listener_gave_up_is_made_for_the_second() -> None:
    server = Watched(held=("1", "subscribe", "a"))
    async with over_http(server, "legacy") as (client, _), anyio.create_task_group() as tasks:
        settled, first = anyio.Event(), anyio.CancelScope()

        async def give_up() -> None:
            with first:
                await listen(client, "a")

        tasks.start_soon(give_up)
        await server.holding.wait()
        tasks.start_soon(lambda: listen(client, "a", settled=settled))
        await anyio.wait_all_tasks_blocked()
        assert not settled.is_set()
        first.cancel()
        await settled.wait()
        server.may_answer.set()
        assert server.asked == [("1", "subscribe", "a")] * 2
        tasks.cancel_scope.cancel()


async def test_who_begins_to_listen_during_a_new_handshake_does_not_disturb_it() -> None:
    server = Watched(held=("2", "subscribe", "a"))
    async with over_http(server, "legacy") as (client, _), anyio.create_task_group() as tasks:
        settled, called = anyio.Event(), anyio.Event()

        async def call() -> None:
            await client.call_tool("t", timeout=5)
            called.set()

        tasks.start_soon(lambda: listen(client, "a", "b", settled=settled))
        await settled.wait()
        tasks.start_soon(call)
        await server.holding.wait()
        tasks.start_soon(listen, client, "c")
        await anyio.wait_all_tasks_blocked()
        server.may_answer.set()
        await called.wait()
        tasks.cancel_scope.cancel()
    assert [asked for asked in server.asked if asked[:2] == ("2", "subscribe")][:2] == [
        ("2", "subscribe", "a"),
        ("2", "subscribe", "b"),
    ]
