"""The server of the memory: a process of our own, or one that runs already, named by the user or found."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio

from ragchat.memory.process import REPEATABLE, STDERR_FILE, supervised
from ragchat.memory.running import FILE_TOOLS, Named, find_running, opened
from ragchat.servers.managed import ManagedServer, ServerState
from ragcommon.hosts import SERVER_NAME
from ragcommon.server_note import OWNER_PATH
from ragconfig.settings import Settings
from ragmcp.errors import ConnectionClosed, RagMcpError, ServerUnreachable, WireError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from ragchat.servers.supervisor import Supervised
    from ragmcp.client.client import Client, OnProgress
    from ragmcp.protocol.schema.completion import Completion, Reference
    from ragmcp.protocol.schema.prompts import GetPromptResult, PromptInfo
    from ragmcp.protocol.schema.tools import ToolCallResult, ToolInfo

log = logging.getLogger(__name__)

T = TypeVar("T")

SERVER_LEAVING = "SERVER_LEAVING"
# How long `/mcp` waits for the list of tools of a server that has just died.
LISTING_SECONDS = 5.0


class MemoryServer(ManagedServer):
    """An async context manager: entering starts the server in the background.

    `url` is the address of a server that ran already; "": it is a process of our own. A server that was found
    is replaced by one of our own for files, and for everything once it is gone.
    """

    def __init__(
        self,
        server: Supervised,
        settings: Settings,
        url: str = "",
        found: AbstractAsyncContextManager[Client] | None = None,
    ) -> None:
        self._own = f"{SERVER_NAME} --memory {settings.memory_path}"
        super().__init__(SERVER_NAME, url or self._own, settings.home.state / STDERR_FILE)
        self.url = url
        self._server = server
        self._found = found
        self._client: Client | None = None  # of the found server
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._server)
        if self._found is not None:
            self._client = await self._stack.enter_async_context(self._found)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    @property
    def state(self) -> ServerState:
        if self.failure is not None:
            return ServerState.FAILED
        is_ready = self._client is not None or self._server.is_running
        return ServerState.READY if is_ready else ServerState.STARTING

    @property
    def failure(self) -> RagMcpError | None:
        return None if self._client is not None else self._server.failure

    async def wait_started(self) -> None:
        if self._client is None:
            await self._server.wait_started()

    async def restart(self) -> None:
        """Start our own process again, also beside a server that was found. Returns when it has started."""
        self._leave_found()
        await self._server.restart()

    def _leave_found(self) -> None:
        if self._client is not None:
            self._client, self.url, self.shown = None, "", self._own

    async def known_tools(self) -> list[ToolInfo]:
        with anyio.move_on_after(LISTING_SECONDS), suppress(RagMcpError):
            return await self.list_tools()
        return []

    # The calls of `MemoryClient`

    async def list_tools(self) -> list[ToolInfo]:
        """As `Client.list_tools`."""
        return await self._ask(lambda server: server.list_tools())

    async def list_prompts(self) -> list[PromptInfo]:
        """As `Client.list_prompts`."""
        return await self._ask(lambda server: server.list_prompts())

    async def get_prompt(self, name: str, arguments: Mapping[str, str] = {}) -> GetPromptResult:
        """As `Client.get_prompt`."""
        return await self._ask(lambda server: server.get_prompt(name, arguments))

    async def complete(
        self, reference: Reference, argument: str, value: str, others: Mapping[str, str] = {}
    ) -> Completion:
        """As `Client.complete`."""
        return await self._ask(lambda server: server.complete(reference, argument, value, others))

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None,
        on_progress: OnProgress | None = None,
    ) -> ToolCallResult:
        """As `Supervised.call_tool`. Raises FilesElsewhere for files if the server is on another machine."""

        def call(server: Client | Supervised) -> Awaitable[ToolCallResult]:
            return server.call_tool(name, arguments, timeout=timeout, on_progress=on_progress)

        if name in FILE_TOOLS:
            return await call(self._server)
        return await self._ask(call, repeatable=name in REPEATABLE)

    async def _ask(self, ask: Callable[[Client | Supervised], Awaitable[T]], *, repeatable: bool = True) -> T:
        if self._client is None:
            return await ask(self._server)
        try:
            return await ask(self._client)
        except (ServerUnreachable, ConnectionClosed, WireError) as error:
            if isinstance(error, WireError) and error.error_code != SERVER_LEAVING:
                raise
            log.info("Going on without the found server: %s", error)
            self._leave_found()
            if isinstance(error, ConnectionClosed) and not repeatable:  # It may have been carried out.
                raise
        return await ask(self._server)


async def find_memory_server(
    settings: Settings, config_file: Path | None = None, *, verbose: bool = False
) -> MemoryServer:
    """The server that the settings name, or one that is found running; else one of our own.

    Raises SettingsError.
    """
    if settings.tables["memory_server"]["url"]:
        named = Named(settings)
        return MemoryServer(named, settings, named.url)
    note = await find_running(settings)
    own = supervised(settings, config_file, verbose=verbose, lazy=note is not None)
    if note is None:
        return MemoryServer(own, settings)
    return MemoryServer(own, settings, note.url, opened(settings, note.url + OWNER_PATH, note.key))
