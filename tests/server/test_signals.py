"""A server ends within a second of its reason to, whatever its threads are doing: real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.http_memory import http_memory
from tests.support.ports import free_port
from tests.support.processes import LONGEST_SECONDS, Held, memory_command, memory_environment

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")

# A server ends within a second; a very busy machine may take many times as long.
ENDING_SECONDS = 20.0
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'

# The program, with a memory whose opening keeps a thread for ever.
STUCK = """
import sys, threading
from ragmemory import app
from ragmemory.cli import main

def make_service(settings):
    sys.stderr.write("stuck\\n")
    threading.Event().wait()

app.make_service = make_service
raise SystemExit(main())
"""


def stuck_command(folder: Path, *arguments: str) -> list[str]:
    python, _, _, *words = memory_command(folder, *arguments)
    return [python, "-c", STUCK, *words]


@contextmanager
def stuck_memory(folder: Path) -> Iterator[Held]:
    """A server on stdio that has answered, and now warms up without end."""
    process = Held(
        stuck_command(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=memory_environment(folder),
    )
    with process:
        process.write(PING)
        assert json.loads(process.line())["result"] == {}
        assert process.error_line() == b"stuck\n"
        yield process


def test_a_closed_stdin_ends_a_server_whose_thread_is_busy(tmp_path: Path) -> None:
    with stuck_memory(tmp_path) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(ENDING_SECONDS) == 0


@posix
@pytest.mark.full
def test_a_closed_stdout_ends_a_server_whose_thread_is_busy(tmp_path: Path) -> None:
    with stuck_memory(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(ENDING_SECONDS) == 0


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.full
def test_a_signal_ends_a_server_whose_thread_is_busy(tmp_path: Path, number: signal.Signals) -> None:
    with stuck_memory(tmp_path) as process:
        process.send_signal(number)
        assert process.wait(ENDING_SECONDS) == 0


@posix
@pytest.mark.full
def test_a_signal_ends_a_server_over_http_whose_thread_is_busy(tmp_path: Path) -> None:
    command = stuck_command(tmp_path, "http")
    with http_memory(tmp_path, command=command, RAGCHAT_HTTP_LEAVE_SECONDS="0.5") as server:
        server.process.terminate()
        assert server.process.wait(ENDING_SECONDS) == 0


@posix
@pytest.mark.full
def test_a_bridge_ends_when_the_host_closes_stdout_and_keeps_stdin_open(tmp_path: Path) -> None:
    process = Held(
        memory_command(tmp_path, "bridge", f"http://127.0.0.1:{free_port()}/mcp", "--spawn"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=memory_environment(tmp_path),
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(PING)
        process.stdin.flush()
        assert process.line()
        process.stdout.close()
        assert process.wait(ENDING_SECONDS) == 0


@posix
@pytest.mark.full
def test_a_bridge_without_a_server_does_not_outlive_its_host_by_every_notification(tmp_path: Path) -> None:
    """Each of them waits for the server to come back: all together far longer than the test."""
    python, _, _, *words = memory_command(tmp_path, "bridge", f"http://127.0.0.1:{free_port()}/mcp")
    set_limit = "from ragmcp.stdio import serve; serve.FINISH_SECONDS = 0.5"
    code = f"{set_limit}; from ragmemory.cli import main; raise SystemExit(main())"
    process = Held([python, "-c", code, *words], stdin=subprocess.PIPE, env=memory_environment(tmp_path))
    with process:
        assert process.stdin is not None
        process.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n' * 50)
        process.stdin.close()
        assert process.wait(LONGEST_SECONDS) == 0


@posix
def test_a_signal_ends_a_process_whose_event_loop_is_blocked() -> None:
    code = """
        import threading
        from functools import partial
        import anyio
        from ragmemory.signals import exit_within, stop_signal

        async def block() -> None:
            async with anyio.create_task_group() as tasks:
                await tasks.start(stop_signal, partial(exit_within, 0.1))
                print("blocked", flush=True)
                threading.Event().wait()

        anyio.run(block)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with Held(command, stdout=subprocess.PIPE, env=os.environ) as process:
        assert process.line() == b"blocked\n"
        process.terminate()
        assert process.wait(ENDING_SECONDS) == 0


@posix
@pytest.mark.full
def test_a_signal_leaves_nothing_that_was_acknowledged_unsaved(tmp_path: Path) -> None:
    """However short the time: an acknowledged write is on the disk."""
    process = Held(
        memory_command(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=memory_environment(tmp_path),
    )
    with process:
        assert process.stdin is not None
        arguments = {"text": "Foxes jump over lazy dogs. " * 20_000, "metadata": {"uri": "fox"}}
        process.stdin.write(_inject(arguments))
        process.stdin.flush()
        answer = json.loads(process.line())
        assert answer["result"]["structuredContent"]["status"] == "added"
        process.terminate()
        assert process.wait(ENDING_SECONDS) == 0
    done = subprocess.run(
        memory_command(tmp_path),
        input=_inject(arguments),
        stdout=subprocess.PIPE,
        env=memory_environment(tmp_path),
        check=True,
    )
    assert json.loads(done.stdout)["result"]["structuredContent"]["status"] == "unchanged"


def _inject(arguments: Mapping[str, object]) -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "Inject", "arguments": arguments, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode() + b"\n"
