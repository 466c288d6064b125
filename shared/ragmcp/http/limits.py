"""Limits on what clients may use over HTTP."""

from __future__ import annotations

from msgspec import Struct

from ragmcp.protocol.framing import MESSAGE_BYTES

# Requests in progress of one legacy session: HTTP+SSE acknowledges posts before their answers.
SESSION_REQUESTS = 1_000
# Events that all legacy sessions together store for replay, in bytes. With very many sessions each gets
# less than `replay_bytes`.
ALL_REPLAY_BYTES = 2**28
# The slowest rate at which a body may arrive: slower clients must not hold connections.
MIN_BYTES_PER_SECOND = 2**17


class HttpLimits(Struct, frozen=True, kw_only=True):
    """The settings."""

    message_bytes: int = MESSAGE_BYTES
    header_bytes: int = 65_536
    headers: int = 100
    # Seconds to send a body, in addition to its size at the slowest rate; or to receive an event.
    body_seconds: float = 30.0
    # Seconds of silence before a comment keeps the connection alive.
    keep_alive_seconds: float = 15.0
    sessions: int = 10_000
    session_idle_seconds: float = 3600.0
    # Events that a session stores for replay, in bytes.
    replay_bytes: int = 2**20
    streams: int = 10_000
    # How long a client should wait before it resumes a stream that ended early.
    retry_ms: int = 1000
    # Seconds for open requests when the server shuts down.
    leave_seconds: float = 10.0
