"""Starts, stops and owns all servers: memory, and those in configuration files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from math import inf
from typing import TYPE_CHECKING, Self

import anyio
from anyio import AsyncContextManagerMixin
from anyio.abc import TaskGroup, TaskStatus

from ragchat.errors import MemoryNotConfigurable, UnknownServer
from ragchat.memory.client import MemoryClient
from ragchat.servers.asking import User
from ragchat.servers.clock import Clock
from ragchat.servers.configs import USER_FILE, ConfigScope, ServerConfig, read_configs
from ragchat.servers.connection import Connection
from ragchat.servers.managed import ManagedServer, ServerState
from ragchat.servers.memory.server import MemoryServer, find_memory_server, open_memory
from ragchat.servers.offers import Offers
from ragchat.servers.permissions import Permissions
from ragchat.servers.tools import OfferedTool, offered_tools
from ragchat.settings import ServerSettings
from ragcommon.files.uris import is_address
from ragconfig.settings import Settings
from ragmcp.concurrency import background_task

if TYPE_CHECKING:
    from ragchat.servers.login import Read


class ServerManager(AsyncContextManagerMixin):
    """Owns every connection; an async context manager.

    `open_memory` starts the memory server, `start` the others unless `only_memory` is set.
    """

    def __init__(self, settings: Settings, *, only_memory: bool = False) -> None:
        self.user: User | None = None
        """The user at the prompt; set before servers start. None: in a script."""
        self.clock = Clock()
        """It pauses while any server prompts the user."""
        self.permissions = Permissions(settings.home.config)
        self.memory: MemoryServer | None = None
        """The memory server, once opened."""
        self.only_memory = only_memory
        self.connections: dict[str, Connection] = {}
        """The other servers by name."""
        self.running: list[str] = []
        """The names of the servers that have been started and have not ended."""
        self._settings = settings.table("servers", ServerSettings)
        self._file = settings.home.config / USER_FILE
        self._home = settings.home
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._tasks: TaskGroup
        self._wait_until = 0.0  # on the clock of anyio

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncIterator[Self]:
        async with background_task() as self._tasks:
            yield self

    @property
    def servers(self) -> dict[str, ManagedServer]:
        """Memory and the other servers, by name."""
        memory = {} if self.memory is None else {self.memory.name: self.memory}
        return {**memory, **self.connections}

    def server(self, name: str) -> ManagedServer:
        """Raises UnknownServer."""
        return UnknownServer.look_up(name, self.servers)

    def connection(self, name: str) -> Connection:
        """One of the other servers. Raises UnknownServer, MemoryNotConfigurable."""
        server = self.server(name)
        if not isinstance(server, Connection):
            raise MemoryNotConfigurable(name)
        return server

    async def open_memory(self, settings: Settings) -> MemoryClient:
        """Start the memory server of these settings, replacing the previous one. Raises SettingsError."""
        memory = await find_memory_server(settings)
        self._cancel(memory.name)
        self.memory = memory
        await self._tasks.start(self._keep_open, memory)
        return memory.client()

    @asynccontextmanager
    async def loader(
        self, memory: MemoryClient, settings: Settings, paths: Sequence[str]
    ) -> AsyncIterator[MemoryClient]:
        """The memory with which to load these paths, or else all sources.

        Web pages need a process of their own: the tools of the one in use may be called by a model.
        """
        if any(map(is_address, paths or [one.uri for one in await memory.sources() if not one.machine])):
            async with open_memory(settings, pages="public") as own:
                yield own
        else:
            yield memory

    async def _keep_open(self, memory: MemoryServer, *, task_status: TaskStatus[None]) -> None:
        with self._until_cancelled(memory.name):
            async with memory:
                task_status.started()
                await anyio.sleep_forever()

    def start(self) -> None:
        """Start new and changed servers in the background, and stop removed ones, as the files say now.

        Raises ServerFileUnreadable, ServerConfigInvalid, PermissionsUnusable.
        """
        configs = {} if self.only_memory else read_configs(self._file)
        # In a script, results must not depend on how fast servers start. Each start has its own limit.
        wait_seconds = inf if self.user is None else self._settings.wait_seconds
        self._wait_until = anyio.current_time() + wait_seconds
        for name in [*self.connections]:
            if configs.get(name) != self.connections[name].config:
                self._stop(name)
                self.permissions.sampling.discard(name)
        for name, config in configs.items():
            if name not in self.connections:
                self._start(config)

    async def restart(self, name: str) -> None:
        """Restart a server, which implies the user's consent. Returns when it has started or failed.

        Raises UnknownServer, PermissionsUnusable.
        """
        server = self.server(name)
        if isinstance(server, MemoryServer):
            await server.restart()
        else:
            self.agree(name)
            await self.server(name).wait_started()

    def agree(self, name: str) -> None:
        """Record the user's consent to a project's server, and start it.

        Raises UnknownServer, MemoryNotConfigurable, PermissionsUnusable.
        """
        config = self.connection(name).config
        self.permissions.allow_start(config)
        self._replace(config)

    def disable(self, name: str, *, disabled: bool) -> None:
        """Disable or enable a server permanently. Raises as `connection` and `start`."""
        self.permissions.disable(self.connection(name).config, disabled=disabled)
        self._stop(name)
        self.start()

    def forget(self, name: str) -> list[str]:
        """Drop all permissions of a server, and return a phrase for each.

        Raises UnknownServer, PermissionsUnusable.
        """
        server = self.server(name)
        forgotten = self.permissions.forget(name)
        if isinstance(server, Connection):
            if server.config.scope is ConfigScope.PROJECT and self.permissions.may_start(server.config):
                forgotten.append("may be started")
            self.permissions.withdraw_start(server.config)
            self._replace(server.config)
        return forgotten

    async def log_in(self, name: str, show: Callable[[str], None], read: Read | None = None) -> None:
        """Let the user log in at a remote server. Raises UnknownServer, and as `login.log_in`."""
        from ragchat.servers.login import Credentials, log_in

        config = self.connection(name).config.expanded()
        await log_in(config, Credentials(self._home.data), self._settings, show, read)

    def unasked(self) -> list[ServerConfig]:
        """The project's servers that wait for the user's consent."""
        return [one.config for one in self.connections.values() if one.state is ServerState.UNASKED]

    async def wait_started(self, matches: Callable[[str], bool] = lambda _: True) -> None:
        """Wait until every other server whose name matches has started or failed."""
        for connection in [*self.connections.values()]:
            if matches(connection.name):
                await connection.wait_started()

    async def ready(self) -> None:
        """Like `wait_started`, but with a user at the prompt only for a limited time after `start`."""
        with anyio.CancelScope(deadline=self._wait_until):
            await self.wait_started()

    def starting(self) -> list[Connection]:
        """The other servers that have neither started nor failed yet."""
        return [one for one in self.connections.values() if one.state is ServerState.STARTING]

    def offers(self) -> dict[str, Offers]:
        """The resources and prompts of the other servers that are ready, by server name."""
        ready = (one for one in self.connections.values() if one.state is ServerState.READY)
        return {one.config.name: one.offers for one in ready}

    def tools(self) -> list[OfferedTool]:
        """The tools of all other servers under unique names.

        A server that has just died is included: a call restarts it.
        """
        return offered_tools(self.connections.values())

    def _start(self, config: ServerConfig) -> None:
        is_disabled, may_start = self.permissions.is_disabled(config), self.permissions.may_start(config)
        connection = Connection(config, self.user, self._settings, self._home, self.clock)
        self.connections[config.name] = connection
        if is_disabled:
            connection.mark_not_started(ServerState.DISABLED)
        elif not may_start:
            connection.mark_not_started(ServerState.UNASKED)
        else:
            self._tasks.start_soon(self._run, connection)

    async def _run(self, connection: Connection) -> None:
        with self._until_cancelled(connection.name):
            await connection.run()

    @contextmanager
    def _until_cancelled(self, name: str) -> Iterator[None]:
        self.running.append(name)
        try:
            with anyio.CancelScope() as self._scopes[name]:
                yield
        finally:
            self.running.remove(name)

    def _replace(self, config: ServerConfig) -> None:
        self._stop(config.name)
        self._start(config)

    def _stop(self, name: str) -> None:
        self.connections.pop(name)
        self._cancel(name)

    def _cancel(self, name: str) -> None:
        if (scope := self._scopes.pop(name, None)) is not None:
            scope.cancel()
