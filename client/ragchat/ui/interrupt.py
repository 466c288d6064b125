"""Ctrl-C while the chat works: it stops or cancels the work, not the chat."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | signal.Handlers


class Interrupts:
    """While entered, Ctrl-C stops the running work, or cancels it; if none is running, it does nothing.

    `stop` lets the work end with what it has; if it returns False, the work is cancelled. It is entered for
    the whole chat: users may press Ctrl-C twice, or just when an answer ends. Signals arrive on the main
    thread, so it must be used there.
    """

    def __init__(self, stop: Callable[[], bool] = lambda: False) -> None:
        self._work: asyncio.Task[None] | None = None
        self._stop = stop

    def __enter__(self) -> None:
        # Not loop.add_signal_handler, which Windows does not have.
        self._before = signal.signal(signal.SIGINT, self._interrupt)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self._work is not None:
            self._work.get_loop().call_soon_threadsafe(self.interrupt)

    def interrupt(self) -> None:
        """Do what Ctrl-C does."""
        if self._work is not None and not self._stop():
            self._work.cancel()

    async def run(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run `work`. Returns False if Ctrl-C cancelled it."""
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


def kill_servers() -> None:
    """Kill the processes of the servers that still run."""
    if processes := sys.modules.get("ragmcp.stdio.process"):  # Without the module, no server was started.
        processes.kill_all()


@contextmanager
def handling_signal(handler: Handler, number: signal.Signals = signal.SIGINT) -> Iterator[None]:
    """Handle a signal, usually Ctrl-C, with `handler` while the block runs."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def kill_servers_on_interrupt() -> Iterator[None]:
    """The first Ctrl-C kills the servers; the next is handled as before the block."""
    before = signal.getsignal(signal.SIGINT)

    def kill(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        kill_servers()

    with handling_signal(kill):
        yield


def ignore_interrupts() -> AbstractContextManager[None]:
    """Leave Ctrl-C to another program that has the terminal."""
    # Not SIG_IGN, which the program would inherit.
    return handling_signal(lambda *_: None)
