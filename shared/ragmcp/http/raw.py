"""Encoded messages over HTTP: post a line, and deliver all messages of the response unchanged.

The caller gives the headers, which differ by era.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias

from anyio.abc import TaskGroup

from ragmcp.errors import ConnectionClosed, RequestTimedOut, UnreadableAnswer
from ragmcp.http.client import JSON_HEADERS, Http, Response
from ragmcp.older_revisions import require_legacy
from ragmcp.protocol import jsonrpc
from ragmcp.protocol.framing import Line
from ragmcp.protocol.jsonrpc import Failure, Id, Request, Success, Unreadable

# Delivers one encoded message of the server.
Deliver: TypeAlias = Callable[[Line], Awaitable[None]]


class RawSession(Protocol):
    """A legacy session, as `ragmcp.legacy.session_client.SessionClient` describes it."""

    async def ask(self, request: Request, line: bytes) -> None:
        """Post a request, and deliver all messages until it is answered."""

    async def ask_batch(self, line: bytes) -> None:
        """The same for a JSON-RPC batch."""

    async def say(self, method: str, line: bytes) -> None:
        """Post a notification or an answer."""

    async def end(self) -> None:
        """Let the server forget the session."""


def open_session(http: Http, tasks: TaskGroup, deliver: Deliver) -> RawSession:
    """A session that begins with the first `initialize`. Raises UnsupportedRevision without `legacy`."""
    session: RawSession = require_legacy("session_client").SessionClient(http, tasks, deliver)
    return session


async def post(http: Http, method: str, line: bytes, headers: Mapping[str, str]) -> None:
    """Post a message that has no answer. Raises as `Http.send`."""
    async with http.send("POST", method, {**JSON_HEADERS, **headers}, line) as response:
        await response.end()


async def ask(
    http: Http, method: str, id: Id, line: bytes, headers: Mapping[str, str], deliver: Deliver
) -> None:
    """Post a request, and deliver all messages until its answer. Raises as `Http.send` and `copy`."""
    async with http.send("POST", method, {**JSON_HEADERS, **headers}, line) as response:
        if not await copy(response, method, id, deliver):
            raise ConnectionClosed(method, "its stream ended without an answer")


async def copy(response: Response, method: str, id: Id | None, deliver: Deliver) -> bool:
    """Deliver a response's messages until the answer to `id` (None: all). Returns whether it came.

    Raises UnreadableAnswer, MessageTooLarge, WireError for an error without an id; ConnectionClosed or
    RequestTimedOut for a response that broke, unless `response.events` says where it can be resumed.
    """
    if not response.streams:
        await _copy_body(await response.body(), method, id, deliver)
        return True
    try:
        while events := await response.next_events():
            messages = [data for type, data in events if type == "message"]
            if any([await _copy_message(data, method, id, deliver) for data in messages]):
                await response.end()
                return True
    except (ConnectionClosed, RequestTimedOut):
        if not response.events.last_id:
            raise
    return False


async def _copy_body(body: bytes, method: str, id: Id | None, deliver: Deliver) -> None:
    if id is None:
        if body:
            await deliver(body)
        return
    match jsonrpc.parse(body):
        case Failure(None, error):
            raise error.as_error()
        case Success(answered) | Failure(answered) if answered == id:
            await deliver(body)
        case Unreadable(_, error):
            raise UnreadableAnswer(method, str(error).rstrip("."))
        case _:
            raise UnreadableAnswer(method, "it is not a response")


async def _copy_message(data: Line, method: str, id: Id | None, deliver: Deliver) -> bool:
    """Whether it was the answer to `id`."""
    message = jsonrpc.parse(data)
    if isinstance(message, Unreadable):
        if id is not None and message.id == id:
            raise UnreadableAnswer(method, str(message.error).rstrip("."))
        return False
    await deliver(data)
    return isinstance(message, Success | Failure) and message.id == id
