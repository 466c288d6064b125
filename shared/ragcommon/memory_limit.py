"""Limit the memory and time of this process, which reads a text that it did not write."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WATCH_SECONDS = 0.1


@contextmanager
def limited_memory(most: int) -> Iterator[None]:
    """Limit this process to `most` more bytes: of address space on Linux; elsewhere it exits beyond them."""
    if sys.platform == "linux":
        import resource

        former = resource.getrlimit(resource.RLIMIT_AS)
        with suppress(OSError):
            most += int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (most, former[1]))
        try:
            yield
        finally:  # The process may do other work next.
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_AS, former)
        return
    ended = threading.Event()
    threading.Thread(target=watch_memory, args=(peak_memory() + most, ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()


@contextmanager
def limited_process(memory: int, seconds: float) -> Iterator[None]:
    """Limit this process to `memory` more bytes, see `limited_memory`; it exits after so many seconds.

    Also if its parent was killed, or a library holds the GIL.
    """
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        with limited_memory(memory):
            yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def watch_memory(most: int, ended: threading.Event) -> None:
    """Exit when the peak memory of this process exceeds `most` bytes."""
    while not ended.wait(WATCH_SECONDS):
        if peak_memory() > most:
            os._exit(1)


def peak_memory() -> int:
    """The peak memory of this process, in bytes."""
    if sys.platform == "win32":
        import ctypes
        from ctypes import wintypes

        class Counters(ctypes.Structure):  # PROCESS_MEMORY_COUNTERS
            _fields_ = (
                *(("size", wintypes.DWORD), ("faults", wintypes.DWORD), ("peak", ctypes.c_size_t)),
                ("others", ctypes.c_size_t * 7),
            )

        counters = Counters(size=ctypes.sizeof(Counters))
        this_process = wintypes.HANDLE(-1)
        ctypes.windll.kernel32.K32GetProcessMemoryInfo(this_process, ctypes.byref(counters), counters.size)
        return int(counters.peak)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10
