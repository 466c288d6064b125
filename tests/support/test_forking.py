"""Signals and ends of launchers and forked programs that come at an unlucky moment: `forking` and its two."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import fork_server, launcher
from tests.support.forking import NAME
from tests.support.processes import LONGEST_SECONDS, Held, memory_environment, wait_until_ended

if sys.platform != "linux":
    pytest.skip("programs are forked on Linux", allow_module_level=True)

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PAUSE = "import signal; signal.pause()"


def launched(address: Path, folder: Path) -> Held:
    """A memory on stdio, by way of the server at `address`."""
    python = folder / NAME
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{launcher.__file__}" "{address}" "$@"\n')
    python.chmod(0o700)
    return Held(
        [str(python), "-m", "ragmemory", "--memory", str(folder / "memory.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=memory_environment(folder),
    )


def answers(process: Held) -> bool:
    process.write(PING)
    return bool(json.loads(process.line()) == {"jsonrpc": "2.0", "id": 1, "result": {}})


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for_end(pid: int) -> None:
    """Wait until a process that another has not waited for yet has ended."""
    descriptor = os.pidfd_open(pid)
    try:
        assert select.select([descriptor], [], [], LONGEST_SECONDS)[0]
    finally:
        os.close(descriptor)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Held, Path]]:
    """A fork server of these tests alone, and its socket."""
    address = tmp_path_factory.mktemp("server") / "socket"
    command = [sys.executable, "-P", fork_server.__file__, str(address), sys.executable]
    with Held(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.line() == b"\n"
        yield process, address


def test_a_signal_that_comes_before_the_id_of_the_program_reaches_it(tmp_path: Path) -> None:
    address = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        with launched(address, tmp_path) as process, Held([sys.executable, "-c", PAUSE]) as program:
            connection, _ = listener.accept()
            with connection:
                assert connection.recv(1 << 16)
                process.terminate()
                connection.sendall(b"%d\n" % program.pid)
                assert program.wait(LONGEST_SECONDS) == -signal.SIGTERM
                process.terminate()  # Its launcher can no longer pass it on.
                connection.sendall(b"%d\n" % signal.SIGTERM)
                assert process.wait(LONGEST_SECONDS) == -signal.SIGTERM


def test_sigkill_ends_the_program_before_its_launcher(tmp_path: Path, server: tuple[Held, Path]) -> None:
    forking, address = server
    with launched(address, tmp_path) as process:
        assert answers(process)
        [program] = children(forking.pid)
        process.send_signal(signal.SIGKILL)
        assert process.wait(LONGEST_SECONDS) == -signal.SIGKILL
        assert not Path(f"/proc/{program}").exists()


def test_a_launcher_that_ends_at_any_moment_does_not_end_the_server(
    tmp_path: Path, server: tuple[Held, Path]
) -> None:
    forking, address = server
    with launched(address, tmp_path) as process:
        assert answers(process)
        [program] = children(forking.pid)
        # Before it has said what it wants, and before it has heard the id of its program.
        for said in (b"", (100).to_bytes(4), (5).to_bytes(4) + b"/\x000\x00\x00"):
            with socket.socket(socket.AF_UNIX) as early:
                early.connect(str(address))
                early.sendall(said)
        # Together with its program.
        forking.send_signal(signal.SIGSTOP)
        assert process.stdin is not None
        process.stdin.close()
        wait_for_end(program)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(LONGEST_SECONDS)
        forking.send_signal(signal.SIGCONT)
        wait_until_ended(program)
    with launched(address, tmp_path) as process:
        assert answers(process)
