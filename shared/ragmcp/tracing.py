"""The trace of a request, for the log. Source: W3C Trace Context."""

from __future__ import annotations

import re

from msgspec import UnsetType

_TRACEPARENT = r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"


def loggable(traceparent: str | UnsetType | None) -> str:
    """A valid `traceparent` as it is; "-" for anything else."""
    return traceparent if traceparent and re.fullmatch(_TRACEPARENT, traceparent) else "-"
