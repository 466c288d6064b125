"""The table of legacy sessions, and the choice of which one to evict. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Generic, Protocol, TypeVar

from ragmcp.http.errors import TooManyOpen


class Entry(Protocol):
    """What the table needs of a session."""

    id: str
    client: str
    """The address of its client."""
    used: bool
    """Whether a request or a GET followed its handshake."""

    @property
    def busy(self) -> bool:
        """Whether an exchange is open."""


S = TypeVar("S", bound=Entry)


class _Share(Generic[S]):
    """The sessions of one address, each half in the order of last use."""

    def __init__(self) -> None:
        self.unused: dict[str, S] = {}
        self.used: dict[str, S] = {}

    def __len__(self) -> int:
        return len(self.unused) + len(self.used)


class SessionTable(Generic[S]):
    """At most `limit` sessions.

    A handshake costs a client nothing, so a flood of handshakes must not end the sessions of others. Sessions
    with only a handshake are evicted first, at the address with the most sessions. A used session is evicted
    only for an address with fewer sessions: otherwise one address could lock out all others.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: dict[str, S] = {}
        self._shares: dict[str, _Share[S]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[S]:
        return iter([*self._sessions.values()])

    def get(self, id: str) -> S | None:
        """The session with this id."""
        return self._sessions.get(id)

    def put(self, session: S) -> None:
        """Add a session, or mark it as used now."""
        self.remove(session)
        self._sessions[session.id] = session
        share = self._shares.setdefault(session.client, _Share())
        (share.used if session.used else share.unused)[session.id] = session

    def remove(self, session: S) -> bool:
        """Remove a session. Returns whether it was in the table."""
        if self._sessions.pop(session.id, None) is None:
            return False
        share = self._shares[session.client]
        if share.unused.pop(session.id, None) is None:
            del share.used[session.id]
        if not share:
            del self._shares[session.client]
        return True

    def to_evict(self, client: str) -> S | None:
        """The session to end before `client` begins a new one; None while there is room.

        Raises TooManyOpen if none may be ended.
        """
        if len(self._sessions) < self._limit:
            return None
        shares = sorted(self._shares.values(), key=len, reverse=True)
        unused = chain.from_iterable(share.unused.values() for share in shares)
        own = len(self._shares.get(client, ()))
        used = chain.from_iterable(share.used.values() for share in shares if len(share) > own + 1)
        idle = next((session for session in chain(unused, used) if not session.busy), None)
        if idle is None:
            raise TooManyOpen("sessions", self._limit)
        return idle
