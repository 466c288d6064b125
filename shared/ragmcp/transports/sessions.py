"""Legacy sessions over HTTP (2025-03-26 to 2025-11-25): what outlives a request. Deletable with their era.

A response that is lost is no cancellation: the call goes on, and its client hears the rest on a GET.
Source: 2025-11-25 basic/transports, "Streamable HTTP".
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from msgspec import Raw

from ragmcp import headers, jsonrpc
from ragmcp.call import Call
from ragmcp.connection import Answered, Cancelled, Connection, Garbage, Reply
from ragmcp.eras import LATEST_MODERN, Era, Session
from ragmcp.errors import (
    ConnectionClosed,
    HeaderMismatch,
    HttpError,
    InvalidRequest,
    NotAcceptable,
    SessionNotFound,
    SessionRequired,
    TooManyOpen,
)
from ragmcp.jsonrpc import Id, Notification, Request, Unreadable
from ragmcp.peer import Waiter
from ragmcp.schema import PROTOCOL_VERSION
from ragmcp.server import open_call
from ragmcp.transports.answering import Answering, Attendant
from ragmcp.transports.exchange import EVENTS, Exchange, HttpLimits
from ragmcp.transports.replay import Replay, SessionStream, parse_id

log = logging.getLogger(__name__)

# 192 bits.
ID_BYTES = 24
# From here on clients know an event without data, which only tells where to come back to. (SEP-1699)
PRIMING_SINCE = "2025-11-25"
# How many streams of a session can be come back to.
STREAMS_KEPT = 100


class HttpSession:
    """One session: its connection, its streams, and what is being answered in it."""

    def __init__(self, limits: HttpLimits) -> None:
        self.id = secrets.token_urlsafe(ID_BYTES)
        self.state = Session()
        self.connection: Connection[Waiter] = Connection(limits.message_bytes, refuses=True)
        self.closed = anyio.Event()
        self.running: dict[Id, anyio.CancelScope] = {}
        self.listening = False
        self.told = anyio.CancelScope()
        # Whose clients are there; while there are none it is idle.
        self.exchanges: set[Exchange] = set()
        self.used_at = anyio.current_time()
        self._limits = limits
        self._replay = Replay(limits.replay_bytes)
        self._streams: dict[int, SessionStream] = {}
        self._last_stream = 0
        self._standing: list[SessionStream] = []

    def take(self, body: bytes) -> tuple[list[Request], list[bytes]]:
        """The requests in a body, and the answers to what is unusable in it; what else there is, is done."""
        requests, replies = [], []
        for event in self.connection.receive_message(body):
            match event:
                case Request():
                    requests.append(event)
                case Reply(line):
                    replies.append(line)
                case Answered(waiter, outcome):
                    waiter.outcome = outcome
                    waiter.done.set()
                case Cancelled(id) if id in self.running:
                    self.running[id].cancel()
                case Garbage(error):
                    log.info("Ignored what a client sent: %s", error)
        return requests, replies

    def part(self, exchange: Exchange) -> None:
        """That client is gone, or answered."""
        self.exchanges.discard(exchange)
        self.used_at = anyio.current_time()

    def leave(self) -> None:
        """Ask and tell nothing more; what is being answered goes on."""
        self.closed.set()
        self.told.cancel()
        for waiter in self.connection.close():
            waiter.done.set()
        for stream in self._streams.values():
            stream.dismiss()

    def close(self) -> None:
        """End everything in it."""
        self.leave()
        for scope in self.running.values():
            scope.cancel()

    # Streams

    def open_stream(self, *, standing: bool = False) -> SessionStream:
        """A new stream; a `standing` one belongs to no request."""
        self._last_stream += 1
        priming = self.state.terms is not None and self.state.terms.revision >= PRIMING_SINCE
        stream = SessionStream(
            self._last_stream, self._replay, self._keep, priming=priming, retry_ms=self._limits.retry_ms
        )
        if standing:
            self._standing.append(stream)
        return stream

    def _keep(self, stream: SessionStream) -> None:
        if len(self._streams) >= STREAMS_KEPT:
            news = self._standing[-1:]
            gone = [old for old in self._streams.values() if not old.live and old not in news]
            for old in gone[:1]:
                del self._streams[old.number]
                if old in self._standing:
                    self._standing.remove(old)
        self._streams[stream.number] = stream

    def find_stream(self, event_id: str) -> tuple[SessionStream, int]:
        """The stream of an event, and the event's number. Raises InvalidRequest."""
        try:
            stream, number = parse_id(event_id)
            return self._streams[stream], number
        except (ValueError, KeyError):
            raise InvalidRequest("the event of Last-Event-ID is not known any more") from None

    def for_news(self) -> SessionStream:
        """The one stream for what belongs to no request: the latest that somebody hears."""
        return next((stream for stream in reversed(self._standing) if stream.live), self._standing[-1])


