"""Pages that a server of the official SDK wants visited before it answers, over stdio and HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from ragchat.memory.types import ToolResult
from ragchat.servers.asking import User
from ragchat.servers.clock import Clock
from ragchat.servers.manager import ServerManager
from ragchat.servers.visits import MAX_VISITS, Visits
from ragconfig.settings import load_settings
from ragmcp.errors import WireError
from ragmcp.protocol.schema.input import PAGES_REQUIRED, Elicit, ElicitResult, Sample, SamplingResult
from tests.support.mcp_process import ENV
from tests.support.peers import need, running, server_command
from tests.support.processes import LONGEST_SECONDS
from tests.support.servers import tool, write

PAGE = "https://pay.example.com/basket?id=7"
Call = Callable[[str, dict[str, Any]], Awaitable[ToolResult]]


class Ada:
    """Visits a page by calling the tool that stands for it, unless she refuses."""

    def __init__(self) -> None:
        self.call: Call
        self.visited: list[tuple[str, str, str]] = []
        self.goes = True
        self.pays = True
        self.told = True

    async def visit(self, server: str, page: Elicit, done: anyio.Event) -> bool:
        self.visited.append((server, page.message, str(page.url)))
        if self.goes and self.pays:
            await self.call("mine__pay", {"page": page.url, "told": self.told})
            if self.told:
                await done.wait()
        return self.goes

    async def elicit(self, _: str, __: Elicit) -> ElicitResult:
        raise NotImplementedError

    async def sample(self, _: str, __: Sample) -> SamplingResult:
        raise NotImplementedError

    @property
    def user(self) -> User:
        return User(self.elicit, self.visit, self.sample, print)


@contextmanager
def entry(transport: str, log: Path) -> Iterator[dict[str, Any]]:
    if transport == "stdio":
        command, *arguments = server_command("mcp1", "stdio")
        yield {"command": command, "args": arguments, "env": {"PYTHONPATH": ENV["PYTHONPATH"]}}
        return
    with running(server_command("mcp1", "http"), log) as url:
        yield {"url": f"{url}/mcp"}


@asynccontextmanager
async def calling(home: Path, server: dict[str, Any], user: User | None) -> AsyncIterator[Call]:
    """Calls the tools of a server that may ask `user`."""
    write(home, mine=server)
    settings = load_settings(
        flags={"servers.timeout_seconds": LONGEST_SECONDS}, environ={"RAGCHAT_HOME": str(home)}, folder=home
    )
    with anyio.fail_after(LONGEST_SECONDS):
        async with ServerManager(settings) as manager:
            manager.user = user
            manager.start()
            await manager.connections["mine"].wait_started()
            yield lambda name, arguments: tool(manager, name).call(arguments)


@pytest.fixture(params=["stdio", pytest.param("http", marks=pytest.mark.full)])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    need("mcp1")
    with entry(request.param, tmp_path / "log") as found:
        yield found


async def test_a_call_is_repeated_once_the_user_is_done_with_the_page(
    tmp_path: Path, server: dict[str, Any]
) -> None:
    ada = Ada()
    async with calling(tmp_path, server, ada.user) as call:
        ada.call = call
        for told in (True, False):  # the server says so, the user says so
            ada.told, page = told, f"{PAGE}&told={told}"
            result = await call("mine__buy", {"page": page})
            assert (result.ok, result.text) == (True, "bought")
            assert ada.visited.pop() == ("mine", "Pay there.", page)
            assert not ada.visited

        # A server that wants one visit after another is given up.
        ada.pays = False
        assert not (await call("mine__buy", {"page": PAGE})).ok
        assert len(ada.visited) == MAX_VISITS

        # If the user does not go there, the call fails with its reason.
        ada.goes = False
        result = await call("mine__buy", {"page": PAGE})
        assert (result.ok, "did not visit" in result.text, PAGE in result.text) == (False, True, True)
        assert len(ada.visited) == MAX_VISITS + 1


async def test_without_a_user_the_call_fails(tmp_path: Path, server: dict[str, Any]) -> None:
    async with calling(tmp_path, server, None) as call:
        assert not (await call("mine__buy", {"page": PAGE})).ok


async def test_two_requests_that_need_the_same_page_are_both_repeated_once_it_was_visited() -> None:
    async def visit(_: str, __: Elicit, done: anyio.Event) -> bool:
        if len(visits._open) == 2:
            visits.complete("7")
        await done.wait()
        return True

    async def ask() -> str:
        if "asked" not in seen:
            seen.append("asking")
            if len(seen) == 2:
                seen.append("asked")
            raise WireError(PAGES_REQUIRED, "Pay first.", {"elicitations": [page]})
        return "bought"

    async def buy() -> None:
        bought.append(await visits.answer(ask))

    page = {"mode": "url", "message": "Pay.", "url": PAGE, "elicitationId": "7"}
    seen: list[str] = []
    bought: list[str] = []
    ada = Ada()
    visits = Visits("mine", replace(ada.user, visit=visit), Clock())
    with anyio.fail_after(LONGEST_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(buy)
            tasks.start_soon(buy)
    assert bought == ["bought"] * 2
