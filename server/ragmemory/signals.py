"""When a server is told to stop, and how long it may take to end."""

from __future__ import annotations

import _thread
import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from types import FrameType

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

# What a server may take to close its memory once it has nothing more to answer.
CLOSE_SECONDS = 0.6


def exit_within(seconds: float = CLOSE_SECONDS) -> None:
    """End the process after so many seconds, whatever it is doing then. Can be called in a signal handler.

    An ordinary end waits for every thread, and one within SQLite or numpy cannot be interrupted: with a large
    memory that takes seconds, and a host does not wait for long. Nothing is lost: what was acknowledged is on
    the disk, a transaction that is cut off is rolled back, and the index is derived from the store.
    """
    # Not threading.Thread, whose locks the interrupted code may hold.
    _thread.start_new_thread(_exit_after, (seconds,))


def _exit_after(seconds: float) -> None:
    time.sleep(seconds)
    os._exit(0)


async def stop_signal(
    on_signal: Callable[[], None] = lambda: None, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED
) -> None:
    """Returns when SIGTERM or SIGINT comes; the next one ends the process at once.

    `on_signal` is called in the signal handler: at once, also while the event loop is blocked.
    """
    if sys.platform == "win32":  # It has none to receive; there Ctrl-C cancels the main task.
        task_status.started()
        await anyio.sleep_forever()
    loop, stopped = asyncio.get_running_loop(), anyio.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        _set_handlers(signal.SIG_DFL)
        on_signal()
        loop.call_soon_threadsafe(stopped.set)

    _set_handlers(stop)
    task_status.started()
    try:
        await stopped.wait()
    finally:  # Python's own answer to Ctrl-C is an exception in whatever runs, then a loop in pieces.
        _set_handlers(signal.SIG_DFL)


def _set_handlers(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


async def stdin_end(*, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
    """Returns when stdin has ended, or cannot be read; what comes before is thrown away.

    In a thread that nobody waits for: one that reads cannot be told to stop.
    """
    from anyio import from_thread
    from anyio.lowlevel import current_token

    ended, token = anyio.Event(), current_token()

    def read_to_end() -> None:
        with suppress(OSError):  # It is closed, or a terminal that was hung up.
            while os.read(0, 65_536):
                pass
        with suppress(RuntimeError):  # Whoever waited has left before.
            from_thread.run_sync(ended.set, token=token)

    Thread(target=read_to_end, daemon=True).start()
    task_status.started()
    await ended.wait()
