"""The connection to a configured server, which survives restarts; its tools and its state."""

from __future__ import annotations

import logging
import math
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import anyio
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ragchat import CLIENT_NAME, __version__
from ragchat.errors import RagChatError, ServerNotReady, ToolChanged
from ragchat.log import ServerLog
from ragchat.sanitize import one_line, without_escapes
from ragchat.servers.asking import User, make_handlers
from ragchat.servers.bounded_log import bounded_log
from ragchat.servers.clock import Clock
from ragchat.servers.configs import ServerConfig
from ragchat.servers.environment import inherited
from ragchat.servers.managed import ManagedServer, ServerState
from ragchat.servers.media import MediaFiles
from ragchat.servers.offers import Offers
from ragchat.servers.supervisor import Supervised
from ragchat.servers.visits import Visits
from ragchat.settings import ServerSettings
from ragconfig.home import Home
from ragmcp.client.features import Client, OnProgress
from ragmcp.concurrency import background_task
from ragmcp.errors import RagMcpError, RequestTimedOut, ServerNotStarted, WireError
from ragmcp.oauth.errors import LoginRequired
from ragmcp.protocol.schema.base import LogLevel
from ragmcp.protocol.schema.subscriptions import Filter, list_changed
from ragmcp.protocol.schema.tools import ToolCallResult, ToolInfo

log = logging.getLogger(__name__)

T = TypeVar("T")

LOGS = "servers"
MEDIA = "media"
# The least severe messages that a server is asked to send to its log.
LOG_LEVEL: LogLevel = "info"
# Characters that are replaced in the name of a log: a project's file chooses the names of its servers.
_UNSAFE = re.compile(r"[^\w-]")
# The maximum pause between starts of a server that keeps failing; a call or `/mcp reload` ends it.
MAX_PAUSE_SECONDS = 300.0
# The pause after listing tools again: some servers send change notifications endlessly.
RELIST_SECONDS = 0.5
# Characters that are shown of a line that is no message.
MAX_STRAY = 100


