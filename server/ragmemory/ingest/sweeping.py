"""Removes hidden documents in the background: old versions of long ones, and what a killed process left."""

from __future__ import annotations

import logging

import anyio

from ragmemory.errors import RagMemoryError
from ragmemory.stores.sqlite import Store

logger = logging.getLogger(__name__)

# Seconds between two transactions, in which others write: about as long as one takes.
_PAUSE = 0.05


class Sweeping:
    """Sweeps after writes only: a process that reads leaves the file as it is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._written = anyio.Event()

    def note_write(self) -> None:
        """Something was committed, which may have left something to remove."""
        self._written.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._written.wait()
            self._written = anyio.Event()
            try:
                if await self._store.sweep():
                    self._written.set()
                    await anyio.sleep(_PAUSE)
            except RagMemoryError as error:  # after the next write it tries again
                logger.warning("Removed documents still take up space: %s", error)
