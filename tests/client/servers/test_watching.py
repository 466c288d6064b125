"""Attached resources of real servers that change, in both eras."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from ragchat.servers.asking import User
from ragchat.servers.manager import ServerManager
from ragchat.servers.watching import CHANGED, MAX_WATCHED, ResourceWatch
from ragconfig.settings import load_settings
from ragmcp.client.features import EraName
from ragmcp.stdio import connect
from tests.support.mcp_offers import WELCOME
from tests.support.processes import LONGEST_SECONDS
from tests.support.servers import GOOD, tool, write

ERAS: tuple[EraName | None, ...] = (None, "legacy")


async def refuse(*_: Any) -> Any:
    raise NotImplementedError


@pytest.fixture(params=ERAS, ids=["modern", "legacy"])
def era(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "open_stdio", partial(connect.open_stdio, era=request.param))


@asynccontextmanager
async def server(home: Path, told: list[str]) -> AsyncIterator[ServerManager]:
    write(home, mine=GOOD)
    settings = load_settings(environ={"RAGCHAT_HOME": str(home)}, folder=home)
    with anyio.fail_after(LONGEST_SECONDS):
        async with ServerManager(settings) as manager:
            manager.user = User(refuse, refuse, refuse, print, told.append)
            manager.start()
            await manager.connections["mine"].wait_started()
            yield manager


@pytest.mark.usefixtures("era")
async def test_the_user_hears_once_that_an_attached_resource_has_changed(tmp_path: Path) -> None:
    told: list[str] = []
    async with server(tmp_path, told) as manager:
        grow = tool(manager, "mine__Grow").call  # changes the resource
        for _ in range(2):
            await manager.offers()["mine"].read("note://second")
            await manager.offers()["mine"].read(WELCOME)
            while not told:
                await grow({})
            await grow({})
            assert told == [CHANGED.format(server="mine", uri=WELCOME)]
            told.clear()


async def test_what_was_not_attached_is_not_watched(tmp_path: Path) -> None:
    told: list[str] = []
    async with server(tmp_path, told) as manager:
        await manager.offers()["mine"].read("note://second")
        for _ in range(3):
            await tool(manager, "mine__Grow").call({})
    assert told == []


async def test_only_the_resources_that_were_attached_last_are_watched() -> None:
    watched = ResourceWatch("mine", print)
    for number in range(MAX_WATCHED + 2):
        watched.add(f"note://{number}")
    watched.add("note://2")
    assert [*watched.uris] == [*(f"note://{number}" for number in range(3, MAX_WATCHED + 2)), "note://2"]
