"""Which legacy sessions there are, and which one makes room for a new one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Generic, Protocol, TypeVar

from ragmcp.http.errors import TooManyOpen


class Entry(Protocol):
    """A session, as far as the table is concerned."""

    id: str
    client: str
    """The address that began it."""
    used: bool
    """Whether it was asked anything after its handshake, or listened to."""

    @property
    def busy(self) -> bool:
        """Whether its client is being answered or listens just now."""


S = TypeVar("S", bound=Entry)


class _Share(Generic[S]):
    """The sessions of one address; in each half the least recently used one stands first."""

    def __init__(self) -> None:
        self.unused: dict[str, S] = {}
        self.used: dict[str, S] = {}

    def __len__(self) -> int:
        return len(self.unused) + len(self.used)


class SessionTable(Generic[S]):
    """At most `limit` sessions.

    A handshake costs a client nothing, so a flood of them must not end the sessions of others. A session that
    was only begun makes room for a new one, first at the address that has most sessions. One that was used
    makes room only for another address that has fewer: else one address could lock out all others.
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
        """The session of that id."""
        return self._sessions.get(id)

    def put(self, session: S) -> None:
        """Add it, or note that it was used just now."""
        self.remove(session)
        self._sessions[session.id] = session
        share = self._shares.setdefault(session.client, _Share())
        (share.used if session.used else share.unused)[session.id] = session

    def remove(self, session: S) -> bool:
        """Whether it was there."""
        if self._sessions.pop(session.id, None) is None:
            return False
        share = self._shares[session.client]
        if share.unused.pop(session.id, None) is None:
            del share.used[session.id]
        if not share:
            del self._shares[session.client]
        return True

    def in_the_way(self, client: str) -> S | None:
        """The session that must go before `client` begins one; None while there is room.

        Raises TooManyOpen where none may go.
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
