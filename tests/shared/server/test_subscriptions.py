"""News: modern clients listen for what they choose, legacy ones hear of lists and what they subscribed to."""

from __future__ import annotations

from typing import Any

import pytest

from ragmcp.legacy import server as legacy_server
from ragmcp.protocol.eras import LEGACY_REVISIONS
from ragmcp.protocol.schema.subscriptions import Change, list_changed, resource_updated
from ragmcp.server.call import Call
from ragmcp.server.core import Server
from ragmcp.server.subscriptions import Broadcast
from ragmcp.server.tools import tool
from tests.shared.server.test_prompts import hello
from tests.shared.server.test_resources import Shelf
from tests.support.raw_mcp import RawClient, raw_client
from tests.support.schemas import MODERN

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"


@tool()
async def new_tool(_: Call) -> str:
    """Comes and goes."""
    return "new"


def server() -> Server:
    return Server("news", "1", [], resources=Shelf(), prompts=[hello])


async def listen(client: RawClient, id: int | str = "listen", **wanted: Any) -> Any:
    """What the server says it will tell."""
    acknowledged = await client.request("subscriptions/listen", {"notifications": wanted}, id=id)
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["_meta"] == {SUBSCRIPTION_ID: id}
    return acknowledged["params"]["notifications"]


# Modern


async def test_a_listener_hears_what_it_chose_and_whose_news_it_is() -> None:
    news = server()
    async with raw_client(news, MODERN) as client:
        assert await listen(client, id=7, toolsListChanged=True) == {"toolsListChanged": True}
        news.announce(list_changed("prompts"))
        news.announce(resource_updated("test://book/1"))
        news.tools[new_tool.name] = new_tool
        news.announce(list_changed("tools"))
        message = await client.receive()
        assert message["method"] == "notifications/tools/list_changed"
        assert message["params"] == {"_meta": {SUBSCRIPTION_ID: 7}}
        assert [tool["name"] for tool in (await client.request("tools/list"))["result"]["tools"]] == [
            "new_tool"
        ]


async def test_a_listener_hears_of_the_resources_it_named() -> None:
    news = server()
    async with raw_client(news, MODERN) as client:
        wanted: dict[str, Any] = {
            "resourceSubscriptions": ["test://book/1", "test://book/2"],
            "resourcesListChanged": True,
        }
        assert await listen(client, **wanted) == wanted
        for uri in ("test://book/3", "test://book/2", "test://book/1"):
            news.announce(resource_updated(uri))
        news.announce(list_changed("resources"))
        assert (await client.receive())["params"]["uri"] == "test://book/2"
        assert (await client.receive())["params"]["uri"] == "test://book/1"
        assert (await client.receive())["method"] == "notifications/resources/list_changed"


async def test_a_server_promises_only_what_it_has() -> None:
    async with raw_client(Server("tools only", "1", []), MODERN) as client:
        wanted: dict[str, Any] = {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourceSubscriptions": ["test://x"],
        }
        assert await listen(client, **wanted) == {"toolsListChanged": True}


async def test_a_no_is_no_wish() -> None:
    news = server()
    async with raw_client(news, MODERN) as client:
        await listen(client, toolsListChanged=False, promptsListChanged=True)
        news.announce(list_changed("tools"))
        news.announce(list_changed("prompts"))
        assert (await client.receive())["method"] == "notifications/prompts/list_changed"


async def test_several_subscriptions_are_told_apart() -> None:
    news = server()
    async with raw_client(news, MODERN) as client:
        await listen(client, id="a", toolsListChanged=True)
        await listen(client, id="b", toolsListChanged=True)
        news.announce(list_changed("tools"))
        ids = {(await client.receive())["params"]["_meta"][SUBSCRIPTION_ID] for _ in range(2)}
        assert ids == {"a", "b"}


async def test_a_cancelled_subscription_is_silent() -> None:
    news = server()
    async with raw_client(news, MODERN) as client:
        await listen(client, toolsListChanged=True)
        client.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "listen"}}
        )
        await client.request("tools/list", id="before")
        news.announce(list_changed("tools"))
        assert (await client.request("tools/list", id="after"))["id"] == "after"


