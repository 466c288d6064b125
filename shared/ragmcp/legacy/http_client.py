"""The channel of a client to a legacy server over HTTP: a `Peer` whose lines a session carries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import anyio.abc
import msgspec

from ragmcp.concurrency import background_task
from ragmcp.errors import RagMcpError
from ragmcp.http.client import Http
from ragmcp.legacy.session_client import INITIALIZED, SessionClient
from ragmcp.peer import Peer
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.connection import CANCELLED, Connection
from ragmcp.protocol.framing import Line
from ragmcp.protocol.jsonrpc import Id, Message, Notification, Request
from ragmcp.protocol.schema.base import CancelledParams
from ragmcp.streams import Stream

log = logging.getLogger(__name__)

END_SECONDS = 2.0


class LegacyHttp(Stream):
    """The channel; `handle` and `on_notification` are the peer's. It outlives failures to connect."""

    def __init__(
        self,
        http: Http,
        handle: Callable[[Request], Coroutine[Any, Any, Any]],
        on_notification: Callable[[Notification], None],
    ) -> None:
        super().__init__()
        self._http = http
        self._peer = Peer(self, Connection(http.message_bytes, refuses=False), handle, on_notification)
        # They also raise ServerUnreachable, HttpRefused, MessageTooLarge.
        self.request, self.notify = self._peer.request, self._peer.notify
        self._asking: dict[Id, anyio.CancelScope] = {}

    @property
    def closed(self) -> anyio.Event:
        """Set when the last attempt to connect failed."""
        return self._http.unreachable

    async def run(self) -> None:
        """Send and receive lines until cancelled, which ends the session."""
        async with anyio.create_task_group() as self._tasks:
            self._session = SessionClient(self._http, self._tasks, self._deliver)
            try:
                async with background_task(self._peer.run):
                    await self.send_each(self._send)
            finally:
                with anyio.move_on_after(END_SECONDS, shield=True):
                    await self._session.end()

    async def _deliver(self, line: Line, _: Message) -> None:
        await self.deliver(line)

    async def _send(self, line: bytes) -> None:
        match jsonrpc.parse(line):
            case Request() as request:
                scope = self._asking[request.id] = anyio.CancelScope()
                self._tasks.start_soon(self._ask, request, line, scope)
            case Notification(method) if method == INITIALIZED:
                # Later lines need the session, so they wait until it has begun.
                await self._say(method, line)
            case Notification(method, params):
                if method == CANCELLED:
                    id = msgspec.json.decode(params, type=CancelledParams).request_id
                    if id in self._asking:
                        self._asking[id].cancel()
                self._tasks.start_soon(self._say, method, line)
            case _:
                self._tasks.start_soon(self._say, "an answer", line)

    async def _ask(self, request: Request, line: bytes, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await self._session.ask(request, line)
            except RagMcpError as error:
                self._peer.fail(request.id, error)
        del self._asking[request.id]

    async def _say(self, method: str, line: bytes) -> None:
        try:
            await self._session.say(method, line)
        except RagMcpError as error:
            log.info("%s was not sent: %s", method, error)
