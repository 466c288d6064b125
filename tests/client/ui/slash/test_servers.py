"""/mcp in a chat without a terminal, with real servers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import Completion

from ragchat.app import App
from ragchat.errors import ArgumentMissing, UnknownServer
from ragchat.servers.manager import ServerManager
from ragchat.ui.context import ChatContext
from ragchat.ui.prompt.toolbar import Status
from ragchat.ui.slash import servers
from tests.client.servers.test_manager import GONE
from tests.client.ui.slash.test_table import Room
from tests.support.screens import piped_screen
from tests.support.servers import GOOD, write
from tests.support.turns import ListMemory, settings_in


@pytest.fixture
async def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    monkeypatch.chdir(tmp_path)
    settings, (screen, out, err) = settings_in(tmp_path), piped_screen()
    async with ServerManager(settings) as manager, App(settings, ListMemory(), servers=manager) as app:
        yield Room(ChatContext(app, screen, Status()), out, err)


async def test_without_servers_the_way_to_add_one_is_shown(room: Room) -> None:
    assert "`ragchat mcp add NAME -- COMMAND`" in await room.run("/mcp")


async def test_the_state_of_every_server_is_shown_with_its_error(room: Room, tmp_path: Path) -> None:
    write(tmp_path, good=GOOD, gone=GONE)
    shown = await room.run("/mcp")
    assert "good: ready, " in shown
    assert "gone: failed" in shown
    assert "there is no such program" in shown
    assert "Echo  Gives the text back." in await room.run("/mcp tools good")


async def test_a_servers_log_is_at_hand(room: Room, tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    await room.run("/mcp")
    assert room.context.app.servers is not None
    connection = room.context.app.servers.connections["good"]
    connection.log.write_text("one\ntwo\n")
    assert await room.run("/mcp log good") == "one\ntwo\n"


async def test_a_project_s_server_starts_after_consent(room: Room, tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": GOOD}}))
    assert "/mcp start theirs" in await room.run("/mcp")
    assert "theirs: ready" in await room.run("/mcp start theirs")


async def test_a_name_that_is_missing_or_unknown_is_an_error(room: Room, tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    await room.run("/mcp")
    with pytest.raises(ArgumentMissing, match="the name of a server"):
        await room.run("/mcp log")
    with pytest.raises(UnknownServer, match="goood"):
        await room.run("/mcp goood")


async def test_actions_and_names_are_completed(room: Room, tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    await room.run("/mcp")

    async def completed(argument: str) -> list[str]:
        found: list[Completion] = [one async for one in servers.complete(room.context, argument)]
        return [one.text for one in found]

    assert await completed("l") == ["login", "log"]
    assert await completed("log g") == ["good"]
    assert await completed("g") == ["good"]
