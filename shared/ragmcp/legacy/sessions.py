"""The legacy sessions of an HTTP endpoint: which requests begin, use and end one.

Those of 2024-11-05 are in `sse_server`.

Source: 2025-11-25 basic/transports, "Streamable HTTP".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import anyio

from ragmcp.errors import UnsupportedRevision
from ragmcp.http import errors
from ragmcp.http.dispatch import Dispatcher
from ragmcp.http.exchange import EVENTS, Exchange
from ragmcp.http.limits import ALL_REPLAY_BYTES
from ragmcp.legacy.http_session import HttpSession, without_headers
from ragmcp.legacy.sse_server import SseSessions
from ragmcp.protocol import headers, jsonrpc
from ragmcp.protocol.eras import LEGACY_REVISIONS, MODERN_REVISIONS
from ragmcp.protocol.jsonrpc import Notification, Request, Unreadable
from ragmcp.protocol.schema.base import PROTOCOL_VERSION

METHODS = ("POST", "GET", "DELETE")


class Sessions:
    """All legacy sessions. Answers legacy requests, as `ragmcp.http.asgi.Endpoint` gets them."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._limits = dispatcher.limits
        self._sessions: dict[str, HttpSession] = {}
        self.sse = SseSessions(dispatcher)

    @property
    def count(self) -> int:
        """How many sessions are open."""
        return len(self._sessions) + len(self.sse.streams)

    async def run(self) -> None:
        """End sessions that are idle for too long; runs until cancelled."""
        while True:
            await anyio.sleep(self._limits.session_idle_seconds / 4)
            limit = anyio.current_time() - self._limits.session_idle_seconds
            for session in [*self._sessions.values()]:
                if not session.exchanges and session.used_at < limit:
                    self._end(session)

    def close(self) -> None:
        """Let all streams end; running requests go on."""
        for session in self._sessions.values():
            session.leave()
        self.sse.close()

    def claims(self, exchange: Exchange) -> bool:
        """Whether it names a legacy revision or none, or has a session and names no modern revision."""
        revision = exchange.header(headers.PROTOCOL_VERSION)
        if revision is None or revision in LEGACY_REVISIONS:
            return True
        return exchange.header(headers.SESSION_ID) is not None and revision not in MODERN_REVISIONS

    async def post(self, exchange: Exchange, body: bytes) -> None:
        """Answer a POST. Raises RemoteProtocolError for a message that belongs to no session."""
        if exchange.header(headers.SESSION_ID) is not None:
            await self._find(exchange).answer(exchange, body)
            return
        match jsonrpc.parse_batch(body) if jsonrpc.is_batch(body) else jsonrpc.parse(body):
            case Request(_, "initialize"):
                await self._begin(exchange, body)
            case Request(method=method, params=params) if PROTOCOL_VERSION.encode() in bytes(params):
                raise without_headers(method)
            case Request(method=method) | Notification(method):
                raise errors.SessionRequired(method)
            case Unreadable(_, reason) | [Unreadable(_, reason)]:
                raise reason
            case _:
                raise errors.SessionRequired("This request")

    async def serve(self, exchange: Exchange) -> None:
        """Answer any other request. Raises RemoteProtocolError."""
        if exchange.method not in METHODS:
            raise errors.HttpMethodNotAllowed(exchange.method, METHODS)
        revision = exchange.header(headers.PROTOCOL_VERSION)
        has_session = exchange.header(headers.SESSION_ID) is not None
        if revision in MODERN_REVISIONS or (revision is None and not has_session):
            # A browser, or a client that probes for HTTP+SSE, which is not at this path.
            raise errors.HttpMethodNotAllowed(exchange.method, ("POST",))
        if not self.claims(exchange):
            raise UnsupportedRevision(revision or "", (*MODERN_REVISIONS, *LEGACY_REVISIONS))
        await (self._get if exchange.method == "GET" else self._delete)(exchange)

    async def _get(self, exchange: Exchange) -> None:
        session = self._find(exchange)
        if not exchange.accepts(EVENTS):
            raise errors.NotAcceptable((EVENTS,))
        if not exchange.may_stream:
            raise errors.TooManyOpen("event streams", self._limits.streams)
        await session.listen(exchange)

    async def _delete(self, exchange: Exchange) -> None:
        self._end(self._find(exchange))
        await exchange.answer(204)

    # Sessions

    def _find(self, exchange: Exchange) -> HttpSession:
        id = exchange.header(headers.SESSION_ID)
        if id is None:
            raise errors.SessionRequired(exchange.method)
        session = self._sessions.get(id)
        if session is None or session.user != exchange.user:
            raise errors.SessionNotFound
        revision = exchange.header(headers.PROTOCOL_VERSION)
        if revision is not None and revision not in LEGACY_REVISIONS:
            terms = session.state.terms
            raise UnsupportedRevision(revision, LEGACY_REVISIONS if terms is None else (terms.revision,))
        return session

    async def _begin(self, exchange: Exchange, body: bytes) -> None:
        if len(self._sessions) >= self._limits.sessions:
            self._end(to_evict(self._sessions.values(), exchange.client))
        session = HttpSession(self._dispatcher, exchange, self._replay_limit)
        self._sessions[session.id] = session
        await session.answer(exchange, body)
        if session.state.terms is None:
            self._end(session)

    def _replay_limit(self) -> int:
        return min(self._limits.replay_bytes, ALL_REPLAY_BYTES // max(len(self._sessions), 1))

    def _end(self, session: HttpSession) -> None:
        self._sessions.pop(session.id, None)
        session.end()


def to_evict(sessions: Collection[HttpSession], client: str) -> HttpSession:
    """Which of all sessions to end before `client` begins another one.

    A handshake costs a client nothing, so a flood of handshakes must not end the sessions of others. Sessions
    with only a handshake are evicted first, at the address with the most sessions. A used session is evicted
    only for an address with fewer sessions: otherwise one address could lock out all others. Of equals, the
    least recently used session is evicted.

    Raises TooManyOpen if none may be ended.
    """
    count = Counter(session.client for session in sessions)
    evictable = [
        session
        for session in sessions
        if not session.exchanges and (not session.used or count[session.client] > count[client] + 1)
    ]
    if not evictable:
        raise errors.TooManyOpen("sessions", len(sessions))
    return min(evictable, key=lambda session: (session.used, -count[session.client], session.used_at))
