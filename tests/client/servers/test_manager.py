"""Several servers at once, each a real process: `managed`, `connection` and `environment` too."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from statistics import quantiles

import anyio
import anyio.lowlevel
import pytest

from ragchat.errors import ServerNotReady, UnknownServer
from ragchat.servers.configs import PROJECT_FILE
from ragchat.servers.managed import ServerState
from ragchat.servers.permissions import Rule
from ragchat.servers.tools import OfferedTool
from ragchat.turn.approval import Decision, decide
from ragchat.turn.tools import Toolbox
from ragcommon.hosts import SERVER_NAME
from ragmcp.concurrency import background_task
from ragmcp.stdio import process
from tests.support.mcp_process import SERVER, gone
from tests.support.processes import LONGEST_SECONDS, processes_in
from tests.support.servers import (
    CHANGING,
    COMPLAINING,
    DEAD,
    GOOD,
    LOGGING,
    NOISY,
    RUBBISH,
    SILENT,
    STUBBORN,
    managed,
    tool,
    write,
)
from tests.support.turns import QUERY_TOOL, ListMemory

GONE = {"command": "there-is-no-such-program"}
CHATTY = {
    "command": sys.executable,
    "args": ["-c", "while True: print('this is not JSON-RPC', flush=True)"],
}
# It prints a line to stdout, and then never anything.
GREETING = {
    "command": sys.executable,
    "args": [
        "-c",
        r"import sys; print('\x1b[31m[INFO] ready\x00 ' + 'x' * 300, flush=True); sys.stdin.read()",
    ],
}


# It announces a log whose level it does not let clients set.
WITHOUT_LEVEL = {
    "command": sys.executable,
    "args": [
        "-c",
        """
import json, sys
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"logging": {}, "tools": {}},
        "serverInfo": {"name": "x", "version": "0"},
    },
    "tools/list": {"tools": [{"name": "bad"}, {"name": "good", "inputSchema": {"type": "object"}}]},
}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = RESULTS.get(asked["method"])
        answer = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
