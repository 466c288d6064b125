"""Stopping a server: signals, the end of stdin, and the time until the process exits."""

from __future__ import annotations

import _thread
import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from types import FrameType
from typing import NoReturn

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

# Seconds that a server may take to close its memory after its last response.
CLOSE_SECONDS = 0.6


def exit_within(seconds: float = CLOSE_SECONDS) -> None:
    """Exit the process after `seconds`, whatever it is doing. May be called in a signal handler.

    An ordinary exit waits for every thread, and a thread inside SQLite or numpy cannot be interrupted: with a
    large memory that takes seconds, and a host does not wait long. Nothing is lost: acknowledged writes are
    on the disk, an interrupted transaction is rolled back, and the index is derived from the store.
    """
    # Not threading.Thread: the interrupted code may hold its locks.
    with suppress(RuntimeError):  # Without memory for a thread the exit is an ordinary one.
        _thread.start_new_thread(_exit_after, (seconds,))


def _exit_after(seconds: float) -> None:
    time.sleep(seconds)
    os._exit(0)


def exit_now() -> NoReturn:
    """Exit once everything is closed, without Python's own cleanup: after a large load it takes 0.15 s."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # It is closed, or its reader no longer exists.
            stream.flush()
    os._exit(0)


async def stop_signal(
    on_signal: Callable[[], None] = lambda: None, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED
) -> None:
    """Return on SIGTERM or SIGINT; the next signal ends the process at once.

    `on_signal` is called in the signal handler, even while the event loop is blocked.
    """
    if sys.platform == "win32":  # It has no such signals; there Ctrl-C cancels the main task.
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
    finally:  # Python's own handler of Ctrl-C raises an exception inside the event loop, which breaks it.
        _set_handlers(signal.SIG_DFL)


async def end_on_signal(scope: anyio.CancelScope) -> None:
    """Cancel `scope` on SIGTERM or SIGINT, and exit soon even if that takes long."""
    await stop_signal(exit_within)
    scope.cancel()


def _set_handlers(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


async def stdin_end(*, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
    """Return when stdin has ended or cannot be read; its content is discarded.

    A daemon thread reads it, because a blocking read cannot be cancelled.
    """
    from anyio import from_thread
    from anyio.lowlevel import current_token

    ended, token = anyio.Event(), current_token()

    def read_to_end() -> None:
        with suppress(OSError):  # It is closed, or its terminal no longer exists.
            while os.read(0, 65_536):
                pass
        with suppress(RuntimeError):  # The event loop has ended.
            from_thread.run_sync(ended.set, token=token)

    Thread(target=read_to_end, daemon=True).start()
    task_status.started()
    await ended.wait()
