"""/mcp in a chat without a terminal, with real servers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import Completion

from ragchat.conversation import Conversation
from ragchat.errors import ArgumentMissing, MemoryNotConfigurable, ServerConfigInvalid, UnknownServer
from ragchat.notebooks.definitions import Notebook
from ragchat.servers.manager import ServerManager
from ragchat.servers.permissions import Rule
from ragchat.ui.context import ChatContext
from ragchat.ui.prompt.toolbar import Status
from ragchat.ui.slash import servers
from ragchat.ui.welcome import failed_line, servers_line
from ragcommon.hosts import SERVER_NAME
from tests.client.servers.test_manager import GONE
from tests.client.ui.slash.test_table import Room
from tests.support.processes import processes_in
from tests.support.screens import piped_screen
from tests.support.servers import GOOD, write
from tests.support.turns import FORGET_TOOL, QUERY_TOOL, ListMemory, settings_in


@pytest.fixture
async def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    monkeypatch.chdir(tmp_path)
    settings, (screen, out, err) = settings_in(tmp_path), piped_screen()
    async with (
        ServerManager(settings) as manager,
        Conversation(settings, ListMemory(), manager) as conversation,
    ):
        yield Room(ChatContext(conversation, screen, Status()), out, err)


async def test_without_servers_the_way_to_add_one_is_shown(room: Room) -> None:
    assert "`ragchat mcp add NAME -- COMMAND`" in await room.run("/mcp")


async def test_the_state_of_every_server_is_shown_with_its_error(room: Room, tmp_path: Path) -> None:
    write(tmp_path, good=GOOD, gone=GONE)
    shown = await room.run("/mcp")
    assert "good: ready, " in shown
    assert "gone: failed" in shown
    assert "there is no such program" in shown
    assert "Echo  Gives the text back." in await room.run("/mcp tools good")


async def test_one_server_is_shown_without_having_shown_all_of_them_before(
    room: Room, tmp_path: Path
) -> None:
    write(tmp_path, good=GOOD)
    assert "good: ready, " in await room.run("/mcp good")


async def test_an_unknown_server_is_an_error_that_says_what_can_be_typed(room: Room, tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    for words, hint in (
        ("goood", "Did you mean good? /mcp shows the servers."),
        ("log goood", "Did you mean good? /mcp shows the servers."),
        ("relaod", "Did you mean reload? /mcp shows the servers."),
        (
            "add",
            "In a shell, `ragchat mcp add NAME -- COMMAND` adds a server; then /mcp reload starts it.",
        ),
        ("nope", "/mcp shows the servers."),
    ):
        with pytest.raises(UnknownServer) as caught:
            await room.run(f"/mcp {words}")
        assert caught.value.hint == hint, words


async def test_servers_that_cannot_be_used_are_named(room: Room, tmp_path: Path) -> None:
    assert failed_line(room.context) == ""
    write(tmp_path, good=GOOD, gone=GONE)
    await room.run("/mcp")
    await room.context.conversation.servers.connections["gone"].wait_started()
    assert failed_line(room.context) == "1 server cannot be used: gone (failed). /mcp shows why."


async def test_a_servers_log_is_at_hand(room: Room, tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    await room.run("/mcp")
    assert room.context.conversation.servers is not None
    connection = room.context.conversation.servers.connections["good"]
    connection.log.write_text("one\ntwo\n")
    assert await room.run("/mcp log good") == "one\ntwo\n"


async def test_a_project_s_server_starts_after_consent(room: Room, tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": GOOD}}))
    shown = await room.run("/mcp")
    assert f"would start: PYTHONPATH={GOOD['env']['PYTHONPATH']} {GOOD['command']}" in shown
    assert "/mcp start theirs" in shown
    assert "theirs: ready" in await room.run("/mcp start theirs")


async def test_a_server_is_disabled_and_enabled_in_the_file_of_the_user(room: Room, tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    file = tmp_path / "config" / "mcp.json"
    written = json.loads(file.read_text())["mcpServers"]["good"]
    await room.run("/mcp")
    shown = await room.run("/mcp disable good")
    assert "good: disabled" in shown
    assert "/mcp enable good" in shown
    assert await room.run("/mcp tools good") == "There are none; good: disabled.\n"
    assert json.loads(file.read_text())["mcpServers"]["good"] == {**written, "disabled": True}
    assert "good: ready" in await room.run("/mcp enable good")
    assert json.loads(file.read_text())["mcpServers"]["good"] == written


async def test_a_project_s_server_is_disabled_without_a_change_of_its_file(
    room: Room, tmp_path: Path
) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"theirs": GOOD}}))
    before = file.read_bytes()
    await room.run("/mcp")
    assert "theirs: disabled" in await room.run("/mcp disable theirs")
    assert "theirs: disabled" in await room.run("/mcp reload")
    assert "waits for your consent" in await room.run("/mcp enable theirs")
    assert file.read_bytes() == before


async def test_a_server_that_the_project_disables_is_not_offered_to_be_enabled(
    room: Room, tmp_path: Path
) -> None:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"off": {**GOOD, "disabled": True}}}))
    shown = await room.run("/mcp")
    assert ".mcp.json says so" in shown
    assert "/mcp enable" not in shown


async def test_permissions_are_forgotten_with_the_consent_to_start(room: Room, tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": GOOD}}))
    await room.run("/mcp")
    permissions = room.context.conversation.servers.permissions
    await room.run("/mcp start theirs")
    theirs = room.context.conversation.servers.connection("theirs").config.identity
    permissions.remember(theirs, [FORGET_TOOL], Rule.ALWAYS)
    permissions.remember(theirs, [QUERY_TOOL], Rule.SESSION)
    permissions.sampling.add("theirs")
    permissions.forbid_sampling("theirs")
    shown = await room.run("/mcp forget theirs")
    assert shown.startswith(
        "Forgotten: always allowed: Forget; allowed in this session: Query; "
        "may use the model in this session; may never use the model; may be started.\n"
    )
    assert "waits for your consent" in shown
    assert (await room.run("/mcp forget theirs")).startswith("There was nothing to forget.\n")
    assert permissions.rule(theirs, FORGET_TOOL) is permissions.rule(theirs, QUERY_TOOL) is None
    assert permissions.may_sample("theirs")
    assert permissions.sampling == set()


@pytest.fixture
async def whole_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    """A chat whose manager has started the memory's server, too."""
    monkeypatch.chdir(tmp_path)
    settings, (screen, out, err) = settings_in(tmp_path), piped_screen()
    async with ServerManager(settings) as manager:
        memory = await manager.open_memory(settings)
        async with Conversation(settings, memory, manager) as conversation:
            yield Room(ChatContext(conversation, screen, Status()), out, err)