class Connection(ManagedServer):
    """`run` keeps it connected; calls wait for the start."""

    state: ServerState = ServerState.STARTING
    failure: RagChatError | RagMcpError | None = None

    def __init__(
        self,
        config: ServerConfig,
        user: User | None,
        settings: ServerSettings,
        home: Home,
        clock: Clock,
    ) -> None:
        """`clock` pauses while the user is prompted. Without a `user`, the server cannot ask for anything.

        The server's log, login and media files are in the folders of `home`.
        """
        log_name = f"{_UNSAFE.sub('_', config.name)}.log"
        super().__init__(config.name, config.shown, home.state / LOGS / log_name)
        self.config = config
        self.tools: list[ToolInfo] = []
        """The tools that it listed last; none if a restart has failed."""
        self.left_out: list[str] = []
        """A sentence for each of its tools that cannot be used."""
        self._start_finished = anyio.Event()
        self.media = MediaFiles(home.cache / MEDIA)
        self._home = home
        self._settings = settings
        self._user = user
        self._clock = Clock(clock)
        self._visits = Visits(config.name, user, self._clock)
        self._stray = ""  # the first line of the current start that is no message
        handlers = make_handlers(config.name, user, self._clock, self._visits.complete, self.log)
        self._handlers = replace(handlers, on_stray=self._note_stray)
        self._slots = anyio.Semaphore(settings.calls)
        self._repeatable: set[str] = set()
        self._config = config
        self._supervised = Supervised(self._open, MAX_PAUSE_SECONDS)
        self.offers = Offers(config.name, self._ask)

    async def run(self) -> None:
        """Stay connected until cancelled; a server with unusable settings is not started."""
        try:
            self._config = self.config.expanded()
        except RagChatError as error:
            self._fail(error)
            return
        try:
            await self._supervised.run()
        finally:  # Release tasks that wait for the start of a server that was stopped.
            self._start_finished.set()

    async def wait_started(self) -> None:
        await self._start_finished.wait()

    async def known_tools(self) -> list[ToolInfo]:
        return self.tools

    def mark_not_started(self, state: ServerState) -> None:
        """It will not be started; `state` says why."""
        self.state = state
        self._start_finished.set()

    async def call(self, tool: ToolInfo, arguments: Mapping[str, Any]) -> ToolCallResult:
        """Call a tool. Waits while too many calls are in progress; repeats only what may be repeated.

        Raises ServerNotReady, ToolChanged, RagMcpError.
        """

        async def send(client: Client) -> ToolCallResult:
            # The list of tools may have changed while the user was prompted, or in a restart.
            if tool not in self.tools:
                raise ToolChanged(self.config.name, tool.name)
            return await client.call_tool(
                tool.name, arguments, timeout=None, on_progress=self._progress(tool.name)
            )

        if self.state in (ServerState.DISABLED, ServerState.UNASKED):
            raise ServerNotReady(self.config.name, f"it is {self.state}")
        with self._clock.limited(self._settings.timeout_seconds):
            async with self._slots:
                return await self._visits.answer(
                    lambda: self._supervised.ask(tool.name, send, repeatable=tool.name in self._repeatable)
                )
        raise RequestTimedOut(tool.name, self._settings.timeout_seconds)

    async def _ask(self, method: str, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Send a request that changes nothing. Raises RagMcpError."""
        with self._clock.limited(self._settings.timeout_seconds):
            return await self._visits.answer(lambda: self._supervised.ask(method, ask))
        raise RequestTimedOut(method, self._settings.timeout_seconds)

    def _progress(self, tool: str) -> OnProgress | None:
        """A callback that shows the progress of a call to the user, if there is one."""
        if (user := self._user) is None:
            return None

        def show(done: float, total: float | None, message: str | None) -> None:
            how_far = f"{done:g}" if total is None else f"{done:g} of {total:g}"
            words = " ".join(filter(None, [how_far, message]))
            user.show_progress(f"Calling {self.config.name} {tool}: {words}")

        return show

    # One start

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Client]:
        """Start the server or connect to it, list its tools, and follow their changes."""
        if self.failure is None:  # Otherwise the failure stays visible during the restart.
            self.state = ServerState.STARTING
        self._stray = ""
        listed = False
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + self._settings.start_seconds) as start:
                async with self._connect() if self._config.url else self._start() as client:
                    if client.capabilities.logging is not UNSET:
                        # Some servers announce a log without this method.
                        with suppress(WireError):
                            await client.set_log_level(LOG_LEVEL)
                    await self._list_tools(client)
                    self.offers.forget()
                    listed, start.deadline = True, math.inf
                    self.state, self.failure = ServerState.READY, None
                    self._start_finished.set()
                    async with background_task(lambda: self._follow(client)):
                        yield client
            if start.cancelled_caught:
                raise RequestTimedOut("its start", self._settings.start_seconds)
        except RagMcpError as error:
            self._fail(error)
            if not listed:
                self.tools = []
            raise

    def _fail(self, error: RagChatError | RagMcpError) -> None:
        if isinstance(error, ServerNotStarted) and shutil.which(error.command[0]) is None:
            from ragchat.servers.recipes import PROGRAMS

            error.hint = PROGRAMS.get(error.command[0], "")
        elif isinstance(error, RequestTimedOut) and self._stray:
            error.hint = f"It printed what is no JSON-RPC message: {self._stray}"
        self.state = ServerState.LOGIN if isinstance(error, LoginRequired) else ServerState.FAILED
        self.failure = error
        self._start_finished.set()

    def _note_stray(self, line: str) -> None:
        self._stray = self._stray or one_line(without_escapes(line), MAX_STRAY)

    @asynccontextmanager
    async def _start(self) -> AsyncIterator[Client]:
        from ragmcp.stdio.connect import open_stdio

        async with (
            bounded_log(self.log) as log,
            open_stdio(
                self._config.command,
                client_name=CLIENT_NAME,
                client_version=__version__,
                message_bytes=self._settings.message_bytes,
                stderr=log,
                env={**inherited(), **self._config.env},
                cwd=Path(self._config.cwd) if self._config.cwd else None,
                handlers=self._handlers,
            ) as client,
        ):
            yield client

    def _connect(self) -> AbstractAsyncContextManager[Client]:
        from ragchat.servers.login import Credentials, NoLogin, authorization
        from ragmcp.http.connect import open_http

        ServerLog(self.log)
        credentials = Credentials(self._home.data)
        return open_http(
            self._config.url,
            client_name=CLIENT_NAME,
            client_version=__version__,
            message_bytes=self._settings.message_bytes,
            headers=self._config.headers,
            authorization=authorization(self._config, NoLogin(self._config, credentials), credentials),
            handlers=self._handlers,
        )

    # Its tools

    async def _list_tools(self, client: Client) -> None:
        tools = await client.list_tools() if client.capabilities.tools is not UNSET else []
        self._repeatable.clear()
        self._repeatable.update(tool.name for tool in tools if _may_be_repeated(tool))
        self.tools, self.left_out = tools, [*map(one_line, client.left_out)]

    async def _follow(self, client: Client) -> None:
        """List tools again, and drop other cached lists, when the server sends a change notification."""
        offered = client.capabilities
        wanted = Filter(
            tools_list_changed=_announces(client, offered.tools),
            prompts_list_changed=_announces(client, offered.prompts),
            resources_list_changed=_announces(client, offered.resources),
        )
        if wanted == Filter():
            return
        try:
            async with client.subscribe(wanted) as changes:
                async for change in changes:
                    if change == list_changed("tools"):
                        await self._list_tools(client)
                        await anyio.sleep(RELIST_SECONDS)
                    else:
                        self.offers.forget()
        except RagMcpError as error:  # The lists fetched so far remain usable.
            log.info("The changes of %s are not followed: %s", self.config.name, error)


def _announces(client: Client, capability: dict[str, Any] | UnsetType) -> bool | UnsetType:
    """Whether the server may send change notifications for this list."""
    if capability is UNSET:
        return UNSET
    # The official SDK 1.x sends them undeclared; in its era they need no subscription.
    return True if capability.get("listChanged") or not client.modern else UNSET


def _may_be_repeated(tool: ToolInfo) -> bool:
    """Whether a call may be repeated if the server died before the response."""
    hints = tool.annotations
    return hints is not UNSET and True in (hints.read_only_hint, hints.idempotent_hint)
