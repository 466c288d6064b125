"""A legacy session that carries encoded messages, for programs that pass messages on."""

from __future__ import annotations

from typing import Protocol

from anyio.abc import TaskGroup

from ragmcp.http.client import Deliver, Http
from ragmcp.older_revisions import require_legacy
from ragmcp.protocol.jsonrpc import Request


class RawSession(Protocol):
    """As `ragmcp.legacy.session_client.SessionClient` describes it."""

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
