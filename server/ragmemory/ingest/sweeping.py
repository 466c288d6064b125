"""Remove hidden documents in the background: old versions of long ones, and those of killed processes."""

from __future__ import annotations

import logging

import anyio

from ragmemory.errors import RagMemoryError
from ragmemory.stores.store import Store

logger = logging.getLogger(__name__)

# Seconds between two transactions, about as long as one takes, so that other writers get their turn.
_PAUSE = 0.05


class Sweeper:
    """Sweeps when woken: after the memory is opened, after each write, and after an abandoned write."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._woken = anyio.Event()

    def wake(self) -> None:
        """Sweep soon: there may be something to remove."""
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._woken.wait()
            self._woken = anyio.Event()
            try:
                if await self._store.hidden.sweep():
                    self.wake()
                    await anyio.sleep(_PAUSE)
            except RagMemoryError as error:  # The next write wakes it again.
                logger.warning("Removed documents still take up space: %s", error)
