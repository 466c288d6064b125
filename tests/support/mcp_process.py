"""The tests' own MCP server as a real process, and what other processes log, and when they end."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, closing, suppress
from pathlib import Path

import anyio
import pytest

from ragmcp.client.features import Client, EraName
from ragmcp.stdio.connect import open_stdio
from tests.support.processes import LONGEST_SECONDS, LogFile

ROOT = Path(__file__).resolve().parents[2]
SERVER = [sys.executable, "-m", "tests.support.mcp_server"]
MESSAGE_BYTES = 200 * 2**20
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}


def spawned(
    command: Sequence[str] = SERVER,
    *,
    stderr: Path | None = None,
    cwd: Path | None = None,
    era: EraName | None = None,
    message_bytes: int = MESSAGE_BYTES,
) -> AbstractAsyncContextManager[Client]:
    """`open_stdio` of the tests' own server, or of another command."""
    return open_stdio(
        command,
        client_name="tests",
        client_version="0",
        message_bytes=message_bytes,
        stderr=None if stderr is None else LogFile(stderr),
        env=ENV,
        cwd=cwd,
        era=era,
    )


async def gone(pid: int) -> None:
    """Wait until a process that is not our child has ended. POSIX."""
    with anyio.fail_after(LONGEST_SECONDS), suppress(ProcessLookupError):
        if sys.platform == "linux":
            descriptor = os.pidfd_open(pid)
            try:
                await anyio.wait_readable(descriptor)
            finally:
                os.close(descriptor)
        elif sys.platform == "darwin":
            with closing(select.kqueue()) as queue:
                end = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
                queue.control([end], 0)
                await anyio.wait_readable(queue)
        else:
            pytest.skip("a process of others cannot be waited for here")


class LogPipe:
    """A named pipe in the place of a server's log, and all that was read from it. POSIX."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self.text = ""
        # Open for writing too: then it never ends, and opening it does not wait for the server.
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    async def until(self, text: str) -> None:
        """Wait until the server has written `text`."""
        with anyio.fail_after(LONGEST_SECONDS):
            while text not in self.text:
                await anyio.wait_readable(self._descriptor)
                self.text += os.read(self._descriptor, 2**16).decode()

    def close(self) -> None:
        """Writing to it fails from now on."""
        os.close(self._descriptor)
