"""The tests' own MCP server as a real process, and strangers' processes: what they log, whether they live."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio

from ragmcp.client.client import Client, EraName
from ragmcp.stdio.stdio import open_stdio
from tests.support.processes import LONGEST_SECONDS

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
        stderr=stderr,
        env=ENV,
        cwd=cwd,
        era=era,
    )


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not yet asked for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return stat.rpartition(")")[2].split()[0] != "Z"


async def gone(pid: int) -> None:
    """Wait until a process that is not ours to wait for has ended."""
    await _until(lambda: not alive(pid))


async def logged(log: Path, text: str) -> None:
    """Wait until a process has written `text` to its log."""
    await _until(lambda: text in log.read_text(encoding="utf-8"))


async def _until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(LONGEST_SECONDS):
        while not true():  # noqa: ASYNC110 (other processes set no events)
            await anyio.sleep(0.01)
