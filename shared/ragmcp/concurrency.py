"""Additions to anyio: repeated events, queues, background tasks, stray cancellations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from types import coroutine
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, field

from ragmcp.errors import AsyncioRequired

K = TypeVar("K")
T = TypeVar("T")


def require_asyncio() -> None:
    """Raises AsyncioRequired under trio, where what is built on asyncio would fail, or wait for ever."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise AsyncioRequired from None


class Pulse:
    """A repeated event: `set` wakes all tasks that wait at that moment."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Wake the waiting tasks."""
        self._event.set()

    async def wait(self) -> None:
        """Wait for the next `set`."""
        self._event.clear()
        await self._event.wait()


class LatestQueue(Struct, Generic[K, T], eq=False):
    """A queue that keeps only the latest item of each key, so a slow reader costs no memory."""

    _items: dict[K, T] = {}
    _ready: anyio.Event = field(default_factory=anyio.Event)
    _closed: bool = False

    def put(self, key: K, item: T) -> None:
        """Add an item, or replace the unread one of its key in its place."""
        self._items[key] = item
        self._ready.set()

    def close(self) -> None:
        """The reader gets what is queued, then EndOfStream."""
        self._closed = True
        self._ready.set()

    async def get(self) -> T:
        """The oldest item. Raises EndOfStream once the queue is closed and empty."""
        while not self._items:
            if self._closed:
                raise anyio.EndOfStream
            self._ready = anyio.Event()
            await self._ready.wait()
        return self._items.pop(next(iter(self._items)))


async def contain_cancellation(work: Awaitable[T]) -> T:
    """Await `work`; a cancellation of another task becomes a RuntimeError.

    A task that awaits a future cancelled elsewhere gets that cancellation. Not converted, it would silently
    end this task and with it the whole task group.
    """
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("the awaited work was cancelled elsewhere") from error


@asynccontextmanager
async def background_task(*functions: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[TaskGroup]:
    """Run the functions in the background while the body runs, and what is started in the yielded group.

    Errors of the body are not wrapped in a group.
    """
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        for function in functions:
            tasks.start_soon(function)
        try:
            yield tasks
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


@coroutine
def observe_blocking(
    work: Coroutine[Any, Any, T], on_wait: Callable[[], None], on_end: Callable[[], None]
) -> Generator[Any, Any, T]:
    """Await `work`; call `on_wait` when it first has to wait, and in that case `on_end` at its end."""
    try:
        waiting_for = work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    on_wait()
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
        on_end()