async def test_memory_is_one_of_the_servers(whole_room: Room, tmp_path: Path) -> None:
    await whole_room.context.memory.stats()
    shown = await whole_room.run("/mcp")
    assert shown.startswith("ragmemory: ready, ")
    assert str(tmp_path / "data" / "memory.db") in shown
    assert "There are no other servers." in shown
    assert "Query  " in await whole_room.run("/mcp tools ragmemory")
    (tmp_path / "state" / "ragmemory.log").write_text("one\ntwo\n")
    assert await whole_room.run("/mcp log ragmemory") == "one\ntwo\n"


async def test_a_file_of_servers_that_cannot_be_used_does_not_hide_the_memory(
    whole_room: Room, tmp_path: Path
) -> None:
    await whole_room.context.memory.stats()
    write(tmp_path, bad={"command": 1})
    for failures, words in enumerate(("", " reload", " ragmemory", " start ragmemory"), 1):
        shown = await whole_room.say(f"/mcp{words}")
        assert shown.startswith("ragmemory: ready, "), words
        assert "mcp.json cannot be used: bad: " in shown, words
        assert "There are no other servers." not in shown, words
        assert whole_room.context.failures == failures, words


async def test_the_file_that_cannot_be_used_is_the_error_for_a_server_that_it_may_name(
    whole_room: Room, tmp_path: Path
) -> None:
    write(tmp_path, bad={"command": 1})
    with pytest.raises(ServerConfigInvalid):
        await whole_room.run("/mcp log bad")


