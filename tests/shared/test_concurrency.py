"""A task beside a body."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from ragmcp.concurrency import Pulse, background_task, contain_cancellation
from ragmcp.errors import AsyncioRequired
from ragmcp.http.asgi import Endpoint
from ragmcp.http.connect import open_http
from ragmcp.server.core import Server
from ragmcp.stdio.connect import open_stdio
from ragmcp.stdio.serve import serve_stdio


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit, KeyboardInterrupt])
async def test_what_the_body_raises_comes_out_as_it_is(error: type[BaseException]) -> None:
    with pytest.raises(error):
        async with background_task(anyio.sleep_forever):
            raise error


async def test_the_task_ends_with_the_body() -> None:
    ended = anyio.Event()

    async def task() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with background_task(task):
        await anyio.lowlevel.checkpoint()
    assert ended.is_set()


async def test_the_body_may_outlive_the_task() -> None:
    done = anyio.Event()

    async def task() -> None:
        done.set()

    async with background_task(task):
        await done.wait()
        await anyio.lowlevel.checkpoint()


async def test_a_cancelled_body_stays_cancelled() -> None:
    with anyio.CancelScope() as scope:
        async with background_task(anyio.sleep_forever):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught


async def test_a_pulse_wakes_all_who_wait_and_nobody_who_comes_later() -> None:
    pulse = Pulse()
    with anyio.fail_after(5):
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pulse.wait)
                tasks.start_soon(pulse.wait)
                await anyio.wait_all_tasks_blocked()
                pulse.set()
    with anyio.move_on_after(0) as patience:
        await pulse.wait()
    assert patience.cancelled_caught


async def awaits_what_is_cancelled() -> None:
    """Awaits a future that somebody else has cancelled."""
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def test_the_cancellation_of_what_was_awaited_is_a_failure() -> None:
    with pytest.raises(RuntimeError, match="the awaited work was cancelled elsewhere"):
        await contain_cancellation(awaits_what_is_cancelled())


@pytest.mark.parametrize("native", [False, True])
async def test_a_cancellation_of_ones_own_stays_one(native: bool) -> None:
    with anyio.CancelScope() as scope:
        task = asyncio.create_task(contain_cancellation(anyio.sleep_forever()))
        await anyio.wait_all_tasks_blocked()
        if native:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            scope.cancel()
            await task
    assert task.cancelled()


@pytest.mark.parametrize(
    "start",
    [
        lambda: open_stdio(["server"]).__aenter__(),
        lambda: open_http("http://127.0.0.1:1/mcp").__aenter__(),
        lambda: serve_stdio(Server("s")),
        lambda: Endpoint(Server("s")).__aenter__(),
    ],
    ids=["open_stdio", "open_http", "serve_stdio", "Endpoint"],
)
def test_without_asyncio_nothing_starts(start: Callable[[], Coroutine[Any, Any, Any]]) -> None:
    """Trio, too, resumes coroutines outside of an event loop of asyncio."""
    with pytest.raises(AsyncioRequired):
        start().send(None)
