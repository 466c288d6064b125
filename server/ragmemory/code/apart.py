"""Run what parses source code in a worker process with limits on time and memory.

For hostile text tree-sitter takes memory that grows with the square of its length: 20 GB for 60 KB, in one
call that nothing can stop.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import anyio
from anyio.lowlevel import RunVar

from ragcommon.memory_limit import limited_memory
from ragmemory.code.syntax import MAX_CHARACTERS

logger = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# The worst text of this many characters that a search found takes 450 MB. A longer one may have to wait for
# the start of the worker, 0.15 s.
HARMLESS = 3_000
# Bytes. The largest hand-written texts take 100 MB.
MEMORY = 512 << 20
# `PARSE_SECONDS` and the start of the worker, on a busy machine.
DEADLINE_SECONDS = 20.0

_turn: RunVar[anyio.Lock] = RunVar("_turn")


def is_harmless(text: str) -> bool:
    """Whether parsing it takes little memory in any case."""
    return len(text) <= HARMLESS or len(text) > MAX_CHARACTERS


async def apart(function: Callable[[*Ts], T], *args: *Ts) -> T | None:
    """Call a function in the worker; None if it takes too much memory or time. Cancelling ends the worker."""
    from anyio import BrokenWorkerProcess, to_process

    try:
        turn = _turn.get()
    except LookupError:
        _turn.set(turn := anyio.Lock())
    try:
        # The default limit is shared with parsers, which may take a minute.
        limiter = anyio.CapacityLimiter(1)
        async with turn:
            with anyio.fail_after(DEADLINE_SECONDS):
                return await to_process.run_sync(limited, function, *args, cancellable=True, limiter=limiter)
    except (BrokenWorkerProcess, MemoryError, TimeoutError) as error:
        logger.warning("A source text was not parsed, as that takes too much memory or time: %r", error)
        return None


def limited(function: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call a function in this process, which may end for lack of memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal of the server is for that.
    with limited_memory(MEMORY):
        return function(*args)
