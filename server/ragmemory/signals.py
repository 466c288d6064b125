"""When a server is told to stop."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from threading import Thread

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus


async def stop_signal(*, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
    """Returns when SIGTERM or SIGINT comes; the next one ends the process at once."""
    if sys.platform == "win32":  # It has none to receive; there Ctrl-C cancels the main task.
        task_status.started()
        await anyio.sleep_forever()
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        await anext(signals)
    # Python's own answer to it is an exception in whatever runs, then a loop in pieces that never ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


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
