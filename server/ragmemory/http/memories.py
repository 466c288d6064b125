"""The named memories of a server, at `/mcp/{memory}`, each with a service, endpoints and metrics of its own.

Each right has an endpoint of its own, so its sessions, tasks and subscriptions cannot be reached with a token
that has another right, or that is of another memory. A session belongs to the token or user that began it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import JSONResponse, Response

from ragconfig.errors import SettingsError
from ragconfig.settings import Settings
from ragmcp.concurrency import background_task
from ragmcp.http.asgi import Endpoint
from ragmcp.http.errors import ServerLeaving
from ragmcp.http.exchange import USER, App, Message, Receive, Scope, Send, respond, respond_error
from ragmcp.http.limits import HttpLimits
from ragmcp.oauth.bearer import InsufficientScope, Unauthorized, bearer_token
from ragmcp.server.core import Server
from ragmcp.server.tools import Tool
from ragmemory.http.memories_file import Entry, read_memories, token_digest
from ragmemory.http.metrics import CONTENT_TYPE, Metrics
from ragmemory.mcp.server import OnDemand, make_server
from ragmemory.mcp.toolsets import tools_with_rights
from ragmemory.settings import MemorySettings
from ragmemory.types.rights import RIGHTS, Right

if TYPE_CHECKING:
    from ragmemory.http.issuer import Issuer

log = logging.getLogger(__name__)

PATH = "/mcp/"
# Where clients find out who gives tokens (RFC 9728); the path of a memory follows.
METADATA = "/.well-known/oauth-protected-resource"
# How often the file is checked for changes.
CHECK_SECONDS = 1.0
GRANT = "ragmemory.grant"


class Grant(Struct, frozen=True):
    """What a request may do. `digest` is that of a token in the file; "" for one of the identity provider."""

    memory: str
    right: Right
    digest: str
    until: float  # on the clock of anyio


class NamedMemory:
    """One memory, in use until `close`."""

    def __init__(self, settings: Settings, limits: HttpLimits, form: type[Endpoint], metadata: str) -> None:
        self.ready = anyio.Event()
        self.closed = anyio.Event()
        self._closing = anyio.Event()
        self._memory = OnDemand(settings)
        self._memory.follows_always = True
        self._metrics = Metrics(self._memory.service)
        table = settings.table("memory", MemorySettings)
        tools = tools_with_rights(self._memory.service, table.toolsets)
        if table.read_only:
            tools = [(tool, right) for tool, right in tools if right == "read"]
        self.endpoints = {
            right: form(
                self._server(settings, tools, right, metadata),
                limits,
                guard=None,
                on_answered=self._metrics.count,
            )
            for right in RIGHTS
        }

    def _server(
        self, settings: Settings, tools: list[tuple[Tool, Right]], right: Right, metadata: str
    ) -> Server:
        included = RIGHTS[: RIGHTS.index(right) + 1]
        offered = [tool for tool, needed in tools if needed in included]
        if right != "admin":
            offered = [_without_files(tool, metadata) for tool in offered]
        withheld = {
            tool.name: partial(InsufficientScope, tool.name, needed, metadata)
            for tool, needed in tools
            if needed not in included
        }
        return make_server(settings, self._memory, offered, withheld)

    async def run(self) -> None:
        """Serve until `close`."""
        try:
            async with anyio.create_task_group() as tasks:
                self._memory.tasks = tasks
                async with AsyncExitStack() as stack:
                    for endpoint in self.endpoints.values():
                        endpoint.server.allow_tasks(tasks)
                        await stack.enter_async_context(endpoint)
                    self.ready.set()
                    await self._closing.wait()
                tasks.cancel_scope.cancel()
        except Exception:  # One memory must not end the others.
            log.exception("A named memory failed")
        finally:
            self.ready.set()  # Those that wait see that it is leaving.
            self.close()
            self.closed.set()

    def close(self) -> None:
        """End the streams, refuse new requests, and close the memory once the open requests are answered."""
        self._closing.set()
        for endpoint in self.endpoints.values():
            endpoint.leave()

    def app(self, right: Right, below: list[str]) -> App | None:
        """What answers at a path below that of the memory."""
        endpoint = self.endpoints[right]
        apps: dict[tuple[str, ...], App] = {
            (): endpoint,
            ("sse",): endpoint.sse,
            ("messages",): endpoint.messages,
            ("metrics",): self._show_metrics,
        }
        return apps.get(tuple(below))

    async def _show_metrics(self, scope: Scope, receive: Receive, send: Send) -> None:
        text = await self._metrics.text(*self.endpoints.values())
        await Response(text, media_type=CONTENT_TYPE)(scope, receive, send)


def _without_files(tool: Tool, metadata: str) -> Tool:
    """The same tool, refusing calls that would write to a file of this machine."""

    async def function(*arguments: Any, **named: Any) -> Any:
        if named.get("write_back"):
            raise InsufficientScope("write_back", "admin", metadata)
        return await tool.function(*arguments, **named)

    return replace(tool, function=function)


class NamedMemories:
    """All named memories, as an ASGI application behind `authorize`. They are opened at their first use."""

    def __init__(
        self,
        settings: Settings,
        file: Path,
        limits: HttpLimits,
        form: type[Endpoint],
        root: str,
        issuer: Issuer | None,
    ) -> None:
        """`file` is that of the setting; `root`: how clients address this server. Raises SettingsError."""
        self._settings = settings
        self._file = file
        self._limits = limits
        self._form = form
        self._root = root
        self.issuer = issuer
        self._tasks: TaskGroup
        self._is_leaving = False
        self._in_use: dict[str, NamedMemory] = {}
        self._open: set[NamedMemory] = set()  # also those that close
        self._waiting: dict[anyio.CancelScope, Grant] = {}
        self._stamp = _stamp_of(file)
        self._entries: dict[str, tuple[Entry, Settings]] = {}
        self._apply(read_memories(file, settings))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Follow the file; at the end, close all memories."""
        async with background_task(self._follow_file) as self._tasks:
            yield
            self._is_leaving = True
            for memory in self._open:
                memory.close()
            for memory in [*self._open]:
                await memory.closed.wait()

    async def _follow_file(self) -> None:
        while True:
            await anyio.sleep(CHECK_SECONDS)
            if (stamp := _stamp_of(self._file)) == self._stamp:
                continue
            self._stamp = stamp
            try:
                entries = await to_thread.run_sync(read_memories, self._file, self._settings)
                # It may be an editor that empties the file before it writes it. But emptying it is also the
                # simplest way to take back all tokens, which must work at once.
                if self._entries and not entries:
                    log.warning("The file of memories %s names none: all tokens are refused.", self._file)
                self._apply(entries)
            except SettingsError as error:
                log.warning("%s The memories and their tokens stay as they were.", error)

    def _apply(self, entries: dict[str, tuple[Entry, Settings]]) -> None:
        """Use these memories from now on, and end the requests that they no longer allow."""
        for name, memory in [*self._in_use.items()]:
            if name not in entries or entries[name][1] != self._entries[name][1]:
                del self._in_use[name]
                memory.close()
        self._entries = entries
        self._tokens = {
            (name, token.sha256): (token.right, owner)
            for name, (entry, _) in entries.items()
            for owner, token in entry.tokens.items()
        }
        for waiting, grant in [*self._waiting.items()]:
            if not self._is_valid(grant):
                waiting.cancel()

    # Who may do what

    async def authorize(self, scope: Scope, authorization: str | None) -> None:
        """Note what a request may do, and whose it is. Raises Unauthorized, InsufficientScope.

        An unknown memory and a wrong token give the same answer after the same work.
        """
        name = scope["path"].split("/")[2]
        metadata = self._metadata(name)
        if authorization is None:
            raise Unauthorized("none was sent", metadata)
        token = bearer_token(authorization)
        user = digest = token_digest(token)
        right, owner = self._tokens.get((name, digest), (None, ""))
        until, reason = inf, "the token sent is wrong"
        if right is None and self.issuer is not None and token.count(".") == 2:
            from ragmemory.http.issuer import InvalidToken

            digest = ""
            try:
                right, ends, subject = await self.issuer.check(token, self._resource(name))
            except InvalidToken as error:
                reason = str(error)
            else:
                if right is None:
                    raise InsufficientScope("this memory", "read", metadata)
                until = anyio.current_time() + ends - time.time()
                if subject:  # A client renews its token during a session.
                    user, owner = f"subject {subject}", subject
        grant = Grant(name, right or "read", digest, until)
        if right is None or not self._is_valid(grant):
            raise Unauthorized(reason, metadata)
        scope[GRANT], scope[USER] = grant, user
        if owner:  # For the log of the memory: behind a proxy, all clients have its address.
            scope["client"] = owner, (scope.get("client") or ("", 0))[1]

    def _is_valid(self, grant: Grant) -> bool:
        if not grant.digest:
            return grant.memory in self._entries and anyio.current_time() < grant.until
        right, _ = self._tokens.get((grant.memory, grant.digest), (None, ""))
        return right == grant.right

    def _resource(self, name: str) -> str:
        return f"{self._root}{PATH}{quote(name, safe='')}"

    def _metadata(self, name: str) -> str:
        """Where the metadata of a memory is; "" where no identity provider gives tokens."""
        return f"{self._root}{METADATA}{PATH}{quote(name, safe='')}" if self.issuer else ""

    # Requests

    async def describe(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The metadata of a memory (RFC 9728), also of one that does not exist."""
        assert self.issuer is not None
        document = {
            "resource": self._resource(scope["path"].removeprefix(f"{METADATA}{PATH}")),
            "authorization_servers": [self.issuer.url],
            "scopes_supported": RIGHTS,
            "bearer_methods_supported": ["header"],
        }
        await JSONResponse(document)(scope, receive, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        grant: Grant = scope[GRANT]
        if self._is_leaving:
            await respond_error(send, ServerLeaving(), ServerLeaving.status)
            return
        memory = self._find(grant.memory)
        await memory.ready.wait()
        app = memory.app(grant.right, scope["path"].split("/")[3:])
        if app is None:
            await respond(send, 404)
            return
        has_begun = False

        async def receive_while_valid() -> Message:
            """The next message; the client seems to leave once its token is no longer valid."""
            with anyio.CancelScope(deadline=grant.until) as waiting:
                self._waiting[waiting] = grant
                if not self._is_valid(grant):
                    waiting.cancel()
                try:
                    return await receive()
                finally:
                    del self._waiting[waiting]
            return {"type": "http.disconnect"}

        async def send_on(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        await app(scope, receive_while_valid, send_on)
        if not has_begun and not self._is_valid(grant):
            error = Unauthorized("the token sent is no longer valid", self._metadata(grant.memory))
            await respond_error(send, error, error.status)

    def _find(self, name: str) -> NamedMemory:
        if name not in self._in_use:
            _, settings = self._entries[name]
            memory = NamedMemory(settings, self._limits, self._form, self._metadata(name))
            self._in_use[name] = memory
            self._open.add(memory)
            self._tasks.start_soon(self._run, name, memory)
        return self._in_use[name]

    async def _run(self, name: str, memory: NamedMemory) -> None:
        await memory.run()
        self._open.discard(memory)
        if self._in_use.get(name) is memory:  # It failed: the next request opens it again.
            del self._in_use[name]


def _stamp_of(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
