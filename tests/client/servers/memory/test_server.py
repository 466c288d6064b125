"""The state of the memory's server, as the manager shows it. Found servers: see `test_running`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from ragchat.memory.client import MemoryClient
from ragchat.servers.managed import ServerState
from ragchat.servers.memory import running
from ragchat.servers.memory.server import find_memory_server
from tests.support.http_memory import http_memory
from tests.support.processes import LONGEST_SECONDS, processes_in
from tests.support.turns import settings_in


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
async def test_a_server_that_is_killed_is_ready_again_with_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with anyio.fail_after(LONGEST_SECONDS):
        async with await find_memory_server(settings_in(tmp_path)) as server:
            memory = MemoryClient(server)
            await memory.inject("Green tea is brewed at 75 degrees.", {"uri": "note:tea"})
            assert (server.state, server.failure) == (ServerState.READY, None)
            [pid] = {*processes_in(tmp_path)} - {os.getpid()}
            os.kill(pid, signal.SIGKILL)
            while server.state is ServerState.READY:
                await anyio.lowlevel.checkpoint()
            assert server.state is ServerState.FAILED
            assert "closed" in str(server.failure)
            assert (await memory.stats()).documents == 1
            assert (server.state, server.failure) == (ServerState.READY, None)


async def test_a_server_that_was_found_is_ready_and_replaced_by_one_of_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "PROOF_SECONDS", LONGEST_SECONDS)  # A busy machine answers late.
    settings = settings_in(tmp_path / "home", memory__path=str(tmp_path / "memory.db"))
    with http_memory(tmp_path) as found:
        async with await find_memory_server(settings) as server:
            assert (server.url, server.shown) == (found.root, found.root)
            assert server.state is ServerState.READY
            await server.restart()
            assert await server.known_tools()
            assert (server.state, server.url) == (ServerState.READY, "")
            assert server.shown.endswith("memory.db")
