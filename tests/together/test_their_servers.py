"""Our client with servers of other libraries, each over all its transports and in both eras."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from ragmcp.client.features import Client, EraName
from ragmcp.client.handlers import Handlers
from ragmcp.errors import ConnectionClosed, RequestTimedOut, WireError
from ragmcp.http.connect import open_http
from ragmcp.protocol.schema.completion import PromptReference
from ragmcp.protocol.schema.input import Elicit, ElicitResult, Root, Sample, SamplingResult
from ragmcp.protocol.schema.logging import LogMessage
from ragmcp.protocol.schema.subscriptions import Filter
from ragmcp.stdio.connect import open_stdio
from tests.peers.offers import WELCOME
from tests.support.mcp_process import ENV, MESSAGE_BYTES
from tests.support.peers import PeerName, need, running, server_command, with_smoke
from tests.support.ports import free_port
from tests.support.processes import LogFile
from tests.support.wire import Recording

ABOUT_US: dict[str, Any] = {"client_name": "tests", "client_version": "0", "message_bytes": MESSAGE_BYTES}
SECONDS = 60
NAMES = {"mcp1": "sdk-1", "mcp2": "sdk-2", "fastmcp": "fastmcp"}
LARGE = "ü世🎉 " * (2**20 // 10)


class Case(NamedTuple):
    """Whom we meet, and how; `era` as our client takes it."""

    peer: PeerName
    transport: str
    era: EraName | None

    @property
    def revision(self) -> str:
        return "2026-07-28" if self.modern else "2025-11-25"

    @property
    def modern(self) -> bool:
        return self.peer != "mcp1" and self.transport != "sse" and self.era != "legacy"


# fastmcp has the transports of the SDK 2.x, so that each era on one of them is enough.
CASES = [
    *(Case("mcp1", transport, None) for transport in ("stdio", "http", "sse")),
    *(Case("mcp2", transport, era) for transport in ("stdio", "http") for era in (None, "legacy")),
    *(Case("mcp2", "http", "modern"), Case("mcp2", "sse", None)),
    *(Case("fastmcp", "stdio", None), Case("fastmcp", "http", "legacy")),
]


SMOKE = [Case("mcp1", "stdio", None), Case("mcp2", "http", None), Case("fastmcp", "http", "legacy")]


@pytest.fixture(
    scope="module",
    params=with_smoke(CASES, SMOKE),
    ids=lambda case: f"{case.peer}-{case.transport}-{case.era}",
)
def case(request: pytest.FixtureRequest) -> Case:
    case: Case = request.param
    need(case.peer)
    return case


class Said:
    """What a server says unasked."""

    def __init__(self) -> None:
        self.logs: list[LogMessage] = []


@pytest.fixture(scope="module")
def said() -> Said:
    return Said()


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[PeerName], str]]:
    """Where a peer's server is, once it runs."""
    log = tmp_path_factory.mktemp("servers") / "log"
    with ExitStack() as stack:
        yield cache(lambda peer: stack.enter_context(running(server_command(peer, "http"), log)))


