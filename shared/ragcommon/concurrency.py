"""Work at the same time: for many items, in a race, and in a thread that no program waits for at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

import anyio

R = TypeVar("R")
T = TypeVar("T")


async def gathered(function: Callable[[T], Awaitable[R]], items: Iterable[T]) -> list[R]:
    """The results of the function for all items, at the same time, in the order of the items."""
    results: dict[int, R] = {}

    async def add(place: int, item: T) -> None:
        results[place] = await function(item)

    async with anyio.create_task_group() as tasks:
        for place, item in enumerate(items):
            tasks.start_soon(add, place, item)
    return [results[place] for place in sorted(results)]


async def first_of(*functions: Callable[[], Awaitable[R]]) -> R:
    """The result of the function that ends first; the others are cancelled.

    Raises ExceptionGroup with the error of a function, unless another one has ended before.
    """
    results: list[R] = []

    async def add(function: Callable[[], Awaitable[R]]) -> None:
        results.append(await function())
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for function in functions:
            tasks.start_soon(add, function)
    return results[0]


async def in_daemon_thread(function: Callable[[], T]) -> T:
    """The result of a function that may compute for seconds. Cancelling the wait does not stop it.

    A program that exits waits for anyio's worker threads, but not for daemon threads.
    """
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()

    def compute() -> None:
        try:
            result.set_result(function())
        except Exception as error:
            result.set_exception(error)

    Thread(target=compute, daemon=True).start()
    return await asyncio.wrap_future(result)
