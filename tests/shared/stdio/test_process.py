"""A server's process: how it starts, how it ends, and what it says when it does not (also `strays`).

Through `open_stdio`, because that is how it is used.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sys
import time
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from ragmcp.errors import ConnectionClosed, ServerNotStarted
from ragmcp.stdio import process
from ragmcp.stdio.connect import open_stdio
from ragmcp.stdio.opening import open_pipes
from ragmcp.stdio.pipes import Pipes
from ragmcp.stdio.process import ServerProcess
from ragmcp.stdio.strays import Stray
from tests.support.mcp_process import LogPipe, gone, spawned
from tests.support.processes import LONGEST_SECONDS, LogFile, open_descriptors

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups are POSIX")


async def test_a_server_that_exits_on_stdin_close_is_never_terminated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", LONGEST_SECONDS)
    # The traps would be named in the log.
    script = tmp_path / "server.py"
    script.write_text(
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('terminated', file=sys.stderr, flush=True))\n"
        "from tests.support.mcp_server import main\n"
        "main()\n"
        "print('left by itself', file=sys.stderr)\n",
        encoding="utf-8",
    )
    log = tmp_path / "log"
    async with spawned([sys.executable, str(script)], stderr=log) as client:
        await client.list_tools()
        began = time.monotonic()
    assert time.monotonic() - began < LONGEST_SECONDS
    assert log.read_text(encoding="utf-8") == "left by itself\n"


@posix
async def test_a_server_that_stays_is_terminated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", 0.1)
    monkeypatch.setattr(process, "TERMINATE_SECONDS", 2 * LONGEST_SECONDS)
    script = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit('terminated'))\n"
        "print('ready', file=sys.stderr, flush=True)\n"
        "signal.pause()\n"
    )
    with anyio.fail_after(LONGEST_SECONDS), closing(LogPipe(tmp_path / "log")) as log:
        async with spawned([sys.executable, "-c", script], stderr=log.path, era="modern"):
            await log.until("ready")
        await log.until("terminated")


@posix
async def test_a_server_that_ignores_sigterm_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", 0.1)
    monkeypatch.setattr(process, "TERMINATE_SECONDS", 0.1)
    script = (
        "import signal, subprocess, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "print('child', child.pid, '.', file=sys.stderr, flush=True)\n"
        "signal.pause()\n"
    )
    with anyio.fail_after(LONGEST_SECONDS), closing(LogPipe(tmp_path / "log")) as log:
        async with spawned([sys.executable, "-c", script], stderr=log.path, era="modern"):
            await log.until(".")
        await gone(int(log.text.split()[1]))


# A server with a child in a session of its own, which has a child too. It logs their ids.
WITH_STRAYS = """
import signal, subprocess, sys
stay = "import signal; signal.pause()"
child = "import signal, subprocess, sys\\n"
child += f"print(subprocess.Popen([sys.executable, '-c', {stay!r}]).pid, flush=True)\\nsignal.pause()"
child = subprocess.Popen([sys.executable, "-c", child], start_new_session=True, stdout=subprocess.PIPE)
print(child.pid, int(child.stdout.readline()), ".", file=sys.stderr, flush=True)
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process")


