"""What clients over HTTP may take of the server: numbers, and the count of what is open. Pure."""

from __future__ import annotations

from msgspec import Struct

from ragmcp.http.errors import TooManyOpen

# How many requests one legacy session may have in progress: its posts are acknowledged before the answer.
SESSION_REQUESTS = 1_000
# What all legacy sessions together keep for clients that come back, in bytes: with very many of them, each
# keeps less than its `replay_bytes`.
ALL_REPLAY_BYTES = 2**28
# A body that keeps this pace may be as long as `message_bytes`; a trickle may not hold a connection.
LEAST_BYTES_PER_SECOND = 2**17


class HttpLimits(Struct, frozen=True, kw_only=True):
    """What one client, or all of them, may take."""

    message_bytes: int
    header_bytes: int
    headers: int
    # How long a client may take to send its body, beyond its size at the least pace; or to take in an event.
    body_seconds: float
    # How long nothing is said before a comment tells everybody in between that the connection lives.
    keep_alive_seconds: float
    sessions: int
    session_idle_seconds: float
    # Events that a session keeps for a client that lost its stream.
    replay_bytes: int
    streams: int
    # How long a client should wait before it comes back to a stream that ended early.
    retry_ms: int
    # How long those who are being answered have when the server leaves.
    leave_seconds: float


class Streams:
    """How many event streams are open, and how many may be."""

    def __init__(self, limit: int) -> None:
        self.count = 0
        self._limit = limit

    @property
    def full(self) -> bool:
        """Whether there is no room for another one."""
        return self.count >= self._limit

    def open(self) -> None:
        """One more. Raises TooManyOpen."""
        if self.full:
            raise TooManyOpen("event streams", self._limit)
        self.count += 1

    def close(self) -> None:
        """One less."""
        self.count -= 1
