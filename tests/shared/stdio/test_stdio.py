"""The server on its standard streams (`serve`) and the client that starts it (`connect`): real pipes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from ragmcp.client.features import EraName
from ragmcp.errors import MessageTooLarge, RequestTimedOut, ServerNotStarted, WireError
from ragmcp.stdio.connect import open_stdio
from tests.support.mcp_process import ENV, SERVER, gone, spawned
from tests.support.processes import LONGEST_SECONDS, Held

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups are POSIX")
# A server ends within a second; on a busy machine a few more pass.
ENDING_SECONDS = 5.0
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"clientInfo":{"name":"tests","version":"0"},"capabilities":{}}}\n'
)


def produce(characters: int) -> bytes:
    """A request whose answer is that long."""
    params = {"name": "Produce", "arguments": {"characters": characters}}
    return json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).encode() + b"\n"


def asked(server: Held, lines: bytes) -> bytes:
    """The first line of the answer to these requests."""
    assert server.stdin is not None
    server.stdin.write(lines)
    server.stdin.flush()
    return server.line()


@pytest.mark.parametrize("era", ["modern", "legacy", None])
async def test_a_server_is_started_asked_and_ended(era: EraName | None, tmp_path: Path) -> None:
    with anyio.fail_after(LONGEST_SECONDS):
        async with spawned(era=era, stderr=tmp_path / "log") as client:
            tools = await client.list_tools()
            assert {tool.name for tool in tools} >= {"Echo", "Add"}
            assert client.server.name == "test-server"
            assert client.revision == ("2025-11-25" if era == "legacy" else "2026-07-28")
            assert (await client.call_tool("Add", {"a": 3}, timeout=LONGEST_SECONDS)).structured(dict) == {
                "total": 4
            }


# A server of 2025-11-25 that notes the first request of each start, and exits if it is another than this one.
HANDSHAKE_OR_EXIT = """
import json, os, sys
first = json.loads(sys.stdin.readline())
with open(sys.argv[1], "a") as starts:
    print(first["method"], file=starts)
if first["method"] != "initialize":
    sys.exit(1)
result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}
os.write(1, json.dumps({"jsonrpc": "2.0", "id": first["id"], "result": result}).encode() + b"\\n")
sys.stdin.read()
"""


async def test_a_server_that_exits_at_the_probe_is_started_again_for_the_handshake(tmp_path: Path) -> None:
    """As servers of the Rust SDK 1.x do. The next start, without a probe, is the only one."""
    starts = tmp_path / "starts"
    command = [sys.executable, "-c", HANDSHAKE_OR_EXIT, str(starts)]
    for _ in range(2):
        async with open_stdio(command) as client:
            assert (client.server.name, client.revision) == ("old", "2025-11-25")
    assert starts.read_text().split() == ["server/discover", "initialize", "initialize"]


async def test_the_era_of_a_server_is_looked_for_again_after_a_failed_start(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    command = [sys.executable, "-c", HANDSHAKE_OR_EXIT, str(starts)]
    async with open_stdio(command):
        pass
    starts.unlink()
    starts.mkdir()  # It can note nothing, and exits.
    with pytest.raises(ServerNotStarted, match="it ended with exit code 1"):
        async with open_stdio(command):
            pass
    starts.rmdir()
    async with open_stdio(command) as client:
        assert client.server.name == "old"
    assert starts.read_text().split() == ["server/discover", "initialize"]


def killed_parent(stdin: int) -> int:
    """Let a process start a server on `stdin`, and kill it once the server has answered; the server's pid."""
    script = (
        "import os, signal, subprocess\n"
        f"command, stdin = {SERVER!r}, {stdin}\n"
        "server = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, start_new_session=True)\n"
        "os.write(1, b'%d\\n' % server.pid)\n"
        "os.write(1, server.stdout.readline())\n"
        "signal.pause()\n"
    )
    command = [sys.executable, "-c", script]
    with Held(command, stdout=subprocess.PIPE, pass_fds=[stdin], env=ENV) as parent:
        pid = int(parent.line())
        assert b"result" in parent.line()
    return pid


