"""The host's legacy session: begun as the host begins it, and anew when the server has lost it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress

import anyio
import msgspec
from anyio.abc import TaskGroup

from ragmcp.errors import RagMcpError, WireError
from ragmcp.protocol import headers, jsonrpc
from ragmcp.protocol.jsonrpc import Request, Success
from ragmcp.protocol.schema.initialize import InitializeResult
from ragmemory.bridge.forwarding import Forwarder, SessionLost, Write

log = logging.getLogger(__name__)

INITIALIZE, INITIALIZED = "initialize", "notifications/initialized"

FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 5.0


class Session:
    """Knows what a request of the host must carry, and what a new session has to be told."""

    def __init__(self, forwarder: Forwarder, tasks: TaskGroup, write: Write) -> None:
        self.heads: Mapping[str, str] = {}
        """Another object for each session; empty before the first."""
        self._forwarder = forwarder
        self._tasks = tasks
        self._write = write
        self._initialize: tuple[Request, bytes] | None = None
        self._initialized = b""
        # What the host has told the session for as long as it lives: the last log level, its subscriptions.
        self._standing: dict[tuple[str, bytes], tuple[Request, bytes]] = {}
        self._renewing = anyio.Lock()

    async def ask(self, request: Request, line: bytes) -> None:
        """Raises what `Forwarder.ask` does, but for SessionLost."""
        if request.method == INITIALIZE:
            self._initialize, self._standing = (request, line), {}
            for answer in await self._begin():
                await self._write(answer)
            return
        self._note(request, line)
        heads = self.heads
        try:
            await self._forwarder.ask(request.method, request.id, line, heads)
        except SessionLost:
            await self._renew(heads)
            await self._forwarder.ask(request.method, request.id, line, self.heads)

    async def tell(self, method: str, line: bytes) -> None:
        """A notification or an answer of the host. Raises as `ask`."""
        heads = self.heads
        try:
            await self._forwarder.tell(method, line, heads)
        except SessionLost:
            await self._renew(heads)
            await self._forwarder.tell(method, line, self.heads)
        if method == INITIALIZED and not self._initialized:
            self._initialized = line
            self._tasks.start_soon(self._listen)

    async def end(self) -> None:
        """Let the server forget it."""
        if headers.SESSION_ID in self.heads:
            with suppress(RagMcpError):
                await self._forwarder.end(self.heads)

    def _note(self, request: Request, line: bytes) -> None:
        params = bytes(request.params)
        match request.method:
            case "logging/setLevel":
                self._standing[request.method, b""] = request, line
            case "resources/subscribe":
                self._standing[request.method, params] = request, line
            case "resources/unsubscribe":
                self._standing.pop(("resources/subscribe", params), None)

    async def _begin(self) -> list[bytes]:
        """Make a new session; what the server answered."""
        assert self._initialize is not None
        request, line = self._initialize
        answers: list[bytes] = []

        async def keep(answer: bytes) -> None:
            answers.append(answer)

        session_id = await self._forwarder.ask(INITIALIZE, request.id, line, {}, keep)
        heads = {headers.SESSION_ID: session_id} if session_id else {}
        answer = jsonrpc.parse(answers[-1]) if answers else None
        if isinstance(answer, Success):
            with suppress(msgspec.DecodeError):
                chosen = msgspec.json.decode(answer.result, type=InitializeResult)
                heads[headers.PROTOCOL_VERSION] = chosen.protocol_version
        self.heads = heads
        return answers

    async def _renew(self, lost: Mapping[str, str]) -> None:
        async with self._renewing:
            if self.heads is not lost:  # Another request has seen to it.
                return
            log.warning("The server has lost the session; it begins anew")
            await self._begin()
            if self._initialized:
                await self._forwarder.tell(INITIALIZED, self._initialized, self.heads)
            for request, line in self._standing.values():
                await self._forwarder.ask(request.method, request.id, line, self.heads, _ignore)

    async def _listen(self) -> None:
        """Bring down what the server says by itself, for as long as it has something to say it through."""
        heads, last_id, pause = self.heads, "", FIRST_PAUSE_SECONDS
        while True:
            if self.heads is not heads:  # What another session has said is not known to this one.
                heads, last_id, pause = self.heads, "", FIRST_PAUSE_SECONDS
            try:
                broken = await self._forwarder.listen(heads, last_id)
                if broken is None:
                    return
                last_id, pause = broken.last_id, max(broken.pause, FIRST_PAUSE_SECONDS)
            except SessionLost:
                with suppress(RagMcpError):
                    await self._renew(heads)
            except RagMcpError as error:
                log.info("%s", error)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                if isinstance(error, WireError):  # It keeps what was missed no longer.
                    last_id = ""
            await anyio.sleep(pause)


async def _ignore(_: bytes) -> None:
    """The answer to what the host has not asked now."""
