"""A lock that many may hold together, or one alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class SharedLock:
    """Who wants it alone waits for all who have it, and whoever comes later waits for him. Not reentrant."""

    def __init__(self) -> None:
        self._alone = anyio.Lock()
        self._holders = 0
        self._released = anyio.Event()

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Together with others; costs no turn of the event loop where nobody wants it alone."""
        while self._alone.locked():
            async with self._alone:
                pass
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            self._released.set()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Alone."""
        async with self._alone:
            while self._holders:
                self._released = anyio.Event()
                await self._released.wait()
            yield
