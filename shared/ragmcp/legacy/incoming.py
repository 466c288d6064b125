"""What a legacy server sends over HTTP, on whichever stream, brought to whom it is for.

Not the streams: who reads one hands its messages over.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec
from msgspec import Raw

from ragmcp.errors import RagMcpError, RemoteProtocolError, UnreadableAnswer
from ragmcp.peer import Waiter
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.connection import CANCELLED, error_object
from ragmcp.protocol.jsonrpc import Failure, Id, Message, Notification, Request, Success, Unreadable
from ragmcp.protocol.schema.base import CancelledParams

log = logging.getLogger(__name__)


class Incoming:
    """`start` lets `answer_server` run beside; `answer` finds the answer to a request, `say` sends it."""

    def __init__(
        self,
        start: Callable[[Request], object],
        answer: Callable[[Request], Awaitable[Any]],
        say: Callable[[str, bytes], Awaitable[None]],
        heard: Callable[[Notification], None],
    ) -> None:
        self.waiting: dict[Id, Waiter] = {}
        """Our requests that are under way."""
        self._start = start
        self._answer = answer
        self._say = say
        self._heard = heard
        self._answering: dict[Id, anyio.CancelScope] = {}

    def take(self, message: Message, asked: Id | None = None) -> None:
        """Take a message; `asked` is the request whose own answer it came as. Never raises."""
        match message:
            case Success(id, result):
                self._settle(id, result)
            case Failure(id, error):
                self._settle(asked if id is None else id, error.as_error())
            case Unreadable(id, error):
                reason = UnreadableAnswer("the request", str(error).rstrip("."))
                self._settle(asked if id is None else id, reason)
            case Request():
                self._start(message)
            case Notification():
                self._hear(message)

    def _settle(self, id: Id | None, outcome: Raw | RagMcpError) -> None:
        if id in self.waiting:
            settle(self.waiting[id], outcome)

    def _hear(self, notification: Notification) -> None:
        try:
            if notification.method == CANCELLED:
                id = msgspec.json.decode(notification.params, type=CancelledParams).request_id
                if id in self._answering:
                    self._answering[id].cancel()
            else:
                self._heard(notification)
        except Exception:
            log.exception("Could not take %s", notification.method)

    async def answer_server(self, request: Request) -> None:
        """Answer what the server asks, unless it does not want to know any more."""
        with anyio.CancelScope() as scope:
            self._answering[request.id] = scope
            try:
                line = jsonrpc.encode_success(request.id, await self._answer(request))
            except Exception as error:
                if not isinstance(error, RemoteProtocolError):
                    log.error("%s failed", request.method, exc_info=error)
                line = jsonrpc.encode_failure(request.id, error_object(error, request.id))
            finally:
                self._answering.pop(request.id, None)
            await self._say(request.method, line)


def settle(waiter: Waiter, outcome: Any) -> None:
    """Whoever waits has what it waits for."""
    waiter.outcome = outcome
    waiter.done.set()
