"""`ragmemory bridge URL`: from stdio to HTTP, starting a server if none answers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

import anyio
from httpx2 import URL, InvalidURL

from ragconfig.errors import SettingsError
from ragconfig.keys import find_token
from ragconfig.settings import Settings
from ragmcp.errors import RagMcpError, ServerNotStarted, ServerUnreachable
from ragmcp.http.client import open_client
from ragmcp.http.reach import is_loopback
from ragmcp.stdio.process import ServerProcess
from ragmcp.stdio.serve import standard_streams
from ragmemory.bridge.host import Bridge
from ragmemory.settings import LimitSettings
from ragmemory.signals import end_on_signal, exit_within

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.25
MCP_PATH = "/mcp"


class InvalidAddress(SettingsError):
    url: str
    reason: str
    code = "SETTINGS_INVALID"
    sentence = "{url} is not the address of a server: {reason}."
    hint = "One is http://127.0.0.1:8765/mcp."


class SpawnElsewhere(SettingsError):
    host: str
    code = "SETTINGS_INVALID"
    sentence = "--spawn starts a server on this machine, but {host} is another machine."


def run(settings: Settings, url: str, token_file: str, spawn: Sequence[str] | None) -> None:
    """Run until the host has closed stdin, or a signal comes.

    `spawn` is the command that starts a server, without its address. Raises SettingsError.
    """
    address = _address(url)
    command = None
    if spawn is not None:
        if not is_loopback(address.host):
            raise SpawnElsewhere(address.host)
        port = address.port or (443 if address.scheme == "https" else 80)
        command = [*spawn, "--host", address.host, "--port", str(port), "--json", "--end-with-stdin"]
    message_bytes = settings.table("limits", LimitSettings).message_bytes
    anyio.run(_serve, str(address), find_token(token_file), message_bytes, command)


def _address(url: str) -> URL:
    try:
        address = URL(url)
    except InvalidURL as error:
        raise InvalidAddress(url, str(error)) from None
    if address.scheme not in ("http", "https") or not address.host:
        raise InvalidAddress(url, "it needs http or https, and a host")
    return address if address.path not in ("", "/") else address.copy_with(path=MCP_PATH)


async def _serve(url: str, token: str | None, message_bytes: int, command: list[str] | None) -> None:
    async with (
        standard_streams(exit_within) as stream,
        open_client(url, message_bytes, token, None) as http,
        anyio.create_task_group() as tasks,
    ):
        spawned = Spawned(command) if command else None
        if spawned:
            tasks.start_soon(spawned.run)
        tasks.start_soon(end_on_signal, tasks.cancel_scope)
        await Bridge(stream, http, tasks, partial(_before_retry, spawned)).run()
        exit_within()
        tasks.cancel_scope.cancel()


async def _before_retry(spawned: Spawned | None, error: RagMcpError) -> None:
    if spawned and isinstance(error, ServerUnreachable):
        await spawned.start()
    await anyio.sleep(PAUSE_SECONDS)


class Spawned:
    """Runs `command`, `ragmemory http`, on each `start`, until the bridge ends.

    The server prints a line once it listens, and ends when stdin ends.
    """

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
