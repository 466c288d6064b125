"""Deadlines that do not run while the user is asked."""

from __future__ import annotations

import anyio
import anyio.lowlevel

from ragchat.servers.clock import Clock


async def test_no_deadline_passes_while_the_user_is_asked() -> None:
    clock = Clock()
    with clock.limited(0.0) as call:
        with clock.stopped(), clock.stopped():
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
        assert not call.cancel_called
        await anyio.sleep_forever()
    assert call.cancelled_caught


async def test_a_deadline_that_begins_during_a_question_begins_to_run_after_it() -> None:
    clock = Clock()
    with clock.stopped():
        with clock.limited(0.0) as call:
            await anyio.lowlevel.checkpoint()
        assert not call.cancel_called


async def test_after_a_question_a_call_has_the_time_that_was_left() -> None:
    clock = Clock()
    with clock.limited(60.0) as call:
        with clock.stopped():
            before = clock.now()
            await anyio.lowlevel.checkpoint()
            assert clock.now() == before
        left = call.deadline - anyio.current_time()
        assert 60.0 - (clock.now() - before) - 1.0 < left <= 60.0
