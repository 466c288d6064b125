"""Ctrl-C while the chat works: it ends the work, not the chat."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


async def stoppable(work: Coroutine[Any, Any, None]) -> bool:
    """Runs `work`; False if Ctrl-C ended it. Only on the main thread: signals come there."""
    task = asyncio.ensure_future(work)
    with _interrupt_cancels(task), _silent_keys():
        try:
            await task
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                raise
            return False
    return True


@contextmanager
def _interrupt_cancels(task: asyncio.Task[None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(task.cancel)

    # signal.signal and not loop.add_signal_handler: Windows has only this one.
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _silent_keys() -> Iterator[None]:
    """What is typed meanwhile is kept for the next prompt and not printed into the answer."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    import termios

    before = termios.tcgetattr(sys.stdin)
    silent = termios.tcgetattr(sys.stdin)
    silent[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, silent)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
