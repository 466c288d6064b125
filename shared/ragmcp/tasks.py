"""A task beside a body of code. Unlike a task group, it lets what the body raises out as it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio


@asynccontextmanager
async def beside(task: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Runs `task` until it ends or the body does."""
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(task)
        try:
            yield
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
