"""Listening to a server, through breaks and to the end."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from ragmcp.client import subscriptions as subscriptions_module
from ragmcp.errors import ConnectionClosed, RequestTimedOut, WireError
from ragmcp.protocol.schema.subscriptions import Filter
from tests.support.http_script import Heard, Said, error, event
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


async def test_a_subscription_ends_with_its_block() -> None:
    async with connected(agreeing) as (client, _):
        async with client.subscribe(TOOLS) as changes:
            pass
        with anyio.fail_after(10):
            assert [change async for change in changes] == []


async def test_what_is_for_another_subscription_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its acknowledgement nor its changes, over one connection."""
    monkeypatch.setattr(subscriptions_module, "ACKNOWLEDGE_SECONDS", 0.2)

    async with (
        connected(lambda _: agreeing(server.heard[0])) as (client, server),
        client.subscribe(TOOLS) as news,
    ):
        with pytest.raises(RequestTimedOut):
            async with client.subscribe(TOOLS):
                pass
        other, own = server.heard[1]["id"], server.heard[0]["id"]
        server.say(notification(CHANGED, other))
        server.say(notification(ACKNOWLEDGED, own, notifications={}))
        server.say(notification("notifications/prompts/list_changed", own))
        server.say(notification(CHANGED, own, mine=True))
        assert (await anext(news)).params == {"mine": True}


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
        acknowledged = event(notification(ACKNOWLEDGED, heard.message["id"], notifications={}))
        listens = [item for item in server.heard if item.method == "subscriptions/listen"]
        if len(listens) < 3:
            return Said(pieces=[acknowledged], breaks=len(listens) == 1)
        return Said(pieces=[acknowledged, event(notification(CHANGED, heard.message["id"])), never])

    async with over_http(script) as (client, server), client.subscribe(TOOLS) as news:
        assert (await anext(news)).method == CHANGED


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
