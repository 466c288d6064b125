"""The trace of a request, for the log. Source: W3C Trace Context."""

from __future__ import annotations

import re
from contextvars import ContextVar

from msgspec import UnsetType

_TRACEPARENT = r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"
TRACE_ID: ContextVar[str | None] = ContextVar("trace_id", default=None)
"""That of the request that the current task answers, 32 hexadecimal digits."""


def loggable(traceparent: str | UnsetType | None) -> str:
    """A valid `traceparent` as it is; "-" for anything else."""
    return traceparent if traceparent and re.fullmatch(_TRACEPARENT, traceparent) else "-"


def enter(traceparent: str | UnsetType | None) -> str:
    """Set TRACE_ID for the current task; returns the `loggable` form."""
    said = loggable(traceparent)
    TRACE_ID.set(None if said == "-" else said.split("-")[1])
    return said