@linux
@pytest.mark.parametrize("then", ["sys.stdin.read()", "signal.pause()"])
async def test_a_child_in_a_session_of_its_own_does_not_outlive_the_server(
    then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a server that leaves by itself, and of one that is terminated."""
    monkeypatch.setattr(process, "LEAVE_SECONDS", 0.5)
    with anyio.fail_after(LONGEST_SECONDS), closing(LogPipe(tmp_path / "log")) as log:
        async with spawned([sys.executable, "-c", WITH_STRAYS + then], stderr=log.path, era="modern"):
            await log.until(".")
        for pid in log.text.split()[:2]:
            await gone(int(pid))


@linux
async def test_a_program_that_ends_at_once_kills_children_in_sessions_of_their_own(tmp_path: Path) -> None:
    with anyio.fail_after(LONGEST_SECONDS), closing(LogPipe(tmp_path / "log")) as log:
        command = [sys.executable, "-c", f"{WITH_STRAYS}signal.pause()"]
        async with spawned(command, stderr=log.path, era="modern"):
            await log.until(".")
            process.kill_all()
            for pid in log.text.split()[:2]:
                await gone(int(pid))


@linux
def test_a_process_that_has_the_id_of_an_ended_one_is_not_signalled() -> None:
    began = Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    assert Stray(os.getpid(), began).signal("")
    assert not Stray(os.getpid(), "0").signal("SIGKILL")


@posix
async def test_a_program_that_ends_at_once_kills_servers_that_would_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", 2 * LONGEST_SECONDS)
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(os.getpid(), '.', file=sys.stderr, flush=True)\n"
        "signal.pause()\n"
    )
    with anyio.fail_after(LONGEST_SECONDS), closing(LogPipe(tmp_path / "log")) as log:
        async with spawned([sys.executable, "-c", script], stderr=log.path, era="modern"):
            await log.until(".")
            process.kill_all()
            await gone(int(log.text.split()[0]))


@posix
async def test_a_server_whose_pipes_are_not_open_yet_is_killed_with_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill_and_open(read_fd: int, write_fd: int) -> AbstractAsyncContextManager[Pipes]:
        process.kill_all()
        return open_pipes(read_fd, write_fd)

    monkeypatch.setattr(process, "open_pipes", kill_and_open)
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    stderr = LogFile(tmp_path / "log")
    with anyio.fail_after(LONGEST_SECONDS):
        async with ServerProcess.start(command, stderr=stderr, env=None, cwd=None) as server:
            assert await server.stream.receive() == b""
            assert await server.exit_reason() == "it was ended by signal 9"


async def test_a_cancelled_caller_leaves_no_server_behind(tmp_path: Path) -> None:
    log = tmp_path / "log"
    pid = 0
    with anyio.move_on_after(LONGEST_SECONDS) as scope:
        async with spawned(stderr=log) as client:
            pid = int((await client.call_tool("Pid", timeout=LONGEST_SECONDS)).text)
            scope.cancel()
            await anyio.sleep_forever()
    await gone(pid)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["/no/such/program"], "The server `/no/such/program` did not start: there is no such program."),
        (
            [sys.executable, "-c", "raise SystemExit('no licence')"],
            "did not start: it ended with exit code 1; the last line of its log is: no licence.",
        ),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], "it was ended by signal 9."),
    ],
)
async def test_a_server_that_does_not_start_says_why(
    command: list[str], sentence: str, tmp_path: Path
) -> None:
    with anyio.fail_after(LONGEST_SECONDS), pytest.raises(ServerNotStarted) as failed:
        async with spawned(command, stderr=tmp_path / "log"):
            pass
    assert sentence in str(failed.value)


def test_an_error_of_no_file_names_none() -> None:
    error = OSError(errno.EIO, "Input/output error")
    assert process._reason(error, ["a-server"]) == "input/output error"


@pytest.mark.parametrize("command", ["python server.py", [], ""])
async def test_a_command_that_is_no_list_of_words_is_refused(command: Any) -> None:
    with pytest.raises(ServerNotStarted, match="a list of words, the program first"):
        async with open_stdio(command):
            pass


async def test_a_missing_working_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServerNotStarted, match="nowhere"):
        async with spawned(cwd=tmp_path / "nowhere"):
            pass


async def test_a_server_that_dies_over_a_call_fails_the_call_at_once(tmp_path: Path) -> None:
    with anyio.fail_after(LONGEST_SECONDS), pytest.raises(ConnectionClosed, match=r"tools/call.*exit code 3"):
        async with spawned(stderr=tmp_path / "log") as client:
            await client.call_tool("Die", timeout=None)


async def test_another_connections_end_keeps_its_own_reason(tmp_path: Path) -> None:
    with pytest.raises(ConnectionClosed, match="its disk is full"):
        async with spawned(stderr=tmp_path / "log"):
            raise ConnectionClosed("tools/call", "its disk is full")


@posix
async def test_ctrl_c_in_the_host_does_not_reach_the_server(tmp_path: Path) -> None:
    async with spawned(stderr=tmp_path / "log") as client:
        pid = int((await client.call_tool("Pid", timeout=LONGEST_SECONDS)).text)
        assert os.getpgid(pid) == pid != os.getpgid(0)


async def test_a_log_that_cannot_be_written_is_named_and_nothing_leaks(tmp_path: Path) -> None:
    before = open_descriptors()
    for _ in range(3):
        with pytest.raises(ServerNotStarted, match=r"no such file or directory .*nowhere"):
            async with spawned(stderr=tmp_path / "nowhere" / "log"):
                pass
    assert open_descriptors() <= before


@posix
async def test_who_is_interrupted_twice_leaves_no_server_behind_and_does_not_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LEAVE_SECONDS", LONGEST_SECONDS)
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(os.getpid(), flush=True)\n"
        "sys.stdin.read()\n"
        "print('stays', file=sys.stderr, flush=True)\n"
        "while True: signal.pause()\n"
    )
    started = anyio.Event()
    pid = 0

    async def host() -> None:
        command = [sys.executable, "-c", script]
        nonlocal pid
        async with ServerProcess.start(command, stderr=LogFile(log.path), env=None, cwd=None) as server:
            pid = int(await server.stream.receive())
            started.set()
            await anyio.sleep_forever()

    with anyio.fail_after(LONGEST_SECONDS / 2), closing(LogPipe(tmp_path / "log")) as log:
        # As asyncio's own Ctrl-C does it: not through a scope.
        task = asyncio.create_task(host())
        await started.wait()
        task.cancel()
        await log.until("stays")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await gone(pid)
