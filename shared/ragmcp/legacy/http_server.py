"""The legacy half of an HTTP endpoint: sessions on the MCP endpoint, and HTTP+SSE beside it."""

from __future__ import annotations

from ragmcp.errors import UnsupportedRevision
from ragmcp.http.dispatch import Dispatcher
from ragmcp.http.errors import HttpMethodNotAllowed
from ragmcp.http.exchange import Exchange, Scope
from ragmcp.legacy.sessions import Sessions
from ragmcp.legacy.sse_server import SseSessions
from ragmcp.protocol import headers
from ragmcp.protocol.eras import LEGACY_REVISIONS, MODERN_REVISIONS

METHODS = ("POST", "GET", "DELETE")


class LegacyRequests:
    """Answers legacy requests, as `ragmcp.http.asgi.Endpoint` gets them."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._sessions = Sessions(dispatcher)
        self._sse = SseSessions(dispatcher)

    @property
    def session_count(self) -> int:
        """How many sessions are open."""
        return self._sessions.count + self._sse.count

    async def run(self) -> None:
        """End idle sessions, until cancelled."""
        await self._sessions.expire()

    def close(self) -> None:
        """Let the streams of all sessions end."""
        self._sessions.leave()

    def claims(self, exchange: Exchange) -> bool:
        """Whether it names a legacy revision or none, or has a session and names no modern revision."""
        revision = exchange.header(headers.PROTOCOL_VERSION)
        if revision is None or revision in LEGACY_REVISIONS:
            return True
        return exchange.header(headers.SESSION_ID) is not None and revision not in MODERN_REVISIONS

    async def post(self, exchange: Exchange, body: bytes) -> None:
        """Answer a POST. Raises RemoteProtocolError."""
        await self._sessions.post(exchange, body)

    async def serve(self, exchange: Exchange) -> None:
        """Answer any other request. Raises RemoteProtocolError."""
        if exchange.method not in METHODS:
            raise HttpMethodNotAllowed(exchange.method, METHODS)
        revision = exchange.header(headers.PROTOCOL_VERSION)
        has_session = exchange.header(headers.SESSION_ID) is not None
        if revision in MODERN_REVISIONS or (revision is None and not has_session):
            # A browser, or a client that probes for HTTP+SSE, which is not at this path.
            raise HttpMethodNotAllowed(exchange.method, ("POST",))
        if not self.claims(exchange):
            raise UnsupportedRevision(revision or "", (*MODERN_REVISIONS, *LEGACY_REVISIONS))
        await (self._sessions.get if exchange.method == "GET" else self._sessions.delete)(exchange)

    async def sse(self, exchange: Exchange, scope: Scope) -> None:
        """Answer GET /sse. Raises HttpError."""
        await self._sse.listen(exchange, scope)

    async def messages(self, exchange: Exchange, scope: Scope) -> None:
        """Answer POST /messages. Raises HttpError."""
        await self._sse.post(exchange, scope)