@posix
async def test_a_parent_killed_without_closing_stdin_leaves_no_orphan() -> None:
    # This test holds the other end of the server's stdin, so it stays open when the parent dies.
    read_end, write_end = os.pipe()
    os.write(write_end, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    pid = await anyio.to_thread.run_sync(killed_parent, read_end)
    os.close(read_end)
    await gone(pid)
    os.close(write_end)


async def test_stray_prints_of_python_and_of_c_go_to_stderr(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with spawned(stderr=log) as client:
        assert (await client.call_tool("Shout", timeout=LONGEST_SECONDS)).text == "shouted"
        assert (
            await client.call_tool("Echo", {"text": "still here"}, timeout=LONGEST_SECONDS)
        ).text == "still here"
    assert set(log.read_text(encoding="utf-8").splitlines()) == {"from Python", "from C", "from a descriptor"}


async def test_a_call_that_takes_too_long_is_cancelled_in_the_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with spawned(stderr=log) as client:
        with pytest.raises(RequestTimedOut, match=r"within 0\.2 s"):
            await client.call_tool("Wait", timeout=0.2)
        # Answers when none is under way any more: on a slow machine none may have begun at all.
        assert (await client.call_tool("Quiet", timeout=LONGEST_SECONDS)).text == "quiet"
        assert (await client.call_tool("Add", {"a": 1}, timeout=LONGEST_SECONDS)).structured(dict) == {
            "total": 2
        }
    said = log.read_text(encoding="utf-8")
    assert said.count("Wait was cancelled") == said.count("Wait began")


async def test_cancelling_the_wait_cancels_the_call(tmp_path: Path) -> None:
    log = tmp_path / "log"
    began = anyio.Event()

    async def wait() -> None:
        await client.call_tool("Wait", {"progress": 1}, timeout=None, on_progress=lambda *_: began.set())

    with anyio.fail_after(LONGEST_SECONDS):
        async with spawned(stderr=log) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await began.wait()
                tasks.cancel_scope.cancel()
            assert (await client.call_tool("Quiet", timeout=None)).text == "quiet"
    assert log.read_text(encoding="utf-8").splitlines() == ["Wait began", "Wait was cancelled"]


async def test_progress_arrives_while_the_call_runs(tmp_path: Path) -> None:
    news: list[tuple[float, float | None, str | None]] = []
    second = anyio.Event()

    def listen(done: float, total: float | None, message: str | None) -> None:
        news.append((done, total, message))
        if done == 2:
            second.set()

    with anyio.fail_after(LONGEST_SECONDS):
        async with spawned(stderr=tmp_path / "log") as client, anyio.create_task_group() as tasks:
            # It never ends by itself.
            tasks.start_soon(
                lambda: client.call_tool("Wait", {"progress": 2}, timeout=None, on_progress=listen)
            )
            await second.wait()
            tasks.cancel_scope.cancel()
    assert news == [(1, 2, "working"), (2, 2, "working")]


async def test_64_mib_go_through_in_both_directions() -> None:
    size = 64 * 2**20
    with anyio.fail_after(LONGEST_SECONDS):
        async with spawned() as client:
            sent = await client.call_tool("Measure", {"text": "x" * size}, timeout=None)
            assert sent.structured(dict) == {"characters": size}
            received = await client.call_tool("Produce", {"characters": size}, timeout=None)
            assert len(received.text) == size


async def test_over_its_limit_a_server_says_so_and_lives_on() -> None:
    async with spawned([*SERVER, str(2**20)]) as client:
        with pytest.raises(WireError, match="over the limit of 1,048,576 bytes"):
            await client.call_tool("Echo", {"text": "x" * 2**21}, timeout=LONGEST_SECONDS)
        assert (await client.call_tool("Echo", {"text": "short"}, timeout=LONGEST_SECONDS)).text == "short"


async def test_over_its_limit_a_client_says_so_and_lives_on() -> None:
    async with spawned(message_bytes=2**20) as client:
        with pytest.raises(MessageTooLarge, match="over the limit of 1,048,576 bytes"):
            await client.call_tool("Produce", {"characters": 2**21}, timeout=LONGEST_SECONDS)
        assert (await client.call_tool("Echo", {"text": "short"}, timeout=LONGEST_SECONDS)).text == "short"


async def test_a_large_result_that_nobody_reads_does_not_stop_other_work(tmp_path: Path) -> None:
    async with spawned(stderr=tmp_path / "log") as client, anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(
                lambda: client.call_tool("Produce", {"characters": 2**23}, timeout=LONGEST_SECONDS)
            )
        assert (await client.call_tool("Add", {"a": 1}, timeout=LONGEST_SECONDS)).structured(dict) == {
            "total": 2
        }


def test_requests_from_a_file_are_answered_before_the_server_leaves(tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    lines = (f'{{"jsonrpc":"2.0","id":{id},"method":"ping"}}\n' for id in range(3))
    requests.write_text("".join(lines), encoding="utf-8")
    with requests.open("rb") as stdin:
        done = subprocess.run(SERVER, stdin=stdin, capture_output=True, timeout=LONGEST_SECONDS, env=ENV)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers == [{"jsonrpc": "2.0", "id": id, "result": {}} for id in range(3)]
    assert (done.returncode, done.stderr) == (0, b"")


@posix
def test_a_server_whose_stderr_is_closed_still_serves() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *SERVER],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        stdout=subprocess.PIPE,
        timeout=LONGEST_SECONDS,
        env=ENV,
    )
    assert json.loads(done.stdout)["result"] == {}


@posix
def test_a_server_at_a_terminal_ends_with_ctrl_c(tmp_path: Path) -> None:
    """The thread that reads the terminal cannot be told anything."""
    import pty

    ours, theirs = pty.openpty()
    try:
        with (
            (tmp_path / "log").open("wb") as log,
            Held(SERVER, stdin=theirs, stdout=subprocess.PIPE, stderr=log, env=ENV) as server,
        ):
            os.write(ours, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            assert json.loads(server.line())["result"] == {}
            server.send_signal(signal.SIGINT)
            server.wait(LONGEST_SECONDS)
    finally:
        os.close(ours)
        os.close(theirs)


@posix
def test_a_server_whose_answers_nobody_reads_ends_when_its_stdin_is_closed() -> None:
    with Held(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV) as server:
        assert server.stdin is not None
        # The second request stays in the pipe: while answers wait, requests are not read.
        asked(server, INITIALIZE + produce(2**23))
        server.stdin.write(produce(2**23))
        server.stdin.close()
        assert server.wait(ENDING_SECONDS) == 0


def test_an_answer_that_is_read_slowly_arrives_whole_after_stdin_is_closed() -> None:
    # However slowly: on a busy machine, nothing may be read for longer than a server allows.
    limit = f"from ragmcp.stdio import serve; serve.UNREAD_SECONDS = {LONGEST_SECONDS}"
    command = [sys.executable, "-c", f"{limit}; from tests.support.mcp_server import main; main()"]
    with Held(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        asked(server, INITIALIZE + produce(2**23))
        server.stdin.close()
        size = 0
        while part := server.stdout.read(2**16):
            size += len(part)
        assert size > 2**23
        assert server.wait(ENDING_SECONDS) == 0


@posix
@pytest.mark.parametrize("last", [b"", PING], ids=["idle", "answering"])
def test_a_server_ends_when_the_host_closes_stdout_and_keeps_stdin_open(last: bytes) -> None:
    with Held(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert json.loads(asked(server, PING))["result"] == {}
        server.stdout.close()
        with suppress(BrokenPipeError):  # It may have noticed before.
            os.write(server.stdin.fileno(), last)
        assert server.wait(ENDING_SECONDS) == 0


@posix
def test_a_server_at_a_terminal_ends_when_its_stdout_is_closed() -> None:
    """Its descriptors are read and written by threads."""
    ours, theirs = os.openpty()
    try:
        with Held(SERVER, stdin=theirs, stdout=subprocess.PIPE, env=ENV) as server:
            assert server.stdout is not None
            os.write(ours, PING)
            assert json.loads(server.line())["result"] == {}
            server.stdout.close()
            assert server.wait(ENDING_SECONDS) == 0
    finally:
        os.close(ours)
        os.close(theirs)


@posix
def test_a_host_that_shares_one_socket_for_both_directions_is_answered_after_it_has_said_all() -> None:
    ours, theirs = socket.socketpair()
    with ours, Held(SERVER, stdin=theirs.fileno(), stdout=theirs.fileno(), env=ENV) as server:
        theirs.close()
        ours.sendall(PING)
        ours.shutdown(socket.SHUT_WR)
        with ours.makefile("rb") as answers:
            assert json.loads(answers.readline())["result"] == {}
        assert server.wait(ENDING_SECONDS) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_stdout_that_cannot_be_written_ends_the_server_with_a_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        log.open("wb") as stderr,
        Path("/dev/full").open("wb") as full,
        Held(SERVER, stdin=subprocess.PIPE, stdout=full, stderr=stderr, env=ENV) as server,
    ):
        assert server.stdin is not None
        server.stdin.write(PING)
        server.stdin.flush()
        assert server.wait(ENDING_SECONDS) == 0
    assert log.read_text(encoding="utf-8") == "stdout cannot be written: No space left on device\n"
