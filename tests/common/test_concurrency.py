"""Work for many items, in a race, and in a thread of its own."""

from __future__ import annotations

import threading

import anyio
import anyio.lowlevel
import pytest

from ragcommon.concurrency import first_of, gathered, in_daemon_thread


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


async def test_the_first_result_of_a_race_counts_and_the_others_are_cancelled() -> None:
    cancelled: list[str] = []

    async def never() -> str:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            cancelled.append("never")
            raise
        return "never"

    async def soon() -> str:
        await anyio.lowlevel.checkpoint()
        return "soon"

    with anyio.fail_after(5):
        assert await first_of(never, soon) == "soon"
    assert cancelled == ["never"]
