"""Servers of all SDKs at once, in both eras, through `ServerManager`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from math import inf
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from ragchat.servers.asking import User
from ragchat.servers.managed import ServerState
from ragchat.servers.manager import ServerManager
from ragmcp.protocol.schema.input import Elicit, ElicitResult, Sample, SamplingResult
from tests.support import peers, typescript
from tests.support.mcp_process import ENV
from tests.support.peers import PeerName
from tests.support.processes import LONGEST_SECONDS
from tests.support.servers import managed, tool, write

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the programs of the SDKs are set up on POSIX"
)

LIBRARIES: tuple[PeerName, ...] = ("mcp1", "mcp2", "fastmcp")
NAMES = [*LIBRARIES, "typescript2"]


async def elicit(server: str, _: Elicit) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": f"Zoë of {server}"})


async def visit(_: str, __: Elicit, ___: anyio.Event) -> bool:
    raise NotImplementedError


async def sample(_: str, __: Sample) -> SamplingResult:
    raise NotImplementedError


def entry(command: list[str]) -> dict[str, Any]:
    return {"command": command[0], "args": command[1:], "env": {"PYTHONPATH": ENV["PYTHONPATH"]}}


@pytest.fixture(scope="module")
async def manager(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerManager]:
    typescript.need()
    for library in LIBRARIES:
        peers.need(library)
    home = tmp_path_factory.mktemp("home")
    servers = {library: entry(peers.server_command(library, "stdio")) for library in LIBRARIES}
    write(home, **servers, typescript2=entry(typescript.sdk_server("stdio")))
    user = User(elicit, visit, sample, print)
    async with managed(home, user=user, longest=inf) as manager:  # as long as the module
        assert {one.state for one in manager.connections.values()} == {ServerState.READY}
        yield manager


@pytest.mark.parametrize("name", NAMES)
async def test_it_is_called_and_may_ask_the_user(manager: ServerManager, name: str) -> None:
    assert (await tool(manager, f"{name}__add").call({"a": 2, "b": 3})).text == "5"
    assert (await tool(manager, f"{name}__ask").call({})).text == f"accept: Zoë of {name}"
    failed = await tool(manager, f"{name}__fail").call({})
    assert (failed.ok, "fail" in failed.text or "no luck" in failed.text) == (False, True)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "fastmcp"])  # It serves no subscriptions.
async def test_a_tool_that_it_adds_is_offered(manager: ServerManager, name: str) -> None:
    assert (await tool(manager, f"{name}__grow").call({})).text == "grown"
    with anyio.fail_after(LONGEST_SECONDS):
        while f"{name}__grown" not in {one.name for one in manager.tools()}:
            await anyio.lowlevel.checkpoint()
    assert (await tool(manager, f"{name}__grown").call({})).text == "new"
