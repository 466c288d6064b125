"""The memory server: our own process, or one that is already running, named by the user or found."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Self, TypeVar

import anyio
from anyio import AsyncContextManagerMixin

from ragchat.errors import FilesElsewhere
from ragchat.memory.client import MemoryClient, Mirror
from ragchat.servers.managed import ManagedServer, ServerState
from ragchat.servers.memory.process import STDERR_FILE, supervised
from ragchat.servers.memory.running import find_running, named, opened, proved_note
from ragchat.servers.supervisor import Supervised, time_limit
from ragcommon.hosts import SERVER_NAME
from ragcommon.server_note import OWNER_PATH
from ragconfig.settings import Settings
from ragmcp.client.features import Client
from ragmcp.concurrency import background_task
from ragmcp.errors import ConnectionClosed, RagMcpError, ServerUnreachable, WireError
from ragmcp.http.errors import ServerLeaving
from ragmcp.protocol.schema.tools import ToolInfo

log = logging.getLogger(__name__)

T = TypeVar("T")

# Tools that access the user's files, or follow a job that does. Our own process may use all files that the
# user names; a shared server only those in the folders of memory.roots.
FILE_TOOLS = frozenset(
    {
        *("start_ingestion", "get_ingestion_status", "cancel_ingestion"),
        *("add_sources", "list_sources", "remove_source", "sync_sources", "backup_memory"),
    }
)
# Tools that look at the user's files, but work without them: restoring says what the next sync will do.
LOOKING_TOOLS = frozenset({"restore_version"})
# Why the mirror has other settings than the memory of this machine.
ORIGIN = "a mirror of uploaded files"
# Seconds that `/mcp` waits for the tools of a server that has just died.
LISTING_SECONDS = 5.0


class MemoryServer(ManagedServer, AsyncContextManagerMixin):
    """An async context manager: entering starts the server in the background.

    `url` is the address of a running server; "": our own process. Our own process replaces a found server for
    FILE_TOOLS and LOOKING_TOOLS, and for all tools once that server has ended. For a server that is not the
    user's own on this machine, `mirror` is the process of our own that reads files, and its settings.
    """

    def __init__(
        self,
        server: Supervised,
        settings: Settings,
        url: str = "",
        found: AbstractAsyncContextManager[Client] | None = None,
        mirror: tuple[Supervised, Settings] | None = None,
    ) -> None:
        self._own = f"{SERVER_NAME} --memory {settings.memory_place}"
        super().__init__(SERVER_NAME, url or self._own, settings.home.state / STDERR_FILE)
        self.url = url
        self._server = server
        self._found = found
        self._mirror = mirror
        self._client: Client | None = None  # of the found server

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncIterator[Self]:
        mirror = [self._mirror[0].run] if self._mirror is not None else []
        async with background_task(self._server.run, *mirror), AsyncExitStack() as stack:
            if self._found is not None:
                self._client = await stack.enter_async_context(self._found)
            yield self

    def client(self) -> MemoryClient:
        """The typed calls to this server."""
        if self._mirror is None:
            return MemoryClient(self, self.url)
        from ragconfig.machine import machine_name

        process, settings = self._mirror
        mirror = Mirror(MemoryClient(process), machine_name(settings.home), settings.memory_path)
        return MemoryClient(self, self.url, mirror)

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
        """Restart our own process, also if a found server is in use. Returns when it has started."""
        self._leave_found()
        await self._server.restart()

    def _leave_found(self) -> None:
        if self._client is not None:
            self._client, self.url, self.shown = None, "", self._own

    async def known_tools(self) -> list[ToolInfo]:
        with anyio.move_on_after(LISTING_SECONDS), suppress(RagMcpError):
            return await self.ask("tools/list", lambda client: client.list_tools())
        return []

    async def ask(
        self,
        what: str,
        request: Callable[[Client], Awaitable[T]],
        *,
        repeatable: bool = True,
        timeout: float | None = None,
    ) -> T:
        """Like `Supervised.ask`. Raises FilesElsewhere for FILE_TOOLS of a server with a mirror."""
        if what in FILE_TOOLS and self._mirror is not None:
            raise FilesElsewhere(self.url)  # A path would refer to another file there.
        if self._client is not None and what not in FILE_TOOLS | LOOKING_TOOLS:
            try:
                with time_limit(what, timeout):
                    return await request(self._client)
            except (ServerUnreachable, ConnectionClosed, WireError) as error:
                if isinstance(error, WireError) and error.error_code != ServerLeaving.code:
                    raise
                log.info("Going on without the found server: %s", error)
                self._leave_found()
                if isinstance(error, ConnectionClosed) and not repeatable:  # It may have been executed.
                    raise
        return await self._server.ask(what, request, repeatable=repeatable, timeout=timeout)


@asynccontextmanager
async def open_memory(settings: Settings, *, pages: str = "") -> AsyncIterator[MemoryClient]:
    """The memory of the server from `find_memory_server`, for a command without a conversation.

    The server is closed at the end of the block. Our own process does not warm up: most of these commands
    search nothing. `pages`: which web pages it may load for us: "public", "private" (those as well), or ""
    for none. Never for a server whose tools a model calls. Raises SettingsError.
    """
    options = ["--no-warm-up", *(["--pages", pages] if pages else [])]
    async with await find_memory_server(settings, options) as server:
        yield server.client()


async def find_memory_server(settings: Settings, options: Sequence[str] = ()) -> MemoryServer:
    """The server that the settings name, else a running one of this memory, else our own process.

    `options`: those of our own process. Raises SettingsError.
    """
    if settings.tables["memory_server"]["url"]:
        server, url = named(settings)
        if await proved_note(settings, url):
            return MemoryServer(server, settings, url)
        of_mirror = _mirror_settings(settings, url)
        mirror = supervised(of_mirror, lazy=True, options=options)
        return MemoryServer(server, settings, url, mirror=(mirror, of_mirror))
    note = await find_running(settings)
    own = supervised(settings, lazy=note is not None, options=options)
    if note is None:
        return MemoryServer(own, settings)
    return MemoryServer(own, settings, note.url, opened(settings, note.url + OWNER_PATH, note.key))


def _mirror_settings(settings: Settings, url: str) -> Settings:
    """Those of the memory of this machine that reads files for the server at `url`."""
    import hashlib

    name = hashlib.sha256(url.encode()).hexdigest()[:16]
    own = settings.with_memory(settings.home.data / "uploads" / f"{name}.db", ORIGIN)
    # It is not searched: its texts are not worth a request to an embedder elsewhere.
    return own.with_table("embedder", kind="local")
