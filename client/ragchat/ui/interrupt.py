"""Ctrl-C while the chat works: it ends the work, not the chat."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupts:
    """Takes Ctrl-C as long as it is entered: it ends the work under way, and between two of them nothing.

    It stays for the whole chat, because who stops an answer presses often twice, or just as it ends. Only on
    the main thread: signals come there.
    """

    def __init__(self) -> None:
        self._work: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        # signal.signal and not loop.add_signal_handler: Windows has only this one.
        self._before = signal.signal(signal.SIGINT, self._interrupt)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self._work is not None:
            self._work.get_loop().call_soon_threadsafe(self._work.cancel)

    async def run(self, work: Coroutine[Any, Any, None]) -> bool:
        """Runs `work`; False if Ctrl-C ended it."""
        self._work = asyncio.ensure_future(work)
        try:
            await self._work
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                raise
            return False
        finally:
            self._work = None
        return True


@contextmanager
def ignored_interrupts() -> Iterator[None]:
    """Leave Ctrl-C to another program that has the terminal."""
    # A function and not SIG_IGN, which that program would inherit.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def silent_keys() -> Iterator[None]:
    """What is typed while there is no prompt is kept for the next one and not printed into the answer."""
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
