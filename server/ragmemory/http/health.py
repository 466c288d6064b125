"""Whether the server can answer, for a load balancer."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from ragconfig.errors import SettingsError
from ragmemory.errors import RagMemoryError
from ragmemory.mcp.errors import Memory

logger = logging.getLogger(__name__)

# Seconds that reading from the memory may take: probes wait about as long.
READY_SECONDS = 2.0


async def why_not_ready(
    memory: Memory, is_stopping: Callable[[], bool], has_warmed_up: Callable[[], bool]
) -> str:
    """A sentence without anything private; "" if requests can be answered."""
    if is_stopping():
        return "The server is shutting down."
    if not has_warmed_up():  # The first queries would wait for the index of a large memory.
        return "The server has just been started, and reads the memory."
    with anyio.move_on_after(READY_SECONDS):
        try:
            await (await memory()).check()
        except (RagMemoryError, SettingsError) as error:
            logger.info("Not ready: %s", error)
            # Not the whole sentence, which may name the host and the user of a database.
            return f"The memory cannot be read ({error.code}). The log of the server says why."
        return ""
    return f"The memory did not answer within {READY_SECONDS:g} seconds."
