"""Our client with the TypeScript SDK's "everything" server, over all its transports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from ragmcp.client.features import Client
from ragmcp.client.handlers import Handlers
from ragmcp.errors import RequestTimedOut, WireError
from ragmcp.http.connect import open_http
from ragmcp.protocol.schema.completion import PromptReference
from ragmcp.protocol.schema.content import ImageContent, ResourceLink
from ragmcp.protocol.schema.input import Elicit, ElicitResult, Root, Sample, SamplingResult
from ragmcp.protocol.schema.logging import LogMessage
from ragmcp.stdio.connect import open_stdio
from tests.support import typescript
from tests.support.mcp_process import MESSAGE_BYTES
from tests.support.peers import with_smoke
from tests.support.processes import LogFile
from tests.support.wire import Recording

SECONDS = 60
TRANSPORTS = ["stdio", "streamableHttp", "sse"]
REVISION = "2025-11-25"  # The SDK it is made with knows no later one, and speaks it over all of them.
TEXT = "demo://resource/dynamic/text/7"


async def elicit(_: Elicit) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Zoë", "check": True})


async def sample(_: Sample) -> SamplingResult:
    return SamplingResult(role="assistant", model="tiny", content={"type": "text", "text": "four"})


async def roots() -> list[Root]:
    return [Root(uri="file:///home/zoe", name="home")]


@pytest.fixture(scope="module", params=with_smoke(TRANSPORTS, ["stdio"]))
def transport(request: pytest.FixtureRequest) -> str:
    typescript.need()
    transport: str = request.param
    return transport


@pytest.fixture(scope="module")
def recording(transport: str, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return Recording(tmp_path_factory.mktemp(transport) / "record")


@pytest.fixture(scope="module")
def logs() -> list[LogMessage]:
    return []


@pytest.fixture(scope="module")
async def client(transport: str, recording: Recording, logs: list[LogMessage]) -> AsyncIterator[Client]:
    log: Path = recording.path.with_name("log")
    handlers = Handlers(elicit=elicit, sample=sample, list_roots=roots, on_log=logs.append)
    about_us: dict[str, Any] = {
        "client_name": "tests",
        "client_version": "0",
        "message_bytes": MESSAGE_BYTES,
        "handlers": handlers,
    }
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            command = recording.command(typescript.STDIO_SERVER)
            yield await stack.enter_async_context(open_stdio(command, stderr=LogFile(log), **about_us))
        else:
            url = stack.enter_context(typescript.everything(transport, log))
            root = await stack.enter_async_context(recording.http(url))
            path = "sse" if transport == "sse" else "mcp"
            yield await stack.enter_async_context(open_http(f"{root}/{path}", **about_us))


async def test_it_says_who_it_is(client: Client) -> None:
    assert (client.server.name, client.revision) == ("mcp-servers/everything", REVISION)


async def test_its_tools_are_listed_and_called(client: Client) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert {"echo", "get-sum", "get-structured-content"} <= set(tools)
    assert (await client.call_tool("echo", {"message": "Grüße, 世界"}, timeout=SECONDS)).text.endswith(
        "Grüße, 世界"
    )
    assert "5" in (await client.call_tool("get-sum", {"a": 2, "b": 3}, timeout=SECONDS)).text
    weather = await client.call_tool("get-structured-content", {"location": "Chicago"}, timeout=SECONDS)
    assert weather.structured(dict) == {
        "temperature": 36,
        "conditions": "Light rain / drizzle",
        "humidity": 82,
    }


async def test_content_of_other_kinds_arrives(client: Client) -> None:
    image = await client.call_tool("get-tiny-image", timeout=SECONDS)
    assert any(isinstance(content, ImageContent) for content in image.content)
    links = await client.call_tool("get-resource-links", {"count": 3}, timeout=SECONDS)
    assert sum(isinstance(content, ResourceLink) for content in links.content) == 3


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("get-sum", {"a": "x"}), ("get-structured-content", {"location": "Aldermoor"}), ("no", {})],
)
async def test_its_errors_are_told(client: Client, tool: str, arguments: dict[str, str]) -> None:
    failed = await client.call_tool(tool, arguments, timeout=SECONDS)
    assert failed.is_error
    assert failed.text


async def test_its_progress_is_heard(client: Client) -> None:
    steps: list[float] = []
    done = await client.call_tool(
        "trigger-long-running-operation",
        {"duration": 0.1, "steps": 4},
        timeout=SECONDS,
        on_progress=lambda done, *_: steps.append(done),
    )
    assert "Steps: 4" in done.text
    assert steps == [1, 2, 3, 4]


async def test_it_is_told_that_nobody_waits_any_more(client: Client) -> None:
    with pytest.raises(RequestTimedOut):
        await client.call_tool("trigger-long-running-operation", {"duration": 1, "steps": 1}, timeout=0.1)
    assert (await client.call_tool("echo", {"message": "still here"}, timeout=SECONDS)).text


async def test_many_calls_at_once_are_answered(client: Client) -> None:
    answers: list[str] = []

    async def echo(number: int) -> None:
        answers.append((await client.call_tool("echo", {"message": f"<{number}>"}, timeout=SECONDS)).text)

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(echo, number)
    assert all(any(f"<{number}>" in answer for answer in answers) for number in range(20))


async def test_its_resources_are_listed_and_read(client: Client) -> None:
    assert await client.list_resources()
    assert len(await client.list_resource_templates()) == 2
    (text,) = await client.read_resource(TEXT)
    assert text.text
    (blob,) = await client.read_resource("demo://resource/dynamic/blob/7")
    assert blob.blob
    with pytest.raises(WireError):
        await client.read_resource("demo://nowhere")


async def test_its_prompts_are_listed_filled_in_and_completed(client: Client) -> None:
    assert {"args-prompt", "completable-prompt"} <= {prompt.name for prompt in await client.list_prompts()}
    (message,) = (await client.get_prompt("args-prompt", {"city": "Paris"})).messages
    assert getattr(message.content, "text", None) == "What's weather in Paris?"
    reference = PromptReference(name="completable-prompt")
    assert (await client.complete(reference, "department", "S")).values == ["Sales", "Support"]
    names = await client.complete(reference, "name", "", {"department": "Sales"})
    assert names.values == ["David", "Eve", "Frank"]


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("trigger-elicitation-request", {}, "Zoë"),
        ("trigger-sampling-request", {"prompt": "two and two?"}, "four"),
        ("get-roots-list", {}, "file:///home/zoe"),
    ],
)
async def test_it_may_ask_us(client: Client, tool: str, arguments: dict[str, str], answer: str) -> None:
    result = await client.call_tool(tool, arguments, timeout=SECONDS)
    assert answer in "\n".join(getattr(content, "text", "") for content in result.content)


async def test_all_that_was_said_fits_the_schema(client: Client, recording: Recording) -> None:
    assert not client.is_closed
    assert REVISION in recording.check().revisions
