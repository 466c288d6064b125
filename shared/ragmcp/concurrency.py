"""Two things anyio leaves to its users: a task beside a body of code, and knowing when work first waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from types import coroutine
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


@asynccontextmanager
async def beside(task: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Runs `task` until it or the body ends. What the body raises comes out as it is, never in a group."""
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


@coroutine
def watched(
    work: Coroutine[Any, Any, T], leave: Callable[[], None], come_back: Callable[[], None]
) -> Generator[Any, Any, T]:
    """Await `work`, calling `leave` before it first has to wait, and `come_back` at the end if it had to."""
    try:
        waiting_for = work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    leave()
    try:
        while True:
            try:
                sent = yield waiting_for
            except BaseException as error:
                waiting_for = work.throw(error)
            else:
                waiting_for = work.send(sent)
    except StopIteration as done:
        result = done.value
        return result
    finally:
        come_back()
