"""All servers beside memory: which ones run, and the tools that they offer together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
from anyio.abc import TaskGroup

from ragchat.servers.asking import User
from ragchat.servers.clock import Clock
from ragchat.servers.configs import (
    USER_FILE,
    Scope,
    ServerConfig,
    disable_entry,
    find_config,
    read_configs,
)
from ragchat.servers.connection import Connection, State
from ragchat.servers.offers import Offers
from ragchat.servers.permissions import Permissions
from ragchat.servers.tools import ServerTool, offered_tools
from ragchat.settings import ServerSettings
from ragconfig.settings import Settings

if TYPE_CHECKING:
    from ragchat.servers.login import Read


class ServerManager:
    """Owns every connection; an async context manager. Nothing is started before `start`."""

    def __init__(self, settings: Settings) -> None:
        self.user: User | None = None
        """The user that servers may ask; set it before they start."""
        self.clock = Clock()
        """It stands still while any server asks the user."""
        self.permissions = Permissions(settings.home.config)
        self._settings = settings.table("servers", ServerSettings)
        self._file = settings.home.config / USER_FILE
        self._home = settings.home
        self._connections: dict[str, Connection] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._running: list[str] = []
        self._tasks: TaskGroup
        self._wait_until = 0.0  # on the clock of anyio

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._tasks.cancel_scope.cancel()
        # The body's own error must not be wrapped in a group.
        if isinstance(error, (Exception, KeyboardInterrupt, SystemExit)):
            await self._tasks.__aexit__(None, None, None)
            return False
        return await self._tasks.__aexit__(kind, error, trace)

    @property
    def connections(self) -> Mapping[str, Connection]:
        """The servers by name."""
        return self._connections

    def connection(self, name: str) -> Connection:
        """Raises UnknownServer."""
        find_config({name: one.config for name, one in self._connections.items()}, name)
        return self._connections[name]

    def start(self) -> None:
        """Start all servers in the background that are new or changed; end those that are gone.

        Also after the files were edited. Raises ServerFileUnreadable, ServerConfigInvalid,
        PermissionsUnusable.
        """
        configs = read_configs(self._file)
        self._wait_until = anyio.current_time() + self._settings.wait_seconds
        for name in [*self._connections]:
            if configs.get(name) != self._connections[name].config:
                self._stop(name)
        for name, config in configs.items():
            if name not in self._connections:
                self._start(config)

    def restart(self, name: str) -> None:
        """Start one server again, such as one that the user has now agreed to. Raises as `connection`."""
        config = self.connection(name).config
        self._stop(name)
        self._start(config)

    def agree(self, name: str) -> None:
        """The user agrees to a project's server; it is started. Raises UnknownServer, PermissionsUnusable."""
        self.permissions.allow_start(self.connection(name).config)
        self.restart(name)

    def disable(self, name: str, *, disabled: bool) -> None:
        """Disable a server from now on, or enable it again. Raises as `connection` and `start`."""
        config = self.connection(name).config
        if config.scope is Scope.PROJECT:
            self.permissions.disable(config, disabled=disabled)
        else:
            disable_entry(Path(config.file), name, disabled=disabled)
        self._stop(name)
        self.start()

    def forget(self, name: str) -> None:
        """Drop what the user has allowed a server. Raises as `connection`."""
        self.permissions.withdraw_start(self.connection(name).config)
        self.permissions.forget(name)
        self.restart(name)

    async def log_in(self, name: str, show: Callable[[str], None], read: Read | None = None) -> None:
        """Let the user log in at a remote server. Raises UnknownServer, and as `login.log_in`."""
        from ragchat.servers.login import Credentials, log_in

        config = self.connection(name).config.expanded()
        await log_in(config, Credentials(self._home.data), self._settings, show, read)

    @property
    def running(self) -> Sequence[str]:
        """The names of the servers that have been started and have not ended."""
        return self._running

    def unasked(self) -> list[ServerConfig]:
        """The servers of the project that wait for the user's consent."""
        return [one.config for one in self._connections.values() if one.state is State.UNASKED]

    async def ready(self) -> None:
        """Wait until every server has started or failed, but not for long after `start`."""
        with anyio.CancelScope(deadline=self._wait_until):
            for connection in [*self._connections.values()]:
                await connection.settled.wait()

    def offers(self) -> dict[str, Offers]:
        """What the servers that are ready offer besides tools, by their names."""
        ready = (one for one in self._connections.values() if one.state is State.READY)
        return {one.config.name: one.offers for one in ready}

    def tools(self) -> list[ServerTool]:
        """The tools of all servers, under names that are unique.

        Also of a server that has just died: a call starts it at once.
        """
        return offered_tools(self._connections.values())

    def _start(self, config: ServerConfig) -> None:
        connection = Connection(config, self.user, self._settings, self._home, self.clock)
        self._connections[config.name] = connection
        if self.permissions.is_disabled(config):
            connection.refuse(State.DISABLED)
        elif not self.permissions.may_start(config):
            connection.refuse(State.UNASKED)
        else:
            self._tasks.start_soon(self._run, connection)

    async def _run(self, connection: Connection) -> None:
        self._running.append(connection.config.name)
        try:
            with anyio.CancelScope() as self._scopes[connection.config.name]:
                await connection.run()
        finally:
            self._running.remove(connection.config.name)

    def _stop(self, name: str) -> None:
        self._connections.pop(name)
        if (scope := self._scopes.pop(name, None)) is not None:
            scope.cancel()
