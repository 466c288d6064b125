"""Signals that end a command: Ctrl-C, SIGTERM, and SIGHUP when the terminal closes.

The first signal cancels the command, which then cleans up. The second kills the servers and ends the process
at once: Python's default is to raise an exception in the running code, which prints tracebacks and breaks the
event loop.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

from ragchat.ui.interrupt import Handler, kill_servers

T = TypeVar("T")

# Windows has no SIGHUP.
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(Exception):
    """A signal ended the command."""


def run(command: Coroutine[Any, Any, T]) -> T:
    """The result of `command`, in an event loop on the main thread. Raises Stopped if a signal cancelled it.

    A signal that is ignored from the start, as with nohup, stays ignored.
    """
    handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    try:
        return asyncio.run(_until_stopped(command, handled))
    finally:  # no handler can run while Python exits
        _handle(handled, signal.SIG_DFL)


async def _until_stopped(command: Coroutine[Any, Any, T], handled: list[signal.Signals]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    stopped = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        _handle(handled, _die)
        loop.call_soon_threadsafe(task.cancel)

    _handle(handled, stop)
    try:
        return await command
    except asyncio.CancelledError:
        if stopped:
            raise Stopped from None
        raise
    finally:  # The loop still ends the tasks that are left, which may stop servers.
        _handle(handled, _die)


def _handle(numbers: list[signal.Signals], handler: Handler) -> None:
    # Not loop.add_signal_handler, which Windows does not have.
    for number in numbers:
        signal.signal(number, handler)


def _die(number: int, _frame: FrameType | None) -> None:
    """Kill the servers, some of which would outlive us, and end the process as the signal does by default.

    Not SIG_DFL as the handler: Python would report an error for a signal that arrived before it was set.
    """
    kill_servers()
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
