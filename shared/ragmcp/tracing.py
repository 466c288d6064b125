"""Pass the trace of a call on to the requests made while it is handled. Source: W3C Trace Context.

It measures and exports nothing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import TypeVar

from msgspec import UnsetType

from ragmcp.protocol.schema.base import NO_META, RequestMeta

T = TypeVar("T")

# The `_meta` of the request that is being handled: its `traceparent` and `tracestate` are passed on.
current: ContextVar[RequestMeta] = ContextVar("trace", default=NO_META)

_TRACEPARENT = r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"


def loggable(traceparent: str | UnsetType | None) -> str:
    """A valid `traceparent` as it is; "-" for anything else."""
    return traceparent if traceparent and re.fullmatch(_TRACEPARENT, traceparent) else "-"


async def traced(meta: RequestMeta, answer: Awaitable[T]) -> T:
    """Await the answer to a request with this `_meta`; requests sent meanwhile carry its trace."""
    token = current.set(meta)
    try:
        return await answer
    finally:
        current.reset(token)