async def test_a_subscription_ends_with_a_result_when_the_connection_does() -> None:
    async with raw_client(server(), MODERN) as client:
        await listen(client, id="last", toolsListChanged=True)
        client.close()
        ended = await client.receive()
        assert ended["id"] == "last"
        assert ended["result"]["resultType"] == "complete"
        assert ended["result"]["_meta"][SUBSCRIPTION_ID] == "last"


@pytest.mark.parametrize(
    "wanted", [None, 5, {"toolsListChanged": "yes"}, {"resourceSubscriptions": "test://x"}]
)
async def test_an_unreadable_wish_is_refused(wanted: Any) -> None:
    async with raw_client(server(), MODERN) as client:
        answer = await client.request("subscriptions/listen", {"notifications": wanted})
        assert answer["error"]["code"] == -32602


async def test_tasks_can_be_followed_only_with_the_extension() -> None:
    async with raw_client(server(), MODERN) as client:
        answer = await client.request("subscriptions/listen", {"notifications": {"taskIds": ["x"]}})
        assert answer["error"]["code"] == -32021


# Legacy


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_legacy_client_hears_of_changed_lists_unasked(revision: str) -> None:
    news = server()
    async with raw_client(news, revision) as client:
        await client.request("ping")
        for what in ("tools", "prompts", "resources"):
            news.announce(list_changed(what))
            message = await client.receive()
            assert message["method"] == f"notifications/{what}/list_changed"
            assert SUBSCRIPTION_ID not in str(message)


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_legacy_client_hears_of_the_resources_it_subscribed_to(revision: str) -> None:
    news = server()
    async with raw_client(news, revision) as client:
        for uri in ("test://book/1", "test://book/2"):
            assert (await client.request("resources/subscribe", {"uri": uri}))["result"] == {}
        assert (await client.request("resources/unsubscribe", {"uri": "test://book/1"}))["result"] == {}
        for uri in ("test://book/1", "test://book/2", "test://book/3"):
            news.announce(resource_updated(uri))
        assert (await client.receive())["params"] == {"uri": "test://book/2"}
        assert (await client.request("ping"))["result"] == {}


async def test_nothing_is_told_before_the_handshake() -> None:
    news = server()
    async with raw_client(news) as client:
        await client.request("ping")
        news.announce(list_changed("tools"))
        await client.initialize("2025-11-25")
        assert (await client.request("ping", id="next"))["id"] == "next"


async def test_a_legacy_client_watches_a_bounded_number_of_resources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(legacy_server, "MAX_WATCHED", 2)
    async with raw_client(server(), "2025-11-25") as client:
        for uri in ("test://1", "test://2", "test://1"):
            assert (await client.request("resources/subscribe", {"uri": uri}))["result"] == {}
        refused = (await client.request("resources/subscribe", {"uri": "test://3"}))["error"]
        assert (refused["code"], refused["data"]["details"]["path"]) == (-32602, "$.uri")


@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
async def test_the_modern_era_subscribes_otherwise(method: str) -> None:
    async with raw_client(server(), MODERN) as client:
        assert (await client.request(method, {"uri": "test://x"}))["error"]["code"] == -32601


async def test_the_legacy_era_cannot_listen() -> None:
    async with raw_client(server(), "2025-11-25") as client:
        assert (await client.request("subscriptions/listen", {"notifications": {}}))["error"][
            "code"
        ] == -32601


# Listeners


async def test_a_slow_listener_keeps_the_latest_news_of_each_subject_only() -> None:
    broadcast = Broadcast()
    with broadcast.subscribed(lambda _: True) as queue:
        for n in range(1000):
            broadcast.publish(Change("m", "one", {"n": n}))
            broadcast.publish(Change("m", "two", {"n": n}))
        assert [(await queue.get()).params for _ in range(2)] == [{"n": 999}, {"n": 999}]
