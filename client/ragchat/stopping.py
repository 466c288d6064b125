"""What ends a command from outside: Ctrl-C, SIGTERM, the end of its terminal.

The first cancels the command, which then puts away what it has open. The next ends the process at once:
Python's own answer to it is an exception in whatever runs, which leaves tracebacks, or a loop in pieces.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], None] | signal.Handlers

# Windows has no SIGHUP.
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(Exception):
    """The user, or whoever runs us, wanted no more."""


async def until_stopped(command: Coroutine[Any, Any, int]) -> int:
    """What `command` returns. Raises Stopped when a signal has ended it. Only on the main thread.

    A signal that the process was started to ignore, as by nohup, stays ignored.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    stopped = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        _answer(heard, _die)
        loop.call_soon_threadsafe(task.cancel)

    _answer(heard, stop)
    try:
        return await command
    except asyncio.CancelledError:
        if stopped:
            raise Stopped from None
        raise
    finally:  # In what Python does on its way out, no handler could run.
        _answer(heard, signal.SIG_DFL)


def _answer(numbers: list[signal.Signals], handler: Handler) -> None:
    # signal.signal and not loop.add_signal_handler: Windows has only this one.
    for number in numbers:
        signal.signal(number, handler)


def _die(number: int, _frame: FrameType | None) -> None:
    """As if nobody had caught it. Were SIG_DFL set before, Python would complain of one that came earlier."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
