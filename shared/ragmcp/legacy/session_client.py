"""A client's session with one server over HTTP: post encoded messages, and deliver those of the server.

A response that breaks is resumed. A session that the server has lost is renewed: the handshake is repeated,
and so are the requests whose effect lasts as long as the session. A standing stream (GET) carries the
messages that belong to no response. After a renewal all lists count as changed.
Source: 2025-11-25 basic/transports, "Streamable HTTP".
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec
from anyio.abc import TaskGroup

from ragmcp.backoff import Backoff
from ragmcp.errors import ConnectionClosed, RagMcpError, ServerUnreachable
from ragmcp.http.client import EVENTS, JSON_HEADERS, NO_ANSWER, Deliver, Http, Response, status_of
from ragmcp.legacy.schema import InitializeResult
from ragmcp.protocol import headers, jsonrpc
from ragmcp.protocol.connection import CANCELLED
from ragmcp.protocol.decoding import DECODE_ERRORS
from ragmcp.protocol.framing import EventDecoder, Line
from ragmcp.protocol.jsonrpc import Failure, Id, Message, Request, Success
from ragmcp.protocol.schema.resources import ResourceParams
from ragmcp.protocol.schema.subscriptions import list_changed

log = logging.getLogger(__name__)

INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"

# How long requests wait for the standing stream: some servers send headers only with their first event.
OPEN_SECONDS = 1.0
# After this many resumptions without a new event the client gives up the stream.
MAX_RESUMES = 5
# The pauses unless the server sets one. Without them a failing server would cause a busy loop.
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 30.0
MIN_PAUSE_SECONDS = 0.05
# The server may accept the request later; all other refusals are final.
LATER_STATUSES = frozenset({429, 502, 503, 504})


class _SessionLost(ConnectionClosed):
    """The server no longer knows the session. It has not handled the request."""

    # Callers see the error only if a new session is lost as well.
    reason: str = "it loses new sessions immediately"


class SessionClient:
    """One session at a time with the server of `http`."""

    def __init__(self, http: Http, tasks: TaskGroup, deliver: Deliver) -> None:
        """The standing stream is read in `tasks`; `deliver` gets each message of the server."""
        self._http = http
        self._tasks = tasks
        self._deliver = deliver
        self._id = ""
        self._revision = ""
        self._initialize: tuple[Request, bytes] | None = None
        self._initialized = b""
        # The requests to repeat in a new session, by method and resource.
        self._lasting: dict[tuple[str, str], tuple[Request, bytes]] = {}
        self._renewal = anyio.Lock(fast_acquire=True)
        self._listening = anyio.CancelScope()
        self._hears = False

    async def ask(self, request: Request, line: bytes) -> None:
        """Post a request, and deliver all messages until it is answered.

        Raises WireError, HttpRefused, ServerUnreachable, ConnectionClosed, RequestTimedOut, MessageTooLarge,
        UnreadableAnswer.
        """
        if request.method == INITIALIZE:
            self._initialize, self._initialized, self._lasting = (request, line), b"", {}
            await self._begin(self._deliver)
        else:
            await self._in_session(lambda: self._ask(request.method, request.id, line, self._deliver))
            self._remember(request, line)

    async def ask_batch(self, line: bytes) -> None:
        """The same for a JSON-RPC batch."""
        await self._in_session(lambda: self._ask("a batch", None, line, self._deliver))

    async def say(self, method: str, line: bytes) -> None:
        """Post a notification or an answer; `method` is for error messages. Raises as `ask`."""
        if method == CANCELLED and not self._revision:
            return  # "The initialize request MUST NOT be cancelled by clients."
        await self._in_session(lambda: self._say(method, line))
        if method == INITIALIZED:
            self._initialized = line
            await self._listen()

    async def end(self) -> None:
        """Let the server forget the session."""
        if self._id:
            try:
                async with self._open("DELETE", "the end of the session"):
                    pass
            except RagMcpError as error:
                log.info("The session was not ended: %s", error)

    # Requests

    async def _in_session(self, send: Callable[[], Awaitable[None]]) -> None:
        """Call `send`, and once more in a new session if the server has lost this one."""
        async with self._renewal:
            session = self._id
        try:
            await send()
        except _SessionLost:
            await self._renew(session)
            await send()

    async def _say(self, method: str, line: bytes) -> None:
        async with self._open("POST", method, line) as response:
            await response.end()

    async def _ask(self, method: str, id: Id | None, line: bytes, deliver: Deliver) -> None:
        async with self._open("POST", method, line) as response:
            if method == INITIALIZE:
                self._id = response.header(headers.SESSION_ID)
            if response.status == 202 and self._hears:  # The answer comes on the standing stream.
                return
            if await response.copy(id, deliver) or id is None:
                return
            events = response.events
        await self._resume(method, id, events, deliver)

    async def _resume(self, method: str, id: Id, events: EventDecoder, deliver: Deliver) -> None:
        backoff = Backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS)
        tries = 0
        while events.last_id and tries < MAX_RESUMES:
            last_id = events.last_id
            await anyio.sleep(pause(events, backoff))
            async with self._open("GET", method, resumes=events) as response:
                if await response.copy(id, deliver):
                    return
                events = response.events
            tries = tries + 1 if events.last_id == last_id else 0
        raise ConnectionClosed(method, NO_ANSWER)

    @asynccontextmanager
    async def _open(
        self, verb: str, method: str, line: bytes | None = None, resumes: EventDecoder | None = None
    ) -> AsyncIterator[Response]:
        session = "" if method == INITIALIZE else self._id
        written = dict(JSON_HEADERS)
        if session:
            written[headers.SESSION_ID] = session
        if self._revision and method != INITIALIZE:
            written[headers.PROTOCOL_VERSION] = self._revision
        if verb == "GET":
            written["accept"] = EVENTS
        if resumes is not None and resumes.last_id:
            written[headers.LAST_EVENT_ID] = resumes.last_id
        try:
            async with self._http.send(verb, method, written, line, resumes=resumes) as response:
                yield response
        except RagMcpError as error:
            if status_of(error) == 404 and session:
                raise _SessionLost(method) from None
            raise

    # The session

    async def _begin(self, deliver: Deliver) -> None:
        assert self._initialize is not None
        request, line = self._initialize

        async def note_revision(line: Line, message: Message) -> None:
            if isinstance(message, Success):
                with suppress(*DECODE_ERRORS):  # The handshake reports the error.
                    result = msgspec.json.decode(message.result, type=InitializeResult)
                    self._revision = result.protocol_version
            await deliver(line, message)

        await self._ask(INITIALIZE, request.id, line, note_revision)

    async def _renew(self, lost: str) -> None:
        async with self._renewal:
            if self._id != lost:  # Another request has renewed it.
                return
            log.info("The server has lost the session; starting a new one")
            try:
                await self._begin(self._deliver_all_but_answer)
                if self._initialized:
                    await self._say(INITIALIZED, self._initialized)
            except BaseException:
                self._id = lost  # The next request tries again.
                raise
            await self._listen()
            await self._repeat_lasting()
            for name in ("tools", "prompts", "resources"):  # A server that was started again may have others.
                changed = jsonrpc.encode_notification(list_changed(name).method, {})
                await self._deliver(changed, jsonrpc.parse(changed))

    async def _repeat_lasting(self) -> None:
        for request, line in [*self._lasting.values()]:
            try:
                await self._ask(request.method, request.id, line, self._deliver_all_but_answer)
            except RagMcpError as error:
                log.warning("%s was not repeated in the new session: %s", request.method, error)

    async def _deliver_all_but_answer(self, line: Line, message: Message) -> None:
        """Deliver the messages of a repeated request: its caller has its answer already."""
        if isinstance(message, Failure):
            raise message.error.as_error()
        if not isinstance(message, Success):
            await self._deliver(line, message)

    def _remember(self, request: Request, line: bytes) -> None:
        match request.method:
            case "logging/setLevel" | "resources/subscribe":
                self._lasting[request.method, _uri(request)] = request, line
            case "resources/unsubscribe":
                self._lasting.pop(("resources/subscribe", _uri(request)), None)

    # The standing stream

    async def _listen(self) -> None:
        """Open the standing stream of a new session, and wait a moment until it is open."""
        self._listening.cancel()
        opened = anyio.Event()
        self._tasks.start_soon(self._receive, opened)
        with anyio.move_on_after(OPEN_SECONDS):
            await opened.wait()

    async def _receive(self, opened: anyio.Event) -> None:
        session, events = self._id, None
        backoff = Backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS)

        async def deliver(line: Line, message: Message) -> None:
            backoff.reset()
            await self._deliver(line, message)

        with anyio.CancelScope() as self._listening:
            while True:
                try:
                    async with self._open("GET", "the standing stream", resumes=events) as response:
                        if not response.streams:
                            break
                        self._hears = True
                        opened.set()
                        events = response.events
                        await response.copy(None, deliver)
                except _SessionLost:
                    # Not within this scope, which the new session cancels.
                    self._tasks.start_soon(self._renew_in_time, session)
                    break
                except RagMcpError as error:
                    log.info("%s", error)
                    if status_of(error) not in LATER_STATUSES | {0}:
                        break  # "The server does not offer an SSE stream at this endpoint."
                finally:
                    self._hears = False
                await anyio.sleep(pause(events, backoff))
        opened.set()

    async def _renew_in_time(self, lost: str) -> None:
        """Renew the session as soon as the server can, even if no request comes."""
        backoff = Backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS)
        while True:
            await anyio.sleep(backoff.next())
            try:
                await self._renew(lost)
                return
            except RagMcpError as error:
                log.info("No new session could be started: %s", error)
                if status_of(error) not in LATER_STATUSES and not isinstance(error, ServerUnreachable):
                    return


def pause(events: EventDecoder | None, backoff: Backoff) -> float:
    """Seconds until the next attempt; the server's `retry` takes precedence over the backoff."""
    ours = backoff.next()
    if events is None or events.retry_ms is None:
        return ours
    return max(events.retry_ms / 1000, MIN_PAUSE_SECONDS)


def _uri(request: Request) -> str:
    """The resource of a request; "" if it has none."""
    with suppress(*DECODE_ERRORS):
        return msgspec.json.decode(request.params, type=ResourceParams).uri
    return ""
