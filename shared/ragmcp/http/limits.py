"""Limits on what clients may use over HTTP."""

from __future__ import annotations

from msgspec import Struct

# Requests in progress of one legacy session: HTTP+SSE acknowledges posts before their answers.
SESSION_REQUESTS = 1_000
# Events that all legacy sessions together store for replay, in bytes. With very many sessions each stores
# less than `replay_bytes`.
ALL_REPLAY_BYTES = 2**28
# The slowest rate at which a body may arrive: slower clients must not hold connections.
MIN_BYTES_PER_SECOND = 2**17


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
