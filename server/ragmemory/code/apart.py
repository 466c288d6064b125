"""Run parsers of source code in a worker process with limits on time and memory.

For hostile text tree-sitter takes memory that grows with the square of its length: 20 GB for 60 KB, in one
call that nothing can stop but the end of its process. Outside Linux only time is limited: in SECONDS,
a worker may take 2 to 4 GB.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TypeVar, TypeVarTuple

import anyio
from anyio import to_thread

from ragcommon.memory_limit import limited_process
from ragmemory.code.syntax import MAX_CHARACTERS

logger = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# The worst text of this many characters that a search found takes 450 MB. A longer one may have to wait for
# the start of a worker, 0.15 s.
HARMLESS = 3_000
# Bytes. The largest hand-written texts take 100 MB.
MEMORY = 512 << 20
# `PARSE_SECONDS`, on a busy machine.
SECONDS = 3.0
# That, and the start of a worker.
DEADLINE_SECONDS = 20.0


def is_harmless(text: str) -> bool:
    """Whether parsing it takes little memory in any case."""
    return len(text) <= HARMLESS or len(text) > MAX_CHARACTERS


async def apart(function: Callable[[*Ts], T], *args: *Ts) -> T | None:
    """Call a function in a worker; None if it takes too much memory or time. Cancelling ends the worker.

    If no worker can be started, call it in this process.
    """
    from anyio import BrokenWorkerProcess

    with suppress(Exception):  # An idle worker may have ended: a second one is started then.
        await _in_worker(int)
    try:
        await _in_worker(int)
    except Exception:
        _warn()
        return await to_thread.run_sync(function, *args)
    try:
        return await _in_worker(limited, function, *args)
    except (BrokenWorkerProcess, MemoryError, OSError) as error:
        logger.warning("A source text was not parsed, as that takes too much memory or time: %r", error)
        return None


@cache
def _warn() -> None:
    """Once: the error that is being handled may occur for each text, in other words."""
    error = sys.exception()
    reason = f"{error!r}, {error and error.__cause__!r}"
    logger.warning("Source code is parsed without limits, as no worker process can be started: %s", reason)


async def _in_worker(function: Callable[[*Ts], T], *args: *Ts) -> T:
    from anyio import to_process

    # The default limit is shared with parsers, which may take a minute.
    with anyio.fail_after(DEADLINE_SECONDS):
        return await to_process.run_sync(function, *args, cancellable=True, limiter=anyio.CapacityLimiter(1))


def limited(function: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call a function in this process, which ends if that takes too much memory or time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The server handles Ctrl-C.
    with limited_process(MEMORY, SECONDS):
        return function(*args)
