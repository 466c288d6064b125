"""What the client need not ask again."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from ragmcp.client import cache as cache_module
from ragmcp.client.cache import ResultCache
from ragmcp.client.handlers import Handlers
from ragmcp.errors import UnreadableAnswer, WireError
from ragmcp.protocol.schema.base import CacheableResult
from ragmcp.protocol.schema.input import Elicit, ElicitResult
from ragmcp.protocol.schema.subscriptions import list_changed, resource_updated
from tests.support.scripted import connected, failure, success

KEY = ("tools/list", "")
FRESH = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private"}


def serving(message: dict[str, Any]) -> list[Any]:
    match message["method"]:
        case "tools/list":
            cursor = message["params"].get("cursor")
            return [success(message, tools=[], **FRESH, **({} if cursor else {"nextCursor": "2"}))]
        case "resources/read":
            return [success(message, contents=[{"uri": message["params"]["uri"], "text": "x"}], **FRESH)]
    return [success(message, resources=[], ttlMs=0, cacheScope="private")]


async def test_what_is_fresh_is_not_asked_for_again() -> None:
    async with connected(serving) as (client, server):
        for _ in range(3):
            await client.list_tools()
            await client.read_resource("a:1")
            await client.read_resource("a:2")
            await client.list_resources()
    asked = server.methods()
    assert asked.count("tools/list") == 2  # Two pages.
    assert asked.count("resources/read") == 2
    assert asked.count("resources/list") == 3


@pytest.mark.parametrize(
    ("method", "params", "asked_again"),
    [
        ("notifications/tools/list_changed", {}, ["tools/list", "tools/list"]),
        ("notifications/resources/updated", {"uri": "a:1"}, ["resources/read"]),
        ("notifications/resources/updated", {"uri": "a:2"}, []),
        ("notifications/prompts/list_changed", {}, []),
    ],
)
async def test_news_make_stale_what_they_are_about(
    method: str, params: dict[str, Any], asked_again: list[str]
) -> None:
    async with connected(serving) as (client, server):
        await client.list_tools()
        await client.read_resource("a:1")
        before = len(server.heard)
        server.say({"jsonrpc": "2.0", "method": method, "params": params})
        await client.list_resources()  # Whose answer comes after the news.
        await client.list_tools()
        await client.read_resource("a:1")
    assert server.methods()[before:] == ["resources/list", *asked_again]


async def test_an_answer_that_was_outdated_on_its_way_is_not_kept() -> None:
    def script(message: dict[str, Any]) -> list[Any]:
        changed = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a:1"}}
        return [changed, *serving(message)]

    async with connected(script) as (client, server):
        await client.read_resource("a:1")
        await client.read_resource("a:1")
    assert len(server.heard) == 2


async def test_what_took_the_users_input_is_not_kept() -> None:
    async def accept(_: Elicit) -> ElicitResult:
        return ElicitResult(action="accept")

    def script(message: dict[str, Any]) -> list[Any]:
        if "inputResponses" in message["params"]:
            return serving(message)
        ask = {"method": "elicitation/create", "params": {"message": "?"}}
        return [success(message, resultType="input_required", inputRequests={"a": ask})]

    async with connected(script, handlers=Handlers(elicit=accept)) as (client, server):
        await client.read_resource("a:1")
        await client.read_resource("a:1")
    assert len(server.heard) == 4


async def test_a_cursor_that_no_longer_holds_begins_the_list_anew() -> None:
    def script(message: dict[str, Any]) -> list[Any]:
        if "cursor" not in message["params"]:
            cursors.append(f"c{len(cursors)}")
            return [success(message, tools=[], nextCursor=cursors[-1], **FRESH)]
        if message["params"]["cursor"] == "c0":
            return [failure(message, -32602, "no such cursor")]
        return [success(message, tools=[], ttlMs=0, cacheScope="public")]

    cursors: list[str] = []
    async with connected(script) as (client, server):
        await client.list_tools()
    assert len(server.heard) == 4


async def test_a_list_that_refuses_its_first_page_is_not_asked_twice() -> None:
    async with connected(lambda message: [failure(message, -32602)]) as (client, server):
        with pytest.raises(WireError):
            await client.list_tools()
    assert len(server.heard) == 1


async def test_a_list_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragmcp.client.core.MAX_PAGES", 5)
    async with connected(lambda message: [success(message, tools=[], nextCursor="on")]) as (client, _):
        with pytest.raises(UnreadableAnswer, match="within 5 pages"):
            await client.list_tools()


def kept(cache: ResultCache, ttl_ms: int, size: int = 1, key: cache_module.Key = KEY) -> bool:
    cache.keep(key, CacheableResult(ttl_ms=ttl_ms), size, cache.age)
    return cache.find(key, CacheableResult) is not None


@pytest.mark.parametrize(("ttl_ms", "is_kept"), [(60_000, True), (0, False), (-5, False)])
def test_freshness_is_what_the_server_says(ttl_ms: int, is_kept: bool) -> None:
    assert kept(ResultCache(), ttl_ms) is is_kept


async def test_what_was_fresh_becomes_stale() -> None:
    cache = ResultCache()
    assert kept(cache, 10)
    with anyio.fail_after(60):
        while cache.find(KEY, CacheableResult):  # Nothing tells; it has to be looked at.
            await anyio.lowlevel.checkpoint()


def test_the_oldest_goes_when_there_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "CACHE_BYTES", 10)
    cache = ResultCache()
    assert not kept(cache, 1000, 11)
    for number in range(5):
        assert kept(cache, 1000, 4, ("resources/read", str(number)))
    found = [cache.find(("resources/read", str(number)), CacheableResult) is not None for number in range(5)]
    assert found == [False, False, False, True, True]


def test_what_is_asked_before_the_news_is_not_kept_after_them() -> None:
    cache = ResultCache()
    age = cache.age
    cache.invalidate(list_changed("tools"))
    cache.keep(KEY, CacheableResult(ttl_ms=1000), 1, age)
    assert cache.find(KEY, CacheableResult) is None
    cache.invalidate(resource_updated("a:1"))