""",
    ],
}


async def test_the_tools_of_all_servers_that_started_are_offered_under_their_names(tmp_path: Path) -> None:
    write(tmp_path, one=GOOD, two=GOOD, gone=GONE)
    async with managed(tmp_path) as manager:
        names = [tool.name for tool in manager.tools()]
        assert {"one__Echo", "two__Echo"} <= {*names}
        assert not [name for name in names if name.startswith("gone")]
        assert manager.connections["gone"].state is ServerState.FAILED
        assert "there is no such program" in str(manager.connections["gone"].failure)
        echo = tool(manager, "two__Echo")
        result = await echo.call({"text": "hello"})
        assert (result.ok, result.text) == (True, "hello")


async def test_a_server_is_used_without_what_it_lacks(tmp_path: Path) -> None:
    write(tmp_path, one=WITHOUT_LEVEL)
    async with managed(tmp_path) as manager:
        assert [tool.name for tool in manager.tools()] == ["one__good"]
        [left_out] = manager.connections["one"].left_out
        assert left_out.startswith("The tool bad is left out: ")


async def test_a_server_called_memory_is_not_taken_for_the_memory(tmp_path: Path) -> None:
    write(tmp_path, memory=GOOD)
    async with managed(tmp_path) as manager:
        offered = await Toolbox(ListMemory(), (), 5.0, manager, budget=10_000).tools()
        assert offered["memory__Echo"].server == "memory" != SERVER_NAME


@pytest.mark.full
async def test_servers_that_hang_or_write_rubbish_do_not_disturb_the_others(tmp_path: Path) -> None:
    write(tmp_path, good=GOOD, silent=SILENT, chatty=CHATTY, greeting=GREETING)
    async with managed(tmp_path, start_seconds=8.0) as manager:
        states = {name: connection.state for name, connection in manager.connections.items()}
        assert states == {
            "good": ServerState.READY,
            "silent": ServerState.FAILED,
            "chatty": ServerState.FAILED,
            "greeting": ServerState.FAILED,
        }
        failures = [manager.connections[name].failure for name in ("silent", "greeting")]
        late = "The server did not answer its start within 8 s."
        assert [str(failure) for failure in failures] == [late, late]
        assert [failure.hint for failure in failures if failure] == [
            "",
            f"It printed what is no JSON-RPC message: [INFO] ready␀ {'x' * 85}…",
        ]
        add = tool(manager, "good__Add")
        assert (await add.call({"a": 1, "b": 2})).ok


async def test_a_call_that_fails_is_a_result_that_a_model_can_read(tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    async with managed(tmp_path) as manager:
        add = tool(manager, "good__Add")
        result = await add.call({"a": "one"})
        assert not result.ok
        assert "$.a" in result.text


async def test_tools_that_a_server_adds_are_offered_without_a_restart(tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    async with managed(tmp_path) as manager:
        assert (await tool(manager, "good__Grow").call({})).text == "grown"
        while "good__Grown" not in {tool.name for tool in manager.tools()}:
            await anyio.lowlevel.checkpoint()


async def test_a_server_of_a_project_waits_for_the_users_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / PROJECT_FILE).write_text(json.dumps({"mcpServers": {"theirs": GOOD}}))
    async with managed(tmp_path) as manager:
        assert [config.name for config in manager.unasked()] == ["theirs"]
        assert manager.tools() == []
        with pytest.raises(ServerNotReady, match="consent"):
            await manager.connections["theirs"].call(QUERY_TOOL, {"query": "x"})
        manager.agree("theirs")
        await manager.connections["theirs"].wait_started()
        assert manager.tools()
    async with managed(tmp_path) as manager:
        assert not manager.unasked()


async def test_a_tool_of_a_projects_server_is_allowed_for_exactly_this_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decisions: list[Decision] = []
    for project in ("one", "other", "one"):
        folder = tmp_path / project
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        (folder / PROJECT_FILE).write_text(json.dumps({"mcpServers": {"notes": GOOD}}))
        async with managed(tmp_path) as manager:
            manager.agree("notes")
            await manager.connections["notes"].wait_started()
            echo = tool(manager, "notes__Echo")
            decisions.append(decide(echo, manager.permissions, []))
            if decisions == [Decision.ASK]:
                manager.permissions.remember(echo.identity, [echo.info], Rule.ALWAYS)
    assert decisions == [Decision.ASK, Decision.ASK, Decision.RUN]


async def test_a_reload_starts_new_servers_ends_removed_ones_and_leaves_the_others(
    tmp_path: Path,
) -> None:
    write(tmp_path, stays=GOOD, goes=GOOD)
    async with managed(tmp_path) as manager:
        stays = manager.connections["stays"]
        manager.permissions.sampling |= {"stays", "goes"}
        write(tmp_path, stays=GOOD, comes=GOOD)
        manager.start()
        await manager.connections["comes"].wait_started()
        assert [*manager.connections] == ["stays", "comes"]
        assert manager.connections["stays"] is stays
        assert manager.permissions.sampling == {"stays"}
        with pytest.raises(UnknownServer, match="goes"):
            manager.connection("goes")


async def test_a_disabled_server_is_not_started(tmp_path: Path) -> None:
    write(tmp_path, off={**GOOD, "disabled": True})
    async with managed(tmp_path) as manager:
        assert manager.connections["off"].state is ServerState.DISABLED


async def test_a_third_party_server_gets_the_variables_named_for_it_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-others")
    monkeypatch.setenv("MINE", "for the server")
    write(tmp_path, good={**GOOD, "env": {**GOOD["env"], "GIVEN": "${MINE}"}})
    async with managed(tmp_path) as manager:
        environ = tool(manager, "good__Environment")
        names = (await environ.call({})).text.split()
        assert "GIVEN" in names
        assert not {"OPENAI_API_KEY", "MINE"} & {*names}


BAD = {
    "dead": DEAD,
    "stubborn": STUBBORN,
    "noisy": NOISY,
    "complaining": COMPLAINING,
    "rubbish": RUBBISH,
    "logging": LOGGING,
    "changing": CHANGING,
}
ROUNDS, CALLS = 5, 40


async def turns_during_calls(echo: OfferedTool) -> list[float]:
    """The processor time, in seconds, that each turn of the event loop takes while calls are answered.

    Wall-clock time would be that of a busy machine: the server that answers competes with the others there.
    """
    turns: list[float] = []

    async def watch() -> None:
        while True:
            began = time.thread_time()
            await anyio.lowlevel.checkpoint()
            turns.append(time.thread_time() - began)

    async with background_task(watch):
        for _ in range(CALLS):
            assert (await echo.call({"text": "x"})).ok
    return turns


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # The manager may have ended it, or it has failed.
            os.kill(pid, number)


def longest(turns: list[float]) -> float:
    """Of the turns, one in a hundred takes longer."""
    return quantiles(turns, n=100)[-1]


@pytest.mark.skipif(sys.platform != "linux", reason="the processes of a folder are found on Linux")
@pytest.mark.full
async def test_servers_that_misbehave_do_not_slow_down_the_calls_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", 0.5)
    folder = tmp_path / "bad"
    folder.mkdir()
    write(tmp_path, good=GOOD, **{name: {**bad, "cwd": str(folder)} for name, bad in BAD.items()})
    settled = ["good", "dead", "logging", "changing"]
    # Several hundred calls, each of which waits for a processor beside servers that never rest.
    async with managed(tmp_path, settled=settled, longest=4 * LONGEST_SECONDS) as manager:
        echo = tool(manager, "good__Echo")
        alone: list[float] = []
        among: list[float] = []
        for _ in range(ROUNDS):  # In turns: a busy machine differs from moment to moment.
            among += await turns_during_calls(echo)
            running = processes_in(folder)
            send_signal(running, signal.SIGSTOP)
            alone += await turns_during_calls(echo)
            send_signal(running, signal.SIGCONT)
        assert longest(among) < 4 * longest(alone) + 0.002
        assert {manager.connections[name].state for name in ("logging", "changing")} == {ServerState.READY}


@pytest.mark.skipif(sys.platform == "win32", reason="the length of logs is limited on POSIX")
@pytest.mark.full
async def test_what_misbehaving_servers_leave_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", 0.5)
    write(tmp_path, stubborn=STUBBORN, noisy=NOISY, rubbish=RUBBISH)
    async with managed(tmp_path, settled=["rubbish"]) as manager:
        assert "invalid lines" in str(manager.connections["rubbish"].failure)
        noisy = manager.connections["noisy"].log
        while not noisy.with_suffix(".log.1").exists():
            await anyio.lowlevel.checkpoint()
        assert sum(file.stat().st_size for file in noisy.parent.iterdir()) < 5 * 2**20
        began = anyio.current_time()
    assert anyio.current_time() - began < LONGEST_SECONDS / 2


@pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX")
async def test_a_wrapper_leaves_no_server_behind(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    command = f"sleep 1000 & echo $! > {shlex.quote(str(pid))}; exec {shlex.join(SERVER)}"
    write(tmp_path, wrapped={**GOOD, "command": "sh", "args": ["-c", command]})
    async with managed(tmp_path) as manager:
        assert manager.connections["wrapped"].state is ServerState.READY
    await gone(int(pid.read_text()))


async def test_a_server_that_died_is_started_by_the_next_call(tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    async with managed(tmp_path) as manager:
        died = await tool(manager, "good__Die").call({})
        assert (died.ok, "exit code 3" in died.text) == (False, True)
        assert (await tool(manager, "good__Echo").call({"text": "back"})).text == "back"


async def test_a_server_that_prints_without_a_line_end_is_given_up(tmp_path: Path) -> None:
    endless = "import os\nwhile True: os.write(1, bytes(65536))"
    write(tmp_path, endless={"command": sys.executable, "args": ["-c", endless]})
    async with managed(tmp_path) as manager:
        [connection] = manager.connections.values()
        assert connection.state is ServerState.FAILED
        assert "more than 256 MiB without a line end" in str(connection.failure)
