"""Messages of the host to the server, and all that comes back: bytes as they are, whatever they mean."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

import anyio
from msgspec import Struct

from ragmcp.errors import ConnectionClosed, RagMcpError
from ragmcp.http.client import Http, Response
from ragmcp.protocol import headers, jsonrpc
from ragmcp.protocol.jsonrpc import Failure, Id, Notification, Request, Success, Unreadable

JSON = {"content-type": "application/json"}

Write = Callable[[bytes], Awaitable[None]]


class SessionLost(RagMcpError):
    """The server does not know the session any more; what it was asked has not been done."""

    code: ClassVar[str] = "SESSION_NOT_FOUND"
    sentence = "The server has lost the session."


class Broken(Struct, frozen=True):
    """A stream that ended before the answer: where it can be resumed, and after how many seconds."""

    last_id: str
    pause: float


class Forwarder:
    """One endpoint, and somebody to whom its messages go."""

    def __init__(self, http: Http, write: Write) -> None:
        self._http = http
        self._write = write

    async def tell(self, method: str, line: bytes, heads: Mapping[str, str]) -> None:
        """Post what has no answer. Raises as `ask`."""
        async with self._http.send("POST", method, {**JSON, **heads}, line) as response:
            await _check(response, heads)
            await response.body()

    async def ask(
        self, method: str, id: Id | None, line: bytes, heads: Mapping[str, str], write: Write | None = None
    ) -> str:
        """Post a request (id None: a batch), and hand on all that comes until it is answered.

        Returns the id of a session, if one begins with it. Raises WireError for a refusal, HttpRefused,
        SessionLost, ServerUnreachable where nothing has arrived, ConnectionClosed where something may have.
        """
        write = write or self._write
        async with self._http.send("POST", method, {**JSON, **heads}, line) as response:
            await _check(response, heads)
            session_id = response.header(headers.SESSION_ID)
            broken = await _copy(response, id, write)
        while broken is not None and id is not None:
            if not broken.last_id:
                raise ConnectionClosed(method, "its stream ended early")
            await anyio.sleep(broken.pause)
            resumption = {**heads, headers.LAST_EVENT_ID: broken.last_id}
            async with self._http.send("GET", method, resumption) as response:
                await _check(response, heads)
                broken = await _copy(response, id, write)
        return session_id

    async def listen(self, heads: Mapping[str, str], last_id: str) -> Broken | None:
        """Hand on what the server says by itself, until that stream ends; None: it says nothing so."""
        method = "the stream of the session"
        resumption = {headers.LAST_EVENT_ID: last_id} if last_id else {}
        async with self._http.send("GET", method, {**heads, **resumption}) as response:
            if response.status == 405:
                return None
            await _check(response, heads)
            return await _copy(response, None, self._write)

    async def end(self, heads: Mapping[str, str]) -> None:
        """The session is over. Raises as `tell`."""
        async with self._http.send("DELETE", "the end of the session", heads):
            pass


async def _copy(response: Response, id: Id | None, write: Write) -> Broken | None:
    """Hand on what comes until the answer to `id`; None: that has come."""
    if not response.streams:
        if body := await response.body():
            await write(body.replace(b"\n", b" "))
        return None
    try:
        while messages := await response.next():
            for message in messages:
                if not isinstance(message, Unreadable):
                    await write(_encode(message).replace(b"\n", b" "))
            if any(isinstance(message, Success | Failure) and message.id == id for message in messages):
                await response.end()
                return None
    except ConnectionClosed:
        if not response.events.last_id:
            raise
    return Broken(response.events.last_id, (response.events.retry_ms or 0) / 1000)


async def _check(response: Response, heads: Mapping[str, str]) -> None:
    if response.status == 404 and headers.SESSION_ID in heads:
        raise SessionLost
    if response.status >= 400:
        raise await response.refusal()


def _encode(message: Request | Notification | Success | Failure) -> bytes:
    """The line of a message that came as an event: its payload is what it was."""
    match message:
        case Request(id, method, params):
            return jsonrpc.encode_request(id, method, params)
        case Notification(method, params):
            return jsonrpc.encode_notification(method, params)
        case Success(id, result):
            return jsonrpc.encode_success(id, result)
        case Failure(id, error):
            return jsonrpc.encode_failure(id, error)
