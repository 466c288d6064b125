"""Limits on what clients may use over HTTP, and the count of open event streams. Pure."""

from __future__ import annotations

from msgspec import Struct

from ragmcp.http.errors import TooManyOpen

# Requests in progress of one legacy session: HTTP+SSE acknowledges posts before their answers.
SESSION_REQUESTS = 1_000
# Events that all legacy sessions together store for replay, in bytes. With very many sessions each stores
# less than `replay_bytes`.
ALL_REPLAY_BYTES = 2**28
# The slowest rate at which a body may arrive: slower clients must not hold connections.
LEAST_BYTES_PER_SECOND = 2**17


class HttpLimits(Struct, frozen=True, kw_only=True):
    """The settings."""

    message_bytes: int
    header_bytes: int
    headers: int
    # Seconds to send a body, in addition to its size at the slowest rate; or to receive an event.
    body_seconds: float
    # Seconds of silence before a comment keeps the connection alive.
    keep_alive_seconds: float
    sessions: int
    session_idle_seconds: float
    # Events that a session stores for replay, in bytes.
    replay_bytes: int
    streams: int
    # How long a client should wait before it resumes a stream that ended early.
    retry_ms: int
    # Seconds for open requests when the server shuts down.
    leave_seconds: float


class Streams:
    """The count of open event streams, and its limit."""

    def __init__(self, limit: int) -> None:
        self.count = 0
        self._limit = limit

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return self.count >= self._limit

    def open(self) -> None:
        """Count one more. Raises TooManyOpen."""
        if self.full:
            raise TooManyOpen("event streams", self._limit)
        self.count += 1

    def close(self) -> None:
        """Count one less."""
        self.count -= 1
