"""A server started on demand: `ragmemory http` as a child process that ends with the bridge."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio

from ragmcp.errors import ServerNotStarted
from ragmcp.stdio.process import ServerProcess

log = logging.getLogger(__name__)


class Spawned:
    """Runs `command` on each `start`. The server prints a line once it listens, and ends when stdin ends."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._wanted = anyio.Event()
        self._started = anyio.Event()

    async def start(self) -> None:
        """Return when the server listens or has ended: another server may have the port already."""
        self._wanted.set()
        await self._started.wait()

    async def run(self) -> None:
        """Run until cancelled, which ends the server."""
        while True:
            await self._wanted.wait()
            try:
                await self._run_once()
            except ServerNotStarted as error:
                log.error("%s", error)
            self._started.set()
            self._wanted, self._started = anyio.Event(), anyio.Event()

    async def _run_once(self) -> None:
        async with ServerProcess.start(self._command, stderr=None, env=None, cwd=None) as process:
            while await process.stream.receive():
                self._started.set()
