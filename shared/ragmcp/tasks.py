"""A task beside a body of code. Not a task group: the body's own exception comes out as it is, never in a group."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio


@asynccontextmanager
async def beside(task: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Runs `task` until it ends or the body does."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task)
        try:
            yield
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
