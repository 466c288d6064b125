"""Ctrl-C while the chat works: it ends the work, never the chat."""

from __future__ import annotations

import asyncio
import signal
import sys

import anyio
import pytest

from ragchat.ui.interrupt import Interrupts, ignore_interrupts, kill_servers_on_interrupt

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a raised SIGINT ends the process there")


async def test_ctrl_c_ends_the_work_and_the_next_one_nothing() -> None:
    interrupts, done = Interrupts(), []
    before = signal.getsignal(signal.SIGINT)

    async def endless() -> None:
        signal.raise_signal(signal.SIGINT)
        await anyio.sleep_forever()

    async def short() -> None:
        done.append(True)

    with interrupts:
        signal.raise_signal(signal.SIGINT)
        assert await interrupts.run(short())
        assert not await interrupts.run(endless())
        signal.raise_signal(signal.SIGINT)
        assert await interrupts.run(short())
    assert len(done) == 2
    assert signal.getsignal(signal.SIGINT) is before


async def test_ctrl_c_lets_the_work_end_by_itself_if_it_can() -> None:
    stopping = anyio.Event()

    def stop() -> bool:
        stopping.set()
        return True

    async def work() -> None:
        signal.raise_signal(signal.SIGINT)
        await stopping.wait()

    interrupts = Interrupts(stop)
    with interrupts:
        assert await interrupts.run(work())


async def test_pressing_ctrl_c_twice_is_like_pressing_it_once() -> None:
    interrupts, cleaned = Interrupts(), []

    async def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await anyio.sleep_forever()
        finally:
            signal.raise_signal(signal.SIGINT)
            cleaned.append(True)

    with interrupts:
        assert not await interrupts.run(work())
        await anyio.lowlevel.checkpoint()
    assert cleaned


async def test_who_is_cancelled_from_outside_is_not_taken_for_interrupted() -> None:
    interrupts = Interrupts()

    async def work() -> None:
        chat.cancel()
        await anyio.sleep_forever()

    with interrupts:
        chat = asyncio.create_task(interrupts.run(work()))
        with pytest.raises(asyncio.CancelledError):
            await chat


async def test_another_program_at_the_terminal_has_ctrl_c_for_itself() -> None:
    interrupts = Interrupts()

    async def edit() -> None:
        with ignore_interrupts():
            signal.raise_signal(signal.SIGINT)
            await anyio.lowlevel.checkpoint()

    with interrupts:
        assert await interrupts.run(edit())


def test_while_servers_are_stopped_only_the_first_ctrl_c_does_not_end_the_chat() -> None:
    with kill_servers_on_interrupt():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
