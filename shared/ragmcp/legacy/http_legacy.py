"""The legacy era over HTTP, from the end that asks: a session, and streams that can be resumed.

Source: basic/transports of 2025-11-25. Beside each request's own answer a stream (GET) brings what the server
says unasked.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import anyio.abc
import msgspec
from msgspec import Raw

from ragmcp.backoff import Backoff
from ragmcp.concurrency import beside
from ragmcp.errors import (
    ConnectionClosed,
    RagMcpError,
    RequestTimedOut,
    ServerUnreachable,
    UnreadableAnswer,
    WireError,
)
from ragmcp.http.client import EVENTS, Http, Response
from ragmcp.http.errors import HttpRefused
from ragmcp.legacy.incoming import Incoming, settle
from ragmcp.peer import Waiter
from ragmcp.protocol import headers, jsonrpc
from ragmcp.protocol.connection import CANCELLED
from ragmcp.protocol.framing import EventDecoder
from ragmcp.protocol.jsonrpc import Id, Notification, Request
from ragmcp.protocol.schema.base import CancelledParams
from ragmcp.protocol.schema.initialize import InitializeResult

log = logging.getLogger(__name__)

INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
OPEN_SECONDS = 1.0
GOODBYE_SECONDS = 2.0
# A stream that breaks this often without anything new is not coming back.
MAX_RESUMES = 5
# Where the server names no pause of its own; one of nothing at all would be a loop without a pause.
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
LEAST_PAUSE_SECONDS = 0.05
# There is such a stream, but not just now; all other refusals mean that there is none.
LATER_STATUSES = frozenset({429, 502, 503, 504})


class _SessionLost(Exception):
    """The server has forgotten the session."""

    def __init__(self, session: str) -> None:
        self.session = session


class LegacyHttp:
    """A channel to a server that keeps sessions, or at least the handshake."""

    def __init__(
        self,
        http: Http,
        answer: Callable[[Request], Awaitable[Any]],
        heard: Callable[[Notification], None],
        initialize_again: Callable[[], Awaitable[None]],
    ) -> None:
        self._http = http
        self._incoming = Incoming(
            lambda request: self._tasks.start_soon(self._incoming.answer_server, request),
            answer,
            self._say_if_possible,
            heard,
        )
        self._initialize_again = initialize_again
        self._session = ""
        self._revision = ""
        self.next_id = 1
        self._listening = anyio.CancelScope()
        self._hears = False
        # Whoever has it has also said in `_lost` for which session, before anybody else runs.
        self._renewing = anyio.Lock(fast_acquire=True)
        self._lost = ""

    @property
    def closed(self) -> anyio.Event:
        """Set when the server could last not be reached; it may still be asked again."""
        return self._http.unreachable

    async def run(self) -> None:
        """What goes on beside the requests; to be cancelled in the end."""
        try:
            async with anyio.create_task_group() as self._tasks:
                await anyio.sleep_forever()
        finally:
            with anyio.move_on_after(GOODBYE_SECONDS, shield=True):
                await self._leave()

    async def _leave(self) -> None:
        if self._session:
            try:
                async with self._http.send("DELETE", "the end of the session", self._headers()):
                    pass
            except RagMcpError as error:
                log.info("The session was not ended: %s", error)

    # Our requests

    async def request(self, method: str, params: Any, timeout: float | None = None) -> Raw:
        """As `Channel.request`; also raises ServerUnreachable, HttpRefused, MessageTooLarge."""
        with anyio.move_on_after(timeout):
            await self._wait_for_session()
            try:
                return await self._ask(method, params)
            except _SessionLost as lost:
                await self._renew(lost.session)
            try:
                return await self._ask(method, params)
            except _SessionLost:
                raise ConnectionClosed(method, "the server forgets its sessions at once") from None
        raise RequestTimedOut(method, timeout or 0)

    async def notify(self, method: str, params: Any) -> None:
        """Say something."""
        await self._say(method, jsonrpc.encode_notification(method, params))
        if method == INITIALIZED:
            self._listening.cancel()
            opened = anyio.Event()
            self._tasks.start_soon(self._listen, opened)
            # What the server says from now on is not to be missed; some say nothing before their first news.
            with anyio.move_on_after(OPEN_SECONDS):
                await opened.wait()

    async def _ask(self, method: str, params: Any) -> Raw:
        id, waiter = self.next_id, Waiter()
        body = jsonrpc.encode_request(id, method, params)
        self.next_id += 1
        self._incoming.waiting[id] = waiter
        try:
            async with beside(lambda: self._exchange(id, method, body, waiter)):
                await waiter.done.wait()
        finally:
            del self._incoming.waiting[id]
            if not waiter.done.is_set() and method != INITIALIZE:
                self._tasks.start_soon(self._call_off, id)
        if not isinstance(waiter.outcome, Raw):
            raise waiter.outcome
        if method == INITIALIZE:
            self._revision = _revision(waiter.outcome)
        return waiter.outcome

    async def _exchange(self, id: Id, method: str, body: bytes, waiter: Waiter) -> None:
        try:
            events = await self._post(id, method, body, waiter)
            if events is not None and not waiter.done.is_set():
                await self._resume(method, events, waiter)
        except (RagMcpError, _SessionLost) as error:
            settle(waiter, error)

    async def _post(self, id: Id, method: str, body: bytes, waiter: Waiter) -> EventDecoder | None:
        """Gives what the stream left off with that the answer came on, None: it was no stream."""
        session = "" if method == INITIALIZE else self._session
        async with self._http.send("POST", method, self._headers(method), body) as response:
            if response.status == 404 and session:
                raise _SessionLost(session)
            if response.refused:
                raise await response.refusal()
            if method == INITIALIZE:
                self._session = response.header(headers.SESSION_ID)
            if response.streams:
                return await self._follow(response, waiter)
            if response.status == 202 and self._hears:  # The answer is to come on the server's own stream.
                return None
            self._incoming.take(await response.message(), id)
            if not waiter.done.is_set():
                raise UnreadableAnswer(method, "it is no answer")
            return None

    async def _follow(self, response: Response, waiter: Waiter) -> EventDecoder:
        """Read a stream until the answer has come, or it ends, or breaks where it can be resumed."""
        try:
            while not waiter.done.is_set() and (messages := await response.next()):
                for message in messages:
                    self._incoming.take(message)
            await response.end()
        except (ConnectionClosed, RequestTimedOut):
            if not response.events.last_id:
                raise
        return response.events

    async def _resume(self, method: str, events: EventDecoder, waiter: Waiter) -> None:
        backoff = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        tries = 0
        while not waiter.done.is_set() and events.last_id and tries < MAX_RESUMES:
            last_id = events.last_id
            await anyio.sleep(_pause(events, backoff))
            async with self._get(method, events) as response:
                if response.refused:
                    raise await response.refusal()
                events = await self._follow(response, waiter)
            tries = tries + 1 if events.last_id == last_id else 0
        if not waiter.done.is_set():
            raise ConnectionClosed(method, "its stream ended without an answer")

    def _get(self, method: str, events: EventDecoder | None) -> AbstractAsyncContextManager[Response]:
        written = self._headers() | {"accept": EVENTS}
        if events is not None and events.last_id:
            written[headers.LAST_EVENT_ID] = events.last_id
        return self._http.send("GET", method, written, resumes=events)

    async def _call_off(self, id: Id) -> None:
        line = jsonrpc.encode_notification(CANCELLED, CancelledParams(request_id=id))
        await self._say_if_possible(CANCELLED, line)

    # The session

    async def _renew(self, lost: str) -> None:
        if self._renewing.locked() and lost != self._lost:
            raise ConnectionClosed(INITIALIZE, "the server forgets its sessions at once")
        async with self._renewing:
            if self._session == lost:
                self._lost = lost
                try:
                    await self._initialize_again()
                except BaseException:
                    self._session = lost  # Half a handshake is none: who asks next begins it anew.
                    raise

    async def _renew_in_time(self, lost: str) -> None:
        """As soon as the server can: who only waits for news asks nothing that would renew it."""
        backoff = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        while True:
            await anyio.sleep(backoff.next())
            try:
                await self._renew(lost)
            except RagMcpError as error:
                log.info("There is no new session: %s", error)
                if _passes(error):
                    continue
            return

    async def _wait_for_session(self) -> None:
        """While there is a new handshake, only what belongs to it may be asked."""
        owner = self._renewing.statistics().owner
        if owner is not None and owner != anyio.get_current_task():
            async with self._renewing:
                pass

    def _headers(self, method: str = "") -> dict[str, str]:
        written = {"content-type": "application/json"}
        if method == INITIALIZE:
            return written
        if self._revision:
            written[headers.PROTOCOL_VERSION] = self._revision
        if self._session:
            written[headers.SESSION_ID] = self._session
        return written

    # What comes in

    async def _listen(self, opened: anyio.Event) -> None:
        try:
            with anyio.CancelScope() as self._listening:
                await self._listen_on(opened)
        finally:
            opened.set()

    async def _listen_on(self, opened: anyio.Event) -> None:
        backoff = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        events: EventDecoder | None = None
        while True:
            session = self._session
            try:
                async with self._get("the server's own stream", events) as response:
                    if response.status == 404 and session:
                        # Not within this scope, which the new session cancels.
                        self._tasks.start_soon(self._renew_in_time, session)
                        return
                    if response.status in LATER_STATUSES:
                        raise await response.refusal()
                    if response.refused or not response.streams:
                        return  # "The server does not offer an SSE stream at this endpoint."
                    self._hears = True
                    opened.set()
                    events = response.events
                    while messages := await response.next():
                        backoff.reset()
                        for message in messages:
                            self._incoming.take(message)
            except RagMcpError as error:
                log.info("%s", error)
            finally:
                self._hears = False
            await anyio.sleep(_pause(events, backoff))

    # What we say

    async def _say(self, method: str, line: bytes) -> None:
        async with self._http.send("POST", method, self._headers(), line) as response:
            if response.refused:
                raise await response.refusal()

    async def _say_if_possible(self, method: str, line: bytes) -> None:
        try:
            await self._say(method, line)
        except RagMcpError as error:
            log.info("Could not say %s: %s", method, error)


def _passes(error: RagMcpError) -> bool:
    """Whether the same may go well later."""
    match error:
        case HttpRefused(status=status) | WireError(http_status=status):
            return status in LATER_STATUSES
    return isinstance(error, ServerUnreachable)


def _pause(events: EventDecoder | None, backoff: Backoff) -> float:
    """Seconds until the next try; what the server wants goes before what we think."""
    ours = backoff.next()
    if events is None or events.retry_ms is None:
        return ours
    return max(events.retry_ms / 1000, LEAST_PAUSE_SECONDS)


def _revision(result: Raw) -> str:
    try:
        return msgspec.json.decode(result, type=InitializeResult).protocol_version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""  # Who asked will say so.