async def test_no_server_is_kept_waiting_for_permissions_that_cannot_be_read(
    whole_room: Room, tmp_path: Path
) -> None:
    write(tmp_path, good=GOOD)
    (tmp_path / "config" / "permissions.json").write_text("{")
    await whole_room.context.memory.stats()
    for _ in range(2):
        shown = await whole_room.say("/mcp")
        assert shown.startswith("ragmemory: ready, ")
        assert "permissions.json cannot be used" in shown
        assert "good" not in shown


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
async def test_memory_can_be_restarted_and_keeps_its_documents(whole_room: Room, tmp_path: Path) -> None:
    memory = whole_room.context.memory
    await memory.inject("Green tea is brewed at 75 degrees.", {"uri": "note:tea"})
    first = {*processes_in(tmp_path)} - {os.getpid()}
    assert "ragmemory: ready" in await whole_room.run("/mcp start ragmemory")
    second = {*processes_in(tmp_path)} - {os.getpid()}
    assert len(first) == len(second) == 1
    assert first != second
    assert [hit.uri for hit in (await memory.query("tea")).hits] == ["note:tea"]


async def test_a_memory_that_cannot_be_started_says_why_among_the_servers(
    room: Room, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(tmp_path / "no-python"))
        await room.context.conversation.servers.open_memory(room.context.conversation.settings)
    shown = await room.run("/mcp start ragmemory")
    assert shown.startswith("ragmemory: failed")
    assert "no-python" in shown


async def test_memory_is_never_disabled(whole_room: Room) -> None:
    for action in ("disable", "enable", "login"):
        with pytest.raises(MemoryNotConfigurable):
            await whole_room.run(f"/mcp {action} ragmemory")


async def test_another_memory_takes_the_place_of_the_first(whole_room: Room, tmp_path: Path) -> None:
    conversation = whole_room.context.conversation
    await whole_room.context.memory.inject("The first one.", {"uri": "note:first"})
    await conversation.use_notebook(Notebook("mine", "note:mine"))
    await conversation.use_memory(settings_in(tmp_path, memory__path=str(tmp_path / "other.db")))
    assert (conversation.scope.name, conversation.scope.searched) == ("note:mine", conversation.scope)
    assert (await whole_room.context.memory.stats()).documents == 0
    assert str(tmp_path / "other.db") in await whole_room.run("/mcp")


async def test_the_rules_for_the_memory_are_forgotten_too(whole_room: Room) -> None:
    permissions = whole_room.context.conversation.servers.permissions
    permissions.remember(SERVER_NAME, [FORGET_TOOL], Rule.ALWAYS)
    await whole_room.run("/mcp forget ragmemory")
    assert permissions.rule(SERVER_NAME, FORGET_TOOL) is None


async def test_without_tools_the_memory_is_the_only_server(tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    settings, (screen, out, err) = settings_in(tmp_path), piped_screen()
    manager = ServerManager(settings, only_memory=True)
    async with manager, Conversation(settings, ListMemory(), manager) as conversation:
        room = Room(ChatContext(conversation, screen, Status()), out, err)
        assert await room.run("/mcp") == "This chat uses no other servers.\n"
        assert manager.tools() == []


async def test_servers_of_the_project_that_wait_for_consent_are_named_at_the_start(
    room: Room, tmp_path: Path
) -> None:
    assert servers_line(room.context) == ""
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": GOOD}}))
    await room.run("/mcp")
    assert servers_line(room.context) == (
        "This project names 1 MCP server that you have not agreed to: theirs. "
        "/mcp shows what would be started, /mcp start NAME starts one."
    )


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
