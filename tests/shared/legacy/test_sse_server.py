"""The HTTP of 2024-11-05, over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urljoin

import anyio
import httpx2
import pytest

from ragmcp.http.asgi import Endpoint
from ragmcp.http.exchange import Receive, Scope, Send
from ragmcp.protocol.schema.subscriptions import list_changed
from ragmcp.server.core import Server
from tests.support.http_server import EventSource, ObservedApp, limits, request, served
from tests.support.mcp_server import TOOLS, make_server


class OldClient:
    """Listens on /sse and posts to where it was told."""

    def __init__(self, http: httpx2.AsyncClient, events: EventSource, messages: str) -> None:
        self.http = http
        self.events = events
        self.messages = messages

    async def post(self, message: Any) -> httpx2.Response:
        return await self.http.post(self.messages, json=message)

    async def ask(self, method: str, params: Any = None, *, id: int = 1) -> Any:
        assert (await self.post(request(method, params, id=id))).status_code == 202
        return await self.events.message()

    async def initialize(self) -> Any:
        client = {"name": "old", "version": "0"}
        params = {"protocolVersion": "2024-11-05", "clientInfo": client, "capabilities": {}}
        return await self.ask("initialize", params)


class Site(NamedTuple):
    """An endpoint, the application that serves it, and where."""

    endpoint: Endpoint
    app: ObservedApp
    url: str


@asynccontextmanager
async def site(server: Server | None = None, **changes: Any) -> AsyncIterator[Site]:
    async with Endpoint(server or make_server(), limits(**changes)) as endpoint:

        async def routes(scope: Scope, receive: Receive, send: Send) -> None:
            app = {"/old/sse": endpoint.sse, "/old/messages": endpoint.messages}[scope["path"]]
            await app(scope, receive, send)

        async with served(app := ObservedApp(routes)) as url:
            yield Site(endpoint, app, f"{url}/old/")


@asynccontextmanager
async def old_client(url: str) -> AsyncIterator[OldClient]:
    async with (
        httpx2.AsyncClient(timeout=10, trust_env=False) as http,
        http.stream("GET", url + "sse", headers={"accept": "text/event-stream"}) as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream"
        events = EventSource(response)
        first = await events.next()
        assert first
        assert first["event"] == "endpoint"
        assert first["data"].startswith("/old/messages?session_id=")
        yield OldClient(http, events, urljoin(url, first["data"]))


async def test_a_conversation_goes_back_and_forth() -> None:
    async with site() as (endpoint, _, url), old_client(url) as client:
        answer = await client.initialize()
        assert answer["result"]["protocolVersion"] == "2024-11-05"
        answer = await client.ask("tools/call", {"name": "Echo", "arguments": {"text": "a\nb"}}, id=2)
        assert answer["id"] == 2
        assert answer["result"]["content"][0]["text"] == "a\nb"
        assert endpoint.session_count == 1
        assert endpoint.stream_count == 1


async def test_a_message_may_be_written_over_several_lines() -> None:
    async with site() as (_, _, url), old_client(url) as client:
        body = b'{"jsonrpc":"2.0",\r\n"id":1,\n"method":"ping"}\n'
        posted = await client.http.post(
            client.messages, content=body, headers={"content-type": "application/json"}
        )
        assert posted.status_code == 202
        assert (await client.events.message())["result"] == {}


async def test_two_clients_do_not_hear_each_other() -> None:
    async with site() as (_, _, url), old_client(url) as one, old_client(url) as other:
        assert (await one.ask("ping", id=1))["id"] == 1
        assert (await other.ask("ping", id=2))["id"] == 2


async def test_news_come_unasked() -> None:
    server = Server("s", "1", TOOLS)
    async with site(server) as (_, _, url), old_client(url) as client:
        await client.initialize()
        await client.ask("ping")
        server.announce(list_changed("tools"))
        assert (await client.events.message())["method"] == "notifications/tools/list_changed"


async def test_a_client_that_hangs_up_leaves_nothing_behind() -> None:
    async with site() as (endpoint, app, url):
        async with old_client(url) as client:
            messages = client.messages
        await app.until(lambda: endpoint.session_count == 0)
        async with httpx2.AsyncClient(trust_env=False) as http:
            assert (await http.post(messages, json=request("ping"))).status_code == 404
        assert endpoint.stream_count == 0


async def test_the_end_of_the_server_ends_the_stream() -> None:
    async with site() as (endpoint, _, url), old_client(url) as client:
        endpoint.leave()
        assert await client.events.next() is None


async def test_silence_is_filled_with_comments() -> None:
    async with site(keep_alive_seconds=0.02) as (_, _, url), old_client(url) as client:
        assert await client.events.next() == {"": ""}


@pytest.mark.parametrize(
    "query", ["", "?session_id=", "?session_id=x", "?x=1", "?" + "&".join("abcdefghijkl")]
)
async def test_a_message_for_nobody_is_refused(query: str) -> None:
    async with site() as (_, _, url), httpx2.AsyncClient(trust_env=False) as http:
        response = await http.post(f"{url}messages{query}", json=request("ping"))
    assert response.status_code == 404
    assert response.json()["error"]["data"]["errorCode"] == "SESSION_NOT_FOUND"


async def test_each_half_has_one_method() -> None:
    async with site() as (_, _, url), httpx2.AsyncClient(trust_env=False) as http:
        for response, allowed in [
            (await http.post(url + "sse", json={}), "GET"),
            (await http.get(url + "messages"), "POST"),
        ]:
            assert response.status_code == 405
            assert response.headers["allow"] == allowed


async def test_too_many_are_refused() -> None:
    async with site(sessions=1) as (_, _, url), old_client(url), httpx2.AsyncClient(trust_env=False) as http:
        response = await http.get(url + "sse")
        assert response.status_code == 503


async def test_an_answer_that_is_due_leaves_before_the_server_does() -> None:
    async with site() as (endpoint, _, url), old_client(url) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.post, request("ping"))
            assert (await client.events.message())["result"] == {}
        endpoint.leave()
        assert await client.events.next() is None
