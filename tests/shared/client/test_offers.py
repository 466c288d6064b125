"""Everything a server can offer, asked for in both eras, over a connection and in three ways over HTTP."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from ragmcp.client.features import Client, EraName
from ragmcp.client.handlers import Handlers
from ragmcp.errors import RequestTimedOut, UnreadableAnswer, WireError
from ragmcp.http.asgi import Endpoint
from ragmcp.http.connect import open_http
from ragmcp.http.exchange import App, Receive, Scope, Send
from ragmcp.protocol.schema.completion import PromptReference
from ragmcp.protocol.schema.input import Elicit, ElicitResult, Root, Sample, SamplingResult
from ragmcp.protocol.schema.logging import LogMessage
from ragmcp.protocol.schema.subscriptions import Filter, list_changed, resource_updated
from tests.support.http_server import LIMITS, served
from tests.support.in_memory import open_memory
from tests.support.mcp_offers import WELCOME
from tests.support.mcp_server import make_whole_server

WAYS: list[tuple[str, EraName]] = [
    ("memory", "modern"),
    ("memory", "legacy"),
    ("http", "modern"),
    ("http", "legacy"),
    ("sse", "legacy"),
]
everywhere = pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(way))


def routed(endpoint: Endpoint) -> App:
    """Its three applications, each at its path."""
    apps: dict[str, App] = {"/mcp": endpoint, "/sse": endpoint.sse, "/messages": endpoint.messages}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await apps[scope["path"]](scope, receive, send)

    return app


@asynccontextmanager
async def connected(way: tuple[str, EraName], **handlers: Any) -> AsyncIterator[Client]:
    transport, era = way
    server = make_whole_server()
    with anyio.fail_after(60):
        if transport == "memory":
            async with open_memory(server, era=era, handlers=Handlers(**handlers)) as client:
                yield client
            return
        async with (
            Endpoint(server, LIMITS) as endpoint,
            served(routed(endpoint)) as url,
            open_http(
                f"{url}/{'sse' if transport == 'sse' else 'mcp'}",
                client_name="tests",
                client_version="0",
                message_bytes=2**20,
                era=era,
                handlers=Handlers(**handlers),
            ) as client,
        ):
            yield client


async def accept(form: Elicit) -> ElicitResult:
    assert form.message == "What is your name?"
    return ElicitResult(action="accept", content={"name": "Ada"})


async def think(question: Sample) -> SamplingResult:
    assert question.max_tokens == 100
    return SamplingResult(role="assistant", content={"type": "text", "text": "four"}, model="tiny")


async def roots() -> list[Root]:
    return [Root(uri="file:///home"), Root(uri="file:///srv")]


@everywhere
async def test_lists_are_read_to_their_last_page(way: tuple[str, EraName]) -> None:
    async with connected(way) as client:
        assert [item.uri for item in await client.list_resources()] == [
            "note://welcome",
            "note://second",
            "note://third",
        ]
        (template,) = await client.list_resource_templates()
        assert template.uri_template == "note://named/{name}"
        (prompt,) = await client.list_prompts()
        assert (prompt.name, [argument.name for argument in prompt.arguments or []]) == (
            "Summarize",
            ["topic", "tone"],
        )


@everywhere
async def test_what_is_there_is_read_and_what_is_not_is_an_error(way: tuple[str, EraName]) -> None:
    async with connected(way) as client:
        (contents,) = await client.read_resource("note://named/Ada")
        assert contents.text == "about Ada"
        with pytest.raises(WireError) as raised:
            await client.read_resource("other:thing")
        assert raised.value.error_code == "RESOURCE_NOT_FOUND"


@everywhere
async def test_prompts_are_made_and_arguments_completed(way: tuple[str, EraName]) -> None:
    async with connected(way) as client:
        (message,) = (await client.get_prompt("Summarize", {"topic": "bees"})).messages
        assert message.content.text == "Summarize bees, plain."  # type: ignore[union-attr]
        found = await client.complete(PromptReference(name="Summarize"), "tone", "p", {"topic": "bees"})
        assert found.values == ["plain", "playful", "poetic"]


@everywhere
async def test_a_server_may_ask_the_user_the_model_and_for_roots(way: tuple[str, EraName]) -> None:
    async with connected(way, elicit=accept, sample=think, list_roots=roots) as client:
        assert (await client.call_tool("Ask", timeout=10)).text == "accept: Ada"
        assert (await client.call_tool("Think", timeout=10)).text == "tiny: four"
        assert (await client.call_tool("Where", timeout=10)).text == "file:///home, file:///srv"


@everywhere
async def test_what_is_not_declared_is_not_asked_for(way: tuple[str, EraName]) -> None:
    async with connected(way) as client:
        with pytest.raises(WireError, match="elicitation"):
            await client.call_tool("Ask", timeout=10)


@everywhere
async def test_log_messages_come_from_the_level_that_was_set(way: tuple[str, EraName]) -> None:
    heard: list[LogMessage] = []
    async with connected(way, on_log=heard.append) as client:
        await client.set_log_level("error")
        await client.call_tool("Log", timeout=10)
        await client.set_log_level("debug")
        await client.call_tool("Log", timeout=10)
    assert [message.level for message in heard] == ["error", "debug", "info", "error"]
    assert (heard[2].data, heard[2].logger) == ({"said": "plainly"}, "tests")


@everywhere
async def test_a_client_that_takes_log_messages_gets_them_in_every_era(way: tuple[str, EraName]) -> None:
    heard: list[LogMessage] = []
    async with connected(way, on_log=heard.append) as client:
        await client.call_tool("Log", timeout=10)
    assert [message.level for message in heard] == ["info", "error"]


@everywhere
async def test_a_ping_is_answered(way: tuple[str, EraName]) -> None:
    async with connected(way) as client:
        await client.ping()


@everywhere
async def test_news_come_while_one_listens(way: tuple[str, EraName]) -> None:
    wanted = Filter(tools_list_changed=True, resource_subscriptions=[WELCOME])
    async with connected(way) as client:
        before = {tool.name for tool in await client.list_tools()}
        async with client.subscribe(wanted) as news:
            await client.call_tool("Grow", timeout=10)
            heard = [await anext(news), await anext(news)]
        assert sorted(heard, key=str) == [resource_updated(WELCOME), list_changed("tools")]
        assert {tool.name for tool in await client.list_tools()} - before == {"Grown"}
        assert (await client.call_tool("Grown", timeout=10)).text == "new"


@everywhere
async def test_two_who_listen_hear_what_they_want_and_nothing_else(way: tuple[str, EraName]) -> None:
    async with connected(way) as client:
        async with (
            client.subscribe(Filter(tools_list_changed=True)) as tools,
            client.subscribe(Filter(resource_subscriptions=[WELCOME, "note://second"])) as notes,
        ):
            await client.call_tool("Grow", timeout=10)
            assert (await anext(tools)).method == "notifications/tools/list_changed"
            assert (await anext(notes)).subject == WELCOME
            with anyio.move_on_after(0.05) as patience:
                await anext(tools)
            assert patience.cancelled_caught
        await client.ping()


@everywhere
async def test_a_call_that_takes_too_long_is_cancelled_at_the_server(way: tuple[str, EraName]) -> None:
    async with connected(way) as client:
        with pytest.raises(RequestTimedOut):
            await client.call_tool("Wait", timeout=0.2)
        assert (await client.call_tool("Echo", {"text": "still there"}, timeout=10)).text == "still there"


@everywhere
async def test_progress_is_told(way: tuple[str, EraName]) -> None:
    steps: list[tuple[float, float | None, str | None]] = []
    second = anyio.Event()

    def listen(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total, message))
        if done == 2:
            second.set()

    async with connected(way) as client:
        async with anyio.create_task_group() as tasks:
            # It never ends by itself.
            tasks.start_soon(
                lambda: client.call_tool("Wait", {"progress": 2}, timeout=None, on_progress=listen)
            )
            await second.wait()
            tasks.cancel_scope.cancel()
        await client.ping()
    assert steps == [(1, 2, "working"), (2, 2, "working")]


@everywhere
async def test_many_calls_at_once_get_their_own_answers(way: tuple[str, EraName]) -> None:
    answers: dict[int, str] = {}

    async def call(client: Client, number: int) -> None:
        answers[number] = (await client.call_tool("Echo", {"text": str(number)}, timeout=20)).text

    async with connected(way) as client, anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(call, client, number)
    assert answers == {number: str(number) for number in range(50)}


async def test_an_argument_is_repeated_in_its_header_as_soon_as_the_server_insists(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with connected(("http", "modern")) as client:
        # The tools have not been listed, so the header is unknown until the server misses it.
        assert (await client.call_tool("Mirror", {"city": "Zürich"}, timeout=10)).text == "Zürich"
        assert (await client.call_tool("Mirror", {"city": " Bern "}, timeout=10)).text == " Bern "


@everywhere
async def test_a_user_who_declines_is_a_result_like_any_other(way: tuple[str, EraName]) -> None:
    async def decline(_: Elicit) -> ElicitResult:
        return ElicitResult(action="decline")

    async with connected(way, elicit=decline) as client:
        assert (await client.call_tool("Ask", timeout=10)).text == "decline: None"


async def test_what_a_handler_raises_comes_out_of_the_call_that_needed_it() -> None:
    async def fail(_: Elicit) -> ElicitResult:
        raise UnreadableAnswer("a form", "nobody could read it")

    async with connected(("memory", "modern"), elicit=fail) as client:
        with pytest.raises(UnreadableAnswer, match="nobody could read it"):
            await client.call_tool("Ask", timeout=10)
