"""Pass the trace of a call on to the requests made while it is handled. Source: W3C Trace Context.

It measures and exports nothing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import TypeVar

from msgspec import UNSET, Struct, UnsetType

from ragmcp.protocol.schema.base import RequestMeta

T = TypeVar("T")


class Trace(Struct, frozen=True):
    """`traceparent` and `tracestate`, as received."""

    parent: str | UnsetType = UNSET
    state: str | UnsetType = UNSET


NO_TRACE = Trace()

current: ContextVar[Trace] = ContextVar("trace", default=NO_TRACE)


_TRACEPARENT = r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"


def loggable(traceparent: str | UnsetType | None) -> str:
    """A valid `traceparent` as it is; "-" for anything else."""
    return traceparent if traceparent and re.fullmatch(_TRACEPARENT, traceparent) else "-"


async def traced(meta: RequestMeta, answer: Awaitable[T]) -> T:
    """Await the answer to a request with this `_meta`; requests sent meanwhile carry its trace."""
    token = current.set(Trace(meta.traceparent, meta.tracestate))
    try:
        return await answer
    finally:
        current.reset(token)
