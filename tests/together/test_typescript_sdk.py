"""Our client with a server of the TypeScript SDK 2.x, which speaks both eras."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import anyio
import pytest

from ragmcp.client.features import Client, EraName
from ragmcp.client.handlers import Handlers
from ragmcp.http.connect import open_http
from ragmcp.protocol.schema.input import Elicit, ElicitResult
from ragmcp.protocol.schema.subscriptions import Filter
from ragmcp.stdio.connect import open_stdio
from tests.support import typescript
from tests.support.mcp_process import MESSAGE_BYTES
from tests.support.peers import with_smoke
from tests.support.processes import LONGEST_SECONDS, Held
from tests.support.wire import Recording


class Case(NamedTuple):
    """How we meet it; `era` as our client takes it."""

    transport: str
    era: EraName | None


CASES = [Case(transport, era) for transport in ("stdio", "http") for era in (None, "legacy")]
# Over HTTP it serves older clients without a session: it can neither ask them nor tell them anything.
SESSIONLESS = Case("http", "legacy")


async def elicit(form: Elicit) -> ElicitResult:
    assert form.message == "What is your name?"
    return ElicitResult(action="accept", content={"name": "Zoë"})


@pytest.fixture(
    scope="module",
    params=with_smoke(CASES, [Case("stdio", None)]),
    ids=lambda case: f"{case.transport}-{case.era}",
)
def case(request: pytest.FixtureRequest) -> Case:
    typescript.need()
    case: Case = request.param
    return case


@pytest.fixture(scope="module")
def recording(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return Recording(tmp_path_factory.mktemp(case.transport) / "record")


@pytest.fixture(scope="module")
async def client(case: Case, recording: Recording) -> AsyncIterator[Client]:
    about_us: dict[str, Any] = {
        "client_name": "tests",
        "client_version": "0",
        "message_bytes": MESSAGE_BYTES,
        "handlers": Handlers(elicit=elicit),
        "era": case.era,
    }
    command = typescript.sdk_server(case.transport)
    async with AsyncExitStack() as stack:
        if case.transport == "stdio":
            yield await stack.enter_async_context(open_stdio(recording.command(command), **about_us))
        else:
            server = stack.enter_context(Held(command, stdout=subprocess.PIPE))
            url = f"http://127.0.0.1:{int(server.line())}"
            root = await stack.enter_async_context(recording.http(url))
            yield await stack.enter_async_context(open_http(f"{root}/mcp", **about_us))


async def call(client: Client, tool: str, **arguments: Any) -> str:
    return (await client.call_tool(tool, arguments, timeout=LONGEST_SECONDS)).text


async def test_it_speaks_the_era_we_ask_for(case: Case, client: Client) -> None:
    assert client.server.name == "typescript-2"
    assert client.revision == ("2025-11-25" if case.era == "legacy" else "2026-07-28")


async def test_its_tools_are_listed_and_called(client: Client) -> None:
    assert {"add", "fail"} <= {tool.name for tool in await client.list_tools()}
    assert await call(client, "add", a=2, b=3) == "5"
    failed = await client.call_tool("fail", timeout=LONGEST_SECONDS)
    assert (failed.is_error, failed.text) == (True, "no luck")


async def test_it_may_ask_us(case: Case, client: Client) -> None:
    if case == SESSIONLESS:
        pytest.skip("it cannot ask here")
    assert await call(client, "ask") == "accept: Zoë"


async def test_its_changes_are_heard(case: Case, client: Client) -> None:
    if case == SESSIONLESS:
        pytest.skip("it cannot tell us here")
    with anyio.fail_after(LONGEST_SECONDS):
        async with client.subscribe(Filter(tools_list_changed=True)) as changes:
            await call(client, "grow")
            assert (await anext(changes)).method == "notifications/tools/list_changed"
    assert "grown" in {tool.name for tool in await client.list_tools()}


async def test_every_message_fits_the_schema_of_its_revision(client: Client, recording: Recording) -> None:
    assert recording.check().revisions == {client.revision}
