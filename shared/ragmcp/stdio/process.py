"""A server's process, with an orderly end: close stdin → wait → terminate its group → kill its group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process

from ragmcp.concurrency import beside
from ragmcp.errors import ServerNotStarted
from ragmcp.stdio.pipes import Pipes, open_pipes

# How long a server may take to exit by itself, then after SIGTERM, then after SIGKILL. The specification asks
# for "a reasonable time"; there are no open requests by now.
LEAVE_SECONDS = 3.0
TERMINATE_SECONDS = 2.0
KILL_SECONDS = 2.0
# How long to wait for the exit code after the end of stdout.
EXIT_CODE_SECONDS = 1.0

LOG_TAIL_BYTES = 4096


class ServerProcess:
    """A running server."""

    def __init__(self, process: Process, stream: Pipes, log: Path | None) -> None:
        self.stream = stream
        self._process = process
        self._log = log

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        command: Sequence[str],
        *,
        stderr: Path | None,
        env: Mapping[str, str] | None,
        cwd: Path | None,
    ) -> AsyncIterator[ServerProcess]:
        """Run `command` in its own session, which a Ctrl-C in ours does not reach.

        Raises ServerNotStarted.
        """
        with ExitStack() as theirs, ExitStack() as ours:
            try:
                log = theirs.enter_context(stderr.open("ab")) if stderr else None
                their_stdin, our_output = _pipe(theirs, ours)
                our_input, their_stdout = _pipe(ours, theirs)
                process = await anyio.open_process(
                    command, stdin=their_stdin, stdout=their_stdout, stderr=log, env=env, cwd=cwd, **_apart()
                )
            except (OSError, ValueError) as error:
                raise ServerNotStarted(command, _reason(error, command)) from None
            ours.pop_all()  # From here on the stream owns them.
        async with process, open_pipes(our_input, our_output) as stream:
            server = cls(process, stream, stderr)
            try:
                yield server
            finally:
                # Shielded, with bounded waits: a cancelled caller leaves no server behind and does not hang.
                with anyio.CancelScope(shield=True):
                    await server._stop()

    async def exit_reason(self) -> str:
        """How the server ended, as part of a sentence."""
        with anyio.move_on_after(EXIT_CODE_SECONDS):
            await self._process.wait()
        code = self._process.returncode
        if code is None:
            return "it closed its output"
        how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
        last = self._last_log_line()
        return f"{how}; the last line of its log is: {last}" if last else how

    def _last_log_line(self) -> str:
        if self._log is None:
            return ""
        with suppress(OSError), self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - LOG_TAIL_BYTES))
            lines = log.read().decode(errors="replace").split("\n")
            return next((line.strip() for line in reversed(lines) if line.strip()), "")
        return ""

    async def _stop(self) -> None:
        self.stream.end()
        try:
            # A server that is sending a long answer exits only when that has been read.
            async with beside(self._read_to_end):
                if await self._exits_within(LEAVE_SECONDS):
                    return
                self._signal("SIGTERM")
                await self._exits_within(TERMINATE_SECONDS)
        finally:  # Also after a second Ctrl-C, which ignores the shield.
            if self._process.returncode is None:
                self._signal("SIGKILL")
        await self._exits_within(KILL_SECONDS)

    async def _read_to_end(self) -> None:
        while await self.stream.receive():
            pass

    async def _exits_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._process.wait()
        return self._process.returncode is not None

    def _signal(self, name: str) -> None:
        """Signal the whole process group; Windows has neither, so the process is killed."""
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.Signals[name])


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
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror[:1].lower()}{error.strerror[1:]} ({error.filename})"
    return str(error)
