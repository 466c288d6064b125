"""The TypeScript SDK's client, in the shape of its inspector, with our server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support import mcp_http, typescript
from tests.support.mcp_offers import NOTES, WELCOME
from tests.support.mcp_process import SERVER
from tests.support.peers import running, with_smoke
from tests.support.typescript import inspect
from tests.support.wire import Recording


class Case(NamedTuple):
    """How it reaches us; `era` as the inspector takes it."""

    transport: str
    era: str

    @property
    def revision(self) -> str:
        return "2025-11-25" if self.era == "legacy" else "2026-07-28"


CASES = [
    Case("stdio", "legacy"),
    Case("stdio", "modern"),
    Case("http", "modern"),
    Case("http", "auto"),
    Case("sse", "legacy"),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    typescript.need()
    with running(mcp_http.COMMAND, tmp_path_factory.mktemp("server") / "log") as url:
        yield url


# It is started for each request: the whole of it is asked for in the two eras, elsewhere one tool is called.
WHOLE = {Case("stdio", "legacy"), Case("http", "modern")}


@pytest.mark.parametrize("case", with_smoke(CASES, [Case("http", "auto")]), ids="-".join)
async def test_it_lists_calls_reads_and_gets(case: Case, url: str, tmp_path: Path) -> None:
    recording = Recording(tmp_path / "record")
    async with AsyncExitStack() as stack:
        if case.transport == "stdio":
            target = recording.command(SERVER)
        else:
            root = await stack.enter_async_context(recording.http(url))
            path = {"http": "mcp", "sse": "sse"}[case.transport]
            target = ["--server-url", f"{root}/{path}", "--transport", case.transport]

        async def ask(method: str, *options: str) -> Any:
            said = await inspect(tmp_path, target, method, case.era, *options)
            assert "error" not in said, said
            return said["result"]

        added = await ask("tools/call", "--tool-name", "Add", "--tool-args-json", '{"a": 2, "b": 3}')
        assert added["structuredContent"] == {"total": 5}
        if case in WHOLE:
            await walk(ask)
    spoken = recording.check()
    assert case.revision in spoken.revisions
    assert spoken.methods >= {"tools/call", *(METHODS if case in WHOLE else ())}


METHODS = {"tools/list", "resources/list", "resources/read", "prompts/get"}


async def walk(ask: Callable[..., Awaitable[Any]]) -> None:
    tools = (await ask("tools/list"))["tools"]
    assert {"Echo", "Add", "Ask"} <= {tool["name"] for tool in tools}
    resources = (await ask("resources/list"))["resources"]
    assert [resource["uri"] for resource in resources] == list(NOTES)
    read = await ask("resources/read", "--uri", WELCOME)
    assert read["contents"][0]["text"] == NOTES[WELCOME]
    prompt = await ask("prompts/get", "--prompt-name", "Summarize", "--prompt-args", "topic=bees")
    assert prompt["messages"][0]["content"]["text"] == "Summarize bees, plain."
