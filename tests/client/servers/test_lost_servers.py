"""Servers that die, or are gone for a while, as `ServerManager` meets them (`connection`, `supervisor`)."""

from __future__ import annotations

import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from ragchat.servers import supervisor
from ragchat.servers.managed import ServerState
from ragmcp.backoff import Backoff
from tests.support import peers
from tests.support.mcp_http import COMMAND
from tests.support.peers import PeerName, running
from tests.support.ports import free_port
from tests.support.servers import DEAD, GOOD, managed, tool, write

DYING = {**GOOD, "args": ["-m", "tests.support.dying_server"]}


@pytest.mark.parametrize(("name", "calls"), [("look", 2), ("keep", 2), ("change", 1)])
async def test_only_what_may_be_repeated_is_called_again_when_the_server_dies(
    tmp_path: Path, name: str, calls: int
) -> None:
    write(tmp_path, dying=DYING)
    file = tmp_path / "calls"
    async with managed(tmp_path) as manager:
        result = await tool(manager, f"dying__{name}").call({"file": str(file)})
        assert result.ok is (calls == 2)
        assert "exit code 3" in result.text or result.ok
        # The server is there again, and the call is not made behind our back.
        assert (await tool(manager, "dying__look").call({"file": str(tmp_path / "other")})).ok
    assert file.read_text("utf-8").count("called") == calls


async def test_a_server_that_keeps_dying_is_started_ever_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    enough = anyio.Event()

    class Recorded(Backoff):
        def next(self) -> float:
            pauses.append(super().next())
            if len(pauses) == 6:
                enough.set()
            return 0

    monkeypatch.setattr(supervisor, "Backoff", Recorded)
    write(tmp_path, dead=DEAD)
    async with managed(tmp_path) as manager:
        await enough.wait()
        assert manager.connections["dead"].state is ServerState.FAILED
    assert sum(pauses[3:6]) > 2 * sum(pauses[:3])


REMOTE: dict[str, tuple[PeerName | None, str, dict[str, Any]]] = {
    "ours": (None, "Echo", {"text": "5"}),
    "mcp2": ("mcp2", "add", {"a": 2, "b": 3}),
    "mcp1": ("mcp1", "add", {"a": 2, "b": 3}),
}


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("peer", REMOTE)
@pytest.mark.full
async def test_a_remote_server_that_was_killed_is_used_again_on_the_same_port(
    tmp_path: Path, peer: str
) -> None:
    library, name, arguments = REMOTE[peer]
    if library:
        peers.need(library)
    command = peers.server_command(library, "http") if library else COMMAND
    port, log = free_port(), tmp_path / "log"
    write(tmp_path, remote={"url": f"http://127.0.0.1:{port}/mcp"})
    async with AsyncExitStack() as stack:
        with running(command, log, port, end=signal.SIGKILL):
            manager = await stack.enter_async_context(managed(tmp_path))
            remote = manager.connections["remote"]
            assert remote.state is ServerState.READY, remote.failure
            called = tool(manager, f"remote__{name}")
            assert (await called.call(arguments)).text == "5"
        failed = await called.call(arguments)
        # The call or the server's own stream finds it first.
        assert (failed.ok, "nothing listens there" in failed.text) == (False, True), failed.text
        with running(command, log, port):
            assert (await called.call(arguments)).text == "5"
            assert remote.state is ServerState.READY
