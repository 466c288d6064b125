"""A task beside a body."""

from __future__ import annotations

import anyio
import pytest

from ragmcp.concurrency import beside


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit, KeyboardInterrupt])
async def test_what_the_body_raises_comes_out_as_it_is(error: type[BaseException]) -> None:
    with pytest.raises(error):
        async with beside(anyio.sleep_forever):
            raise error


async def test_the_task_ends_with_the_body() -> None:
    ended = anyio.Event()

    async def task() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with beside(task):
        await anyio.lowlevel.checkpoint()
    assert ended.is_set()


async def test_the_body_may_outlive_the_task() -> None:
    done = anyio.Event()

    async def task() -> None:
        done.set()

    async with beside(task):
        await done.wait()
        await anyio.lowlevel.checkpoint()


async def test_a_cancelled_body_stays_cancelled() -> None:
    with anyio.CancelScope() as scope:
        async with beside(anyio.sleep_forever):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
