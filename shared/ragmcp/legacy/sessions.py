"""Legacy sessions over HTTP (2025-03-26 to 2025-11-25): requests, streams and their end.

A lost response does not cancel the call: it goes on, and the client gets the rest with a GET.
Source: 2025-11-25 basic/transports, "Streamable HTTP".
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from ragmcp.errors import UnsupportedRevision
from ragmcp.http.dispatch import ClientWatch, Dispatcher
from ragmcp.http.errors import (
    HeaderMismatch,
    HttpError,
    NotAcceptable,
    SessionNotFound,
    SessionRequired,
    TooManyOpen,
)
from ragmcp.http.exchange import EVENTS, Exchange
from ragmcp.http.limits import ALL_REPLAY_BYTES
from ragmcp.legacy.http_session import HttpSession, SessionChannel
from ragmcp.legacy.replay import SessionStream
from ragmcp.legacy.server import forward_changes
from ragmcp.legacy.session_table import SessionTable
from ragmcp.protocol import headers, jsonrpc
from ragmcp.protocol.eras import LATEST_MODERN, LEGACY_REVISIONS, Era
from ragmcp.protocol.jsonrpc import Notification, Request, Unreadable
from ragmcp.protocol.schema.base import PROTOCOL_VERSION
from ragmcp.server.call import Call

log = logging.getLogger(__name__)


class Sessions:
    """All legacy sessions of an endpoint."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._limits = dispatcher.limits
        self._sessions: SessionTable[HttpSession] = SessionTable(self._limits.sessions)

    @property
    def count(self) -> int:
        """How many sessions are open."""
        return len(self._sessions)

    async def post(self, exchange: Exchange, body: bytes) -> None:
        """Answer a POST. Raises RemoteProtocolError for a message that belongs to no session."""
        if exchange.header(headers.SESSION_ID) is not None:
            session = self._find(exchange)
            with self._using(session, exchange):
                await self._answer(exchange, session, body)
            return
        match jsonrpc.parse_batch(body) if jsonrpc.is_batch(body) else jsonrpc.parse(body):
            case Request(_, "initialize"):
                await self._begin(exchange, body)
            case Request(method=method, params=params) if PROTOCOL_VERSION.encode() in bytes(params):
                raise _without_headers(method)
            case Request(method=method) | Notification(method):
                raise SessionRequired(method)
            case Unreadable(_, reason) | [Unreadable(_, reason)]:
                raise reason
            case _:
                raise SessionRequired("")

    async def get(self, exchange: Exchange) -> None:
        """Open a stream: a standing one, or with Last-Event-ID the rest of an earlier one.

        Raises HttpError, UnsupportedRevision, InvalidRequest for an event that is no longer stored.
        """
        session = self._find(exchange)
        if not exchange.accepts(EVENTS):
            raise NotAcceptable((EVENTS,))
        if not exchange.may_stream:
            raise TooManyOpen("event streams", self._limits.streams)
        session.used = True
        with self._using(session, exchange), session.open_get() as carried:
            if (last_seen := exchange.header(headers.LAST_EVENT_ID)) is not None:
                stream, number = session.find_stream(last_seen)
                await stream.catch_up(exchange, number, carried)
            else:
                stream = self._listen(session)
                stream.attach(exchange, carried)
                await stream.keep_alive()
            try:
                while stream.carried_by(exchange):
                    if await exchange.gone_within(self._limits.keep_alive_seconds):
                        break
                    await stream.keep_alive()
            finally:
                stream.detach(exchange)
        await exchange.finish()

    async def delete(self, exchange: Exchange) -> None:
        """End a session. Raises HttpError, UnsupportedRevision."""
        self._end(self._find(exchange))
        await exchange.answer(204)

    async def expire(self) -> None:
        """End sessions that are idle for too long; runs until cancelled."""
        while True:
            await anyio.sleep(self._limits.session_idle_seconds / 4)
            limit = anyio.current_time() - self._limits.session_idle_seconds
            for session in self._sessions:
                if not session.busy and session.used_at < limit:
                    self._end(session)

    def leave(self) -> None:
        """Let all streams end; running requests go on."""
        for session in self._sessions:
            session.leave()

    # Sessions

    def _find(self, exchange: Exchange) -> HttpSession:
        id = exchange.header(headers.SESSION_ID)
        if id is None:
            raise SessionRequired(exchange.method)
        session = self._sessions.get(id)
        if session is None:
            raise SessionNotFound
        revision = exchange.header(headers.PROTOCOL_VERSION)
        if revision is not None and revision not in LEGACY_REVISIONS:
            terms = session.state.terms
            raise UnsupportedRevision(revision, LEGACY_REVISIONS if terms is None else (terms.revision,))
        return session

    @contextmanager
    def _using(self, session: HttpSession, exchange: Exchange) -> Iterator[None]:
        session.exchanges.add(exchange)
        try:
            yield
        finally:
            session.close_exchange(exchange)
            if self._sessions.get(session.id):
                self._sessions.put(session)

    def _end(self, session: HttpSession) -> None:
        self._sessions.remove(session)
        session.close()

    async def _begin(self, exchange: Exchange, body: bytes) -> None:
        if (other := self._sessions.to_evict(exchange.client)) is not None:
            self._end(other)
        session = HttpSession(self._limits, exchange.client, self._replay_limit)
        self._sessions.put(session)
        with self._using(session, exchange):
            await self._answer(exchange, session, body)
        if session.state.terms is None:
            self._end(session)

    def _replay_limit(self) -> int:
        return min(self._limits.replay_bytes, ALL_REPLAY_BYTES // max(len(self._sessions), 1))

    def _listen(self, session: HttpSession) -> SessionStream:
        stream = session.open_stream(standing=True)
        if not session.listening:
            session.listening = True
            self._dispatcher.tasks.start_soon(self._forward_changes, session)
        return stream

    async def _forward_changes(self, session: HttpSession) -> None:
        channel = SessionChannel(session, session.standing_stream)
        with session.forwarding:
            try:
                await forward_changes(self._dispatcher.server.broadcast, session.state, channel)
            except Exception:  # One session must not end the others' tasks.
                log.exception("Forwarding changes to a session failed")

    # Requests

    async def _answer(self, exchange: Exchange, session: HttpSession, body: bytes) -> None:
        begun = session.state.terms is not None
        requests, replies = session.take(body)
        session.used |= begun and bool(requests)
        if not requests:
            await exchange.answer(400 if replies else 202, b"".join(replies))
            return
        stream = session.open_stream()
        stream.attach(exchange)

        def gone() -> None:
            stream.detach(exchange)
            session.close_exchange(exchange)

        watch = ClientWatch(self._dispatcher, exchange, gone, stream.keep_alive)
        answers: list[tuple[int, bytes]] = []
        if len(requests) == 1:
            answers.append(await self._handle(exchange, session, stream, requests[0], watch))
        else:  # The last answer of a batch completes the line of the whole batch.

            async def handle(request: Request) -> None:
                answers.append(await self._handle(exchange, session, stream, request, watch))

            async with anyio.create_task_group() as tasks:
                for request in requests:
                    tasks.start_soon(handle, request)
        session.connection.batches = session.state.batches
        statuses, lines = zip(*answers, strict=True)
        await self._send(exchange, session, stream, max(statuses), b"".join(lines))

    async def _handle(
        self,
        exchange: Exchange,
        session: HttpSession,
        stream: SessionStream,
        request: Request,
        watch: ClientWatch,
    ) -> tuple[int, bytes]:
        """The HTTP status and the encoded answer; b"" if none is to be sent (yet)."""
        with session.running[request.id]:
            try:
                line, error = await self._dispatcher.handle(
                    exchange,
                    request,
                    lambda: self._open(request, session, stream),
                    session.connection.answer,
                    watch,
                )
            finally:
                del session.running[request.id]
            # Legacy clients treat any other status as a broken transport.
            return error.status if isinstance(error, HttpError) else 200, line
        return 200, session.connection.forget(request.id)

    def _open(self, request: Request, session: HttpSession, stream: SessionStream) -> Call:
        channel = SessionChannel(session, lambda: stream)
        call = self._dispatcher.server.open_call(request, session.state, channel)
        if call.era is Era.MODERN:
            raise _without_headers(request.method)
        return call

    async def _send(
        self, exchange: Exchange, session: HttpSession, stream: SessionStream, status: int, line: bytes
    ) -> None:
        if stream.begun:
            await (stream.send(line, last=True) if line else stream.end())
            if exchange.streaming:  # A GET may have taken over the stream.
                await exchange.finish()
        elif line:
            if session.state.terms is not None:
                exchange.extra.append((b"mcp-session-id", session.id.encode()))
            await exchange.answer(status, line)
        else:
            # A cancelled request gets no answer, but HTTP needs a response. A request whose session the
            # client ends gets no answer either: the SDK 1.x fails on an error then.
            await exchange.finish()


def _without_headers(method: str) -> HeaderMismatch:
    reason = (
        f"must be {LATEST_MODERN!r} as in the body of this {method}, but is missing or of another revision"
    )
    return HeaderMismatch(headers.PROTOCOL_VERSION, reason)
