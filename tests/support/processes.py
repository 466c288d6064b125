"""`ragmemory` as a real process, and a client of it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ragmcp.client.features import Client
from ragmcp.protocol.schema.tools import ToolCallResult
from ragmcp.stdio.connect import open_stdio
from tests.support import forking, launcher
from tests.support.forking import python_for

MESSAGE_BYTES = 1 << 28
# Far longer than anything that a test waits for takes, on a busy machine too: what takes longer hangs.
LONGEST_SECONDS = 60.0
RAGMEMORY = [sys.executable, "-m", "ragmemory"]

# A job that a shell runs in the background ignores SIGINT, and the processes it starts inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Held(subprocess.Popen[bytes]):
    """A process that its `with` kills at the end. A process that keeps a test waiting is killed too."""

    def line(self) -> bytes:
        """The next line of its stdout; b"" if it has ended."""
        return self._line(self.stdout)

    def error_line(self) -> bytes:
        """The next line of its stderr; b"" if it has ended."""
        return self._line(self.stderr)

    def write(self, data: bytes) -> None:
        """To its stdin. Returns when it has read all but what the pipe holds."""
        assert self.stdin is not None
        with self._deadline():
            self.stdin.write(data)
            self.stdin.flush()

    def send_signal(self, sig: int) -> None:
        """SIGKILL ends a forked program too before it ends the launcher that is waited for."""
        is_kill = sys.platform != "win32" and sig == signal.SIGKILL and forking.is_launcher(self.args)
        super().send_signal(launcher.KILL if is_kill else sig)

    def _line(self, stream: IO[bytes] | None) -> bytes:
        assert stream is not None
        with self._deadline():
            return stream.readline()

    @contextmanager
    def _deadline(self) -> Iterator[None]:
        timer = threading.Timer(LONGEST_SECONDS, self.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def __exit__(self, *error: Any) -> None:
        self.kill()
        super().__exit__(*error)


def memory_command(folder: Path, *arguments: str, python: str = sys.executable) -> list[str]:
    """The command line for a memory in `folder`/memory.db."""
    return [python, "-m", "ragmemory", "--memory", str(folder / "memory.db"), *arguments]


def memory_environment(folder: Path, **variables: str) -> dict[str, str]:
    """Ours, with everything the program keeps under `folder`, and without what would change its settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAGCHAT", "OPENAI"))}
    return kept | {"RAGCHAT_HOME": str(folder / "home")} | variables


def run_memory(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`ragmemory` with words and settings that end it before it serves."""
    environ = memory_environment(folder, **variables)
    return subprocess.run(
        [python_for(environ), "-m", "ragmemory", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=LONGEST_SECONDS,
        env=environ,
        check=False,
    )


class LogFile:
    """A file as the log of a server."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def writer(self) -> int:
        """A descriptor of it."""
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def last_line(self) -> str:
        """Its last line."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return lines[-1] if lines else ""


@asynccontextmanager
async def memory_process(
    folder: Path,
    *arguments: str,
    toolsets: str = "memory,documents,history,maintenance",
    variables: dict[str, str] | None = None,
    log: Path | None = None,
) -> AsyncIterator[Client]:
    """A running `ragmemory` and its client; its log is `folder`/log, unless another is named."""
    environ = memory_environment(folder, **(variables or {}))
    command = memory_command(folder, "--toolsets", toolsets, *arguments, python=python_for(environ))
    async with open_stdio(
        command,
        client_name="tests",
        client_version="1",
        message_bytes=MESSAGE_BYTES,
        stderr=LogFile(log or folder / "log"),
        env=environ,
        era="modern",
    ) as client:
        yield client


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    """The structured result of a call that must not fail."""
    result = await attempt(client, tool, **arguments)
    assert not result.is_error, result.text
    return result.structured(dict)


async def attempt(client: Client, tool: str, **arguments: Any) -> ToolCallResult:
    """The result of a call that may fail."""
    return await client.call_tool(tool, arguments, timeout=LONGEST_SECONDS)


def uris(found: dict[str, Sequence[dict[str, Any]]]) -> list[str]:
    """The sources of what a Query found."""
    return [hit["uri"] for hit in found["hits"]]


def processes_in(folder: Path) -> dict[int, str]:
    """The processes whose working folder it is, with their commands: a program started there, and its own.

    Linux.
    """
    found: dict[int, str] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It has ended, or is another user's.
            if (process / "cwd").readlink() == folder:
                found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
    return found


def open_descriptors() -> set[tuple[str, str]]:
    """Those of this process, with what they are; none where the system does not say.

    Not their number: what an earlier test has left to a thread may be closed at any moment.
    """
    found = set()
    for file in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):  # It has been closed meanwhile, as that of the folder itself.
            found.add((file.name, str(file.readlink())))
    return found


def wait_until_ended(pid: int) -> None:
    """Wait until a process that is not our child has ended. Linux."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            assert select.select([descriptor], [], [], LONGEST_SECONDS)[0], f"{pid} still runs"
        finally:
            os.close(descriptor)
