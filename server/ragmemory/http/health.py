"""Whether the server can answer, for a load balancer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from ragcommon.errors import os_reason
from ragconfig.errors import SettingsError
from ragmemory.errors import RagMemoryError
from ragmemory.mcp.errors import Memory

logger = logging.getLogger(__name__)

# Seconds that reading from the memory may take: probes wait about as long.
READY_SECONDS = 2.0


@dataclass(eq=False)
class Readiness:
    """Whether requests can be answered. Each change of the reason is logged once: probes come often."""

    _memory: Memory
    _is_stopping: Callable[[], bool]
    _has_warmed_up: Callable[[], bool]
    _logged: str = ""

    async def why_not(self) -> str:
        """A sentence without anything private; "" if requests can be answered."""
        if self._is_stopping():
            return "The server is shutting down."
        if not self._has_warmed_up():  # The first queries would wait for the index of a large memory.
            return "The server has just been started, and reads the memory."
        with anyio.move_on_after(READY_SECONDS):
            try:
                await (await self._memory()).check()
            except (RagMemoryError, SettingsError) as error:
                code, reason = error.code, f"{error} {error.hint}".rstrip()
            except OSError as error:
                code, reason = "INTERNAL_ERROR", f"{error.filename or 'The memory'}: {os_reason(error)}."
            else:
                self._log("")
                return ""
            self._log(reason)
            # Not the whole reason, which may name the host and the user of a database.
            return f"The memory cannot be read ({code}). The log of the server says why."
        reason = f"The memory did not answer within {READY_SECONDS:g} seconds."
        self._log(reason)
        return reason

    def _log(self, reason: str) -> None:
        if reason != self._logged:
            self._logged = reason
            logger.warning("Not ready: %s" if reason else "Ready again.%s", reason)
