"""A server's process, with an orderly shutdown: close stdin → wait → terminate → kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import anyio
from anyio.abc import Process

from ragcommon.errors import os_reason
from ragmcp.concurrency import background_task
from ragmcp.errors import ServerNotStarted
from ragmcp.stdio.opening import open_pipes
from ragmcp.stdio.pipes import Pipes
from ragmcp.stdio.strays import Stray, strays

# How long a server may take to exit by itself, then after SIGTERM, then after SIGKILL. The specification asks
# for "a reasonable time"; there are no open requests by now.
LEAVE_SECONDS = 3.0
TERMINATE_SECONDS = 2.0
KILL_SECONDS = 2.0
# Interval for polling whether the process group has ended.
POLL_SECONDS = 0.02
# Bytes read from a server that is being stopped, and the pause after each read: a server that writes
# endlessly must not keep us busy.
MAX_UNREAD_BYTES = 1 << 28
READ_PAUSE_SECONDS = 0.005
# How long to wait for the exit code after the end of stdout.
EXIT_CODE_SECONDS = 1.0


class Stderr(Protocol):
    """Where a server's stderr goes, which its host decides."""

    def writer(self) -> int:
        """A descriptor for the server, which its receiver closes. Raises OSError."""

    async def last_line(self) -> str:
        """The last line of a server that has ended; "" if there is none."""


class ServerProcess:
    """A running server."""

    stream: Pipes

    def __init__(self, process: Process, stderr: Stderr | None) -> None:
        self._process = process
        self._stderr = stderr
        self._strays: set[Stray] = set()

    @classmethod
    @asynccontextmanager
    async def start(
        cls, command: Sequence[str], *, stderr: Stderr | None, env: Mapping[str, str] | None, cwd: Path | None
    ) -> AsyncIterator[ServerProcess]:
        """Run `command` in its own session, which a Ctrl-C in ours does not reach.

        Raises ServerNotStarted.
        """
        with ExitStack() as theirs, ExitStack() as ours:
            try:
                log = None
                if stderr is not None:
                    theirs.callback(os.close, log := stderr.writer())
                their_stdin, our_output = _pipe(theirs, ours)
                our_input, their_stdout = _pipe(ours, theirs)
                process = await anyio.open_process(
                    command, stdin=their_stdin, stdout=their_stdout, stderr=log, env=env, cwd=cwd, **_apart()
                )
            except (OSError, ValueError) as error:
                raise ServerNotStarted(command, _reason(error, command)) from None
            _running.add(server := cls(process, stderr))
            ours.pop_all()  # From here on the stream owns them.
        try:
            async with process, open_pipes(our_input, our_output) as server.stream:
                try:
                    yield server
                finally:
                    # Shielded, with bounded waits: a cancelled caller leaves no server, and does not hang.
                    with anyio.CancelScope(shield=True):
                        await server._stop()
        finally:  # The id of its group may be used again.
            _running.discard(server)

    async def exit_reason(self) -> str:
        """How the server ended, as part of a sentence."""
        last = ""
        with anyio.move_on_after(EXIT_CODE_SECONDS):
            await self._process.wait()
            if self._stderr is not None:
                last = await self._stderr.last_line()
        code = self._process.returncode
        if code is None:
            return "it closed its output"
        how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
        return f"{how}; the last line of its log is: {last}" if last else how

    async def _stop(self) -> None:
        self._strays = strays(self._process.pid)  # Once it has ended, nothing leads to them.
        self.stream.end()
        try:
            # A server that is sending a long answer exits only when that has been read.
            async with background_task(self._read_to_end):
                await self._exits_within(LEAVE_SECONDS)
                # Wrappers such as npx and shells may exit before the server that they started.
                if self.signal("SIGTERM"):
                    await self._all_end_within(TERMINATE_SECONDS)
        finally:  # Also after a second Ctrl-C, which ignores the shield.
            self.signal("SIGKILL")
        await self._exits_within(KILL_SECONDS)

    async def _read_to_end(self) -> None:
        unread = MAX_UNREAD_BYTES
        while unread > 0 and (data := await self.stream.receive()):
            unread -= len(data)
            await anyio.sleep(READ_PAUSE_SECONDS)

    async def _exits_within(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._process.wait()

    def signal(self, name: str) -> bool:
        """Signal its group and strays. "" only tests whether any of them runs."""
        if name:
            self._strays = self._strays | strays(self._process.pid)  # A handler may interrupt a walk of it.
        return any([_signal(self._process, name), *(stray.signal(name) for stray in self._strays)])

    async def _all_end_within(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._process.wait()
            while self.signal(""):  # noqa: ASYNC110 (no event tells when the children of others end)
                await anyio.sleep(POLL_SECONDS)


# Includes servers whose pipes are not open yet.
_running: set[ServerProcess] = set()


def kill_all() -> None:
    """Kill all running servers, for a program that exits without stopping them.

    A signal handler may call it.
    """
    for server in [*_running]:
        server.signal("SIGKILL")


def _signal(process: Process, name: str) -> bool:
    """Signal the whole process group, with "" no signal. Returns whether there was a process in it.

    Windows has neither, so the process is killed.
    """
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform != "win32":
            os.killpg(process.pid, signal.Signals[name] if name else 0)
            return True
        if name and process.returncode is None:
            process.kill()
            return True
    return False


def _pipe(readers: ExitStack, writers: ExitStack) -> tuple[int, int]:
    read_end, write_end = os.pipe()
    readers.callback(os.close, read_end)
    writers.callback(os.close, write_end)
    return read_end, write_end


def _apart() -> dict[str, Any]:
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def _reason(error: Exception, command: Sequence[str]) -> str:
    if isinstance(error, FileNotFoundError) and error.filename == command[0]:
        return "there is no such program"
    place = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
    return os_reason(error) + place