@pytest.fixture(scope="module")
def recording(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """What is said meanwhile."""
    return Recording(tmp_path_factory.mktemp(case.peer) / "messages")


@pytest.fixture(scope="module")
async def client(
    case: Case, said: Said, urls: Callable[[PeerName], str], recording: Recording
) -> AsyncIterator[Client]:
    both = {**ABOUT_US, "era": case.era, "handlers": handlers(said)}
    if case.transport == "stdio":
        command = recording.command(server_command(case.peer, "stdio"))
        log = LogFile(recording.path.with_name("log"))
        async with open_stdio(command, stderr=log, env=ENV, **both) as client:
            yield client
    else:
        path = {"http": "/mcp", "sse": "/sse"}[case.transport]
        async with recording.http(urls(case.peer)) as root, open_http(root + path, **both) as client:
            yield client


def handlers(said: Said) -> Handlers:
    async def elicit(form: Elicit) -> ElicitResult:
        assert form.message == "What is your name?"
        return ElicitResult(action="accept", content={"name": "Zoë"})

    async def sample(question: Sample) -> SamplingResult:
        assert question.messages[0]["content"] == {"type": "text", "text": "What is two and two?"}
        return SamplingResult(role="assistant", model="tiny", content={"type": "text", "text": "four"})

    async def roots() -> list[Root]:
        return [Root(uri="file:///home/zoe")]

    return Handlers(
        elicit=elicit,
        sample=sample,
        list_roots=roots,
        on_log=said.logs.append,
    )


async def test_it_says_who_it_is(case: Case, client: Client) -> None:
    assert client.revision == case.revision
    # A client that need not find out the era asks for nothing before the first list.
    assert client.server.name == (NAMES[case.peer] if case.era != "modern" else "unknown")


async def test_its_tools_are_listed_and_called(case: Case, client: Client) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert {"add", "fail", "wait", "ask"} <= set(tools)
    assert tools["add"].input_schema["required"] == ["a"]
    assert client.server.name == NAMES[case.peer]
    added = await client.call_tool("add", {"a": 2, "b": 3}, timeout=SECONDS)
    assert (added.structured(dict), added.text, added.is_error) == ({"result": 5}, "5", False)


@pytest.mark.parametrize(("tool", "arguments"), [("fail", {}), ("add", {"a": "x"}), ("nope", {})])
async def test_its_errors_are_told(client: Client, tool: str, arguments: dict[str, str]) -> None:
    # All three see in a tool that does not exist one that failed.
    failed = await client.call_tool(tool, arguments, timeout=SECONDS)
    assert failed.is_error
    assert failed.text


async def test_its_progress_is_heard(client: Client) -> None:
    news: list[tuple[float, float | None, str | None]] = []
    done = await client.call_tool("steps", timeout=SECONDS, on_progress=lambda *step: news.append(step))
    assert done.text == "done"
    assert news == [(1, 2, "working"), (2, 2, "working")]


async def test_it_is_told_that_nobody_waits_any_more(client: Client) -> None:
    with pytest.raises(RequestTimedOut):
        await client.call_tool("wait", timeout=0.1)
    assert (await client.call_tool("quiet", timeout=SECONDS)).text == "quiet"


async def test_it_answers_many_calls_at_once(client: Client) -> None:
    sums: list[str] = []

    async def add(number: int) -> None:
        sums.append((await client.call_tool("add", {"a": number, "b": 0}, timeout=SECONDS)).text)

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(add, number)
    assert sorted(sums, key=int) == [str(number) for number in range(20)]


async def test_a_long_text_goes_there_and_back(client: Client) -> None:
    assert (await client.call_tool("echo", {"text": LARGE}, timeout=SECONDS)).text == LARGE


async def test_an_argument_is_repeated_in_a_header(client: Client) -> None:
    assert (await client.call_tool("mirror", {"city": "Zürich"}, timeout=SECONDS)).text == "Zürich"


async def test_its_resources_are_listed_and_read(client: Client) -> None:
    assert [resource.uri for resource in await client.list_resources()] == [WELCOME]
    templates = await client.list_resource_templates()
    assert [template.uri_template for template in templates] == ["note://named/{name}"]
    assert [content.text for content in await client.read_resource(WELCOME)] == ["Grüße, 世界"]
    assert [content.text for content in await client.read_resource("note://named/bees")] == ["about bees"]
    with pytest.raises(WireError):
        await client.read_resource("note://nowhere")


async def test_its_prompts_are_listed_filled_in_and_completed(client: Client) -> None:
    (prompt,) = await client.list_prompts()
    assert [(argument.name, argument.required) for argument in prompt.arguments or []] == [
        ("topic", True),
        ("tone", False),
    ]
    (message,) = (await client.get_prompt("summarize", {"topic": "bees"})).messages
    assert getattr(message.content, "text", None) == "Summarize bees, plain."
    with pytest.raises(WireError):
        await client.get_prompt("summarize", {})
    completion = await client.complete(PromptReference(name="summarize"), "tone", "p")
    assert completion.values == ["plain", "playful", "poetic"]


async def test_its_log_messages_are_heard(case: Case, client: Client, said: Said) -> None:
    if case.modern:
        await client.set_log_level("info")
    said.logs.clear()
    assert (await client.call_tool("log", timeout=SECONDS)).text == "logged"
    assert [message.level for message in said.logs] == ["info", "error"]


@pytest.mark.parametrize(
    ("tool", "answer"),
    [("ask", "accept: Zoë"), ("think", "tiny: four"), ("where", "file:///home/zoe")],
)
async def test_it_may_ask_us(client: Client, tool: str, answer: str) -> None:
    assert (await client.call_tool(tool, timeout=SECONDS)).text == answer


async def test_its_changes_are_heard(case: Case, client: Client) -> None:
    if case.peer == "fastmcp" and case.modern:
        # fastmcp 4.1 serves no subscriptions/listen.
        with pytest.raises(WireError, match="Method not found"):
            async with client.subscribe(Filter(tools_list_changed=True)):
                pass
        return
    # No server of these serves resources/subscribe by itself; its news of resources come all the same.
    watched = [WELCOME] if case.modern else []
    wanted = Filter(tools_list_changed=True, resource_subscriptions=watched)
    async with client.subscribe(wanted) as news:
        await client.call_tool("grow", timeout=SECONDS)
        with anyio.fail_after(SECONDS):
            assert (await anext(news)).method == "notifications/tools/list_changed"
            if watched:
                assert (await anext(news)).subject == WELCOME
    assert "grown" in {tool.name for tool in await client.list_tools()}


async def test_an_answer_comes_although_its_stream_was_closed(client: Client) -> None:
    # Only legacy sessions over HTTP close it, and resume it.
    assert (await client.call_tool("interrupted", timeout=SECONDS)).text == "resumed"


async def test_every_message_fits_the_schema_of_its_revision(client: Client, recording: Recording) -> None:
    conversation = recording.check()
    assert client.revision in conversation.revisions


@pytest.mark.parametrize("peer", ["mcp1", "mcp2"])
async def test_we_go_on_when_it_has_restarted(peer: PeerName, tmp_path: Path) -> None:
    need(peer)
    command, log, port = server_command(peer, "http"), tmp_path / "log", free_port()

    async def add(client: Client) -> str:
        return (await client.call_tool("add", {"a": 1}, timeout=SECONDS)).text

    async with AsyncExitStack() as stack:
        with running(command, log, port) as url:
            streamable = await stack.enter_async_context(open_http(f"{url}/mcp", **ABOUT_US))
            session = await stack.enter_async_context(open_http(f"{url}/mcp", era="legacy", **ABOUT_US))
            sse = await stack.enter_async_context(open_http(f"{url}/sse", **ABOUT_US))
            assert [await add(client) for client in (streamable, session, sse)] == ["2"] * 3
        with running(command, log, port):
            assert [await add(client) for client in (streamable, session)] == ["2"] * 2
            # The old transport is one connection; a client that wants it again opens another one.
            with pytest.raises(ConnectionClosed):
                await add(sse)
            await stack.aclose()
