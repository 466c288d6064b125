"""A task beside a body."""

from __future__ import annotations

import asyncio
import threading

import anyio
import pytest

from ragmcp.concurrency import Pulse, background_task, contain_cancellation, gathered, in_daemon_thread


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


async def test_a_computation_that_is_not_waited_for_any_more_ends_quietly() -> None:
    began, may_end = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def compute() -> None:
        threads.append(threading.current_thread())
        began.set()
        may_end.wait(10)

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(in_daemon_thread, compute)
            await anyio.to_thread.run_sync(began.wait, 10)
            scope.cancel()
    assert threads[0].is_alive()  # The wait ended before the computation.
    may_end.set()
    threads[0].join(10)  # What a thread raises fails the test.
    assert threads[0].daemon


async def test_what_a_computation_raises_is_raised_where_it_is_waited_for() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_daemon_thread(lambda: 1 // 0)


async def test_results_come_in_the_order_of_the_items_though_all_run_at_once() -> None:
    second = anyio.Event()

    async def named(number: int) -> str:
        if number == 2:
            second.set()
        await second.wait()
        return f"no. {number}"

    with anyio.fail_after(5):
        assert await gathered(named, [1, 2]) == ["no. 1", "no. 2"]
    assert await gathered(named, []) == []