class SessionChannel:
    """The way back to a session's client, on one of its streams."""

    def __init__(self, session: HttpSession, stream: Callable[[], SessionStream]) -> None:
        self.closed = session.closed
        self._connection = session.connection
        self._stream = stream

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification; waits while the client listens but does not read."""
        await self._stream().say(jsonrpc.encode_notification(method, params))

    async def request(self, method: str, params: Any, timeout: float | None = None) -> Raw:
        """Ask the client; its answer comes with another POST. Raises what `Channel.request` says."""
        if self.closed.is_set():
            raise ConnectionClosed(method)
        waiter = Waiter()
        id, line = self._connection.ask(method, params, waiter)
        try:
            with anyio.move_on_after(timeout) as clock:
                await self._stream().say(line)
                await waiter.done.wait()
            if clock.cancelled_caught:
                waiter.outcome = TimeoutError()
        finally:
            if line := self._connection.abandon(id):
                with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                    await self._stream().say(line)
        return waiter.result(method, timeout)

    async def pause(self) -> None:
        """Let the response end and the client come back for the rest, if it is one that does."""
        if self._stream().resumable:
            await self._stream().pause()


class Sessions:
    """All legacy sessions of an endpoint."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._limits = answering.limits
        # The one that was used last stands last.
        self._sessions: dict[str, HttpSession] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._sessions)

    async def post(self, exchange: Exchange, body: bytes) -> None:
        """Answer a body. Raises HttpError."""
        if exchange.header(headers.SESSION_ID) is not None:
            session = self._find(exchange)
            with self._using(session, exchange):
                await self._answer(exchange, session, body)
            return
        message = jsonrpc.parse(body)
        match message:
            case Request(_, "initialize"):
                await self._begin(exchange, body)
            case Request(method=method, params=params) if PROTOCOL_VERSION.encode() in bytes(params):
                raise _without_headers(method)
            case Request(method=method) | Notification(method):
                raise SessionRequired(method)
            case Unreadable(id, reason) if not jsonrpc.is_batch(body):
                await self._answering.refuse(exchange, reason, id)
            case _:
                raise SessionRequired("")

    async def get(self, exchange: Exchange) -> None:
        """A stream: a new one, or with Last-Event-ID the rest of an old one.

        Raises HttpError, InvalidRequest for an event nobody remembers.
        """
        session = self._find(exchange)
        if not exchange.accepts(EVENTS):
            raise NotAcceptable((EVENTS,))
        if not exchange.may_stream:
            raise TooManyOpen("event streams", self._limits.streams)
        with self._using(session, exchange), anyio.CancelScope() as carried:
            if (last_seen := exchange.header(headers.LAST_EVENT_ID)) is not None:
                stream, number = session.find_stream(last_seen)
                await stream.catch_up(exchange, number, carried)
            else:
                stream = self._listen(session)
                stream.attach(exchange, carried)
                await stream.keep_alive()
            try:
                while stream.carried_by(exchange):
                    with anyio.move_on_after(self._limits.keep_alive_seconds):
                        await exchange.gone()
                        break
                    await stream.keep_alive()
            finally:
                stream.detach(exchange)
        await exchange.finish()

    async def delete(self, exchange: Exchange) -> None:
        """End a session. Raises HttpError."""
        self._end(self._find(exchange))
        await exchange.answer(204)

    async def expire(self) -> None:
        """Keep ending what is idle for too long."""
        while True:
            await anyio.sleep(self._limits.session_idle_seconds / 4)
            limit = anyio.current_time() - self._limits.session_idle_seconds
            for session in [*self._sessions.values()]:
                if not session.exchanges and session.used_at < limit:
                    self._end(session)

    def leave(self) -> None:
        """Let all streams end, and all calls find theirs."""
        for session in self._sessions.values():
            session.leave()

    # Who there is

    def _find(self, exchange: Exchange) -> HttpSession:
        id = exchange.header(headers.SESSION_ID)
        if id is None:
            raise SessionRequired(exchange.method)
        if id not in self._sessions:
            raise SessionNotFound
        return self._sessions[id]

    @contextmanager
    def _using(self, session: HttpSession, exchange: Exchange) -> Iterator[None]:
        session.exchanges.add(exchange)
        try:
            yield
        finally:
            session.part(exchange)
            if self._sessions.pop(session.id, None):
                self._sessions[session.id] = session

    def _end(self, session: HttpSession) -> None:
        self._sessions.pop(session.id, None)
        session.close()

    async def _begin(self, exchange: Exchange, body: bytes) -> None:
        """A client whose session had to go for another one learns it from a 404 and begins anew, unnoticed;
        one that is refused its first request has failed in front of its user. So the new one gets in, as long
        as there is one that nobody uses right now.
        """
        if len(self._sessions) >= self._limits.sessions:
            idle = next((session for session in self._sessions.values() if not session.exchanges), None)
            if idle is None:
                raise TooManyOpen("sessions", self._limits.sessions)
            self._end(idle)
        session = HttpSession(self._limits)
        self._sessions[session.id] = session
        with self._using(session, exchange):
            await self._answer(exchange, session, body)
        if session.state.terms is None:
            self._end(session)

    def _listen(self, session: HttpSession) -> SessionStream:
        stream = session.open_stream(standing=True)
        if not session.listening:
            session.listening = True
            self._answering.tasks.start_soon(self._tell, session)
        return stream

    async def _tell(self, session: HttpSession) -> None:
        from ragmcp.subscriptions import tell_legacy

        channel = SessionChannel(session, session.for_news)
        with session.told:
            try:
                await tell_legacy(self._answering.server, session.state, channel)
            except Exception:  # One session's trouble is no other's.
                log.exception("Could not tell a session its news")

    # What is answered

    async def _answer(self, exchange: Exchange, session: HttpSession, body: bytes) -> None:
        requests, replies = session.take(body)
        if not requests:
            await exchange.answer(400 if replies else 202, b"".join(replies))
            return
        stream = session.open_stream()
        stream.attach(exchange)

        def gone() -> None:
            stream.detach(exchange)
            session.part(exchange)

        attendant = Attendant(self._answering, exchange, gone, stream.keep_alive)
        lines = [b""] * len(requests)
        status = 200

        async def run(place: int, request: Request) -> None:
            nonlocal status
            with anyio.CancelScope() as scope:
                session.running[request.id] = scope
                try:
                    lines[place], error = await self._answering.handle(
                        exchange,
                        request,
                        lambda: _open(request, session, stream),
                        session.connection,
                        attendant,
                    )
                finally:
                    del session.running[request.id]
                if isinstance(error, HttpError):
                    status = error.status
            if scope.cancelled_caught:
                lines[place] = session.connection.forget(request.id)

        if len(requests) == 1:
            await run(0, requests[0])
        else:
            async with anyio.create_task_group() as tasks:
                for place, request in enumerate(requests):
                    tasks.start_soon(run, place, request)
        await self._send(exchange, session, stream, status, b"".join(lines))

    async def _send(
        self, exchange: Exchange, session: HttpSession, stream: SessionStream, status: int, line: bytes
    ) -> None:
        if session.state.terms is not None:
            session.connection.batches = session.state.batches
        if stream.begun:
            await (stream.say(line, last=True) if line else stream.end())
        elif line:
            if session.state.terms is not None:
                exchange.extra.append((b"mcp-session-id", session.id.encode()))
            await exchange.answer(status, line)
        else:
            # "SHOULD NOT send a response" to what was cancelled; but HTTP wants one. Nor to what is under way
            # when a client ends its session: the SDK 1.x falls over an error that comes then.
            await exchange.finish()


def _open(request: Request, session: HttpSession, stream: SessionStream) -> Call:
    call = open_call(request, session.state, SessionChannel(session, lambda: stream))
    if call.era is Era.MODERN:
        raise _without_headers(request.method)
    return call


def _without_headers(method: str) -> HeaderMismatch:
    reason = (
        f"must be {LATEST_MODERN!r} as in the body of this {method}, but is missing or of another revision"
    )
    return HeaderMismatch(headers.PROTOCOL_VERSION, reason)
