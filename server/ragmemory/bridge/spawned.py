"""A server of our own, started when somebody needs one: `ragmemory http` as a child that ends with us."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio

from ragmcp.errors import ServerNotStarted
from ragmcp.stdio.process import ServerProcess

log = logging.getLogger(__name__)


class Spawned:
    """Runs `command` as often as `start` asks; it writes a line once it listens, and ends with its stdin."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._wanted = anyio.Event()
        self._settled = anyio.Event()

    async def start(self) -> None:
        """Returns when it listens, or has ended: another one may have the port already."""
        self._wanted.set()
        await self._settled.wait()

    async def run(self) -> None:
        """Until cancelled, which ends the server."""
        while True:
            await self._wanted.wait()
            try:
                await self._live()
            except ServerNotStarted as error:
                log.error("%s", error)
            self._settled.set()
            self._wanted, self._settled = anyio.Event(), anyio.Event()

    async def _live(self) -> None:
        async with ServerProcess.start(self._command, stderr=None, env=None, cwd=None) as process:
            while await process.stream.receive():
                self._settled.set()
