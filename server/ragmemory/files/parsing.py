"""Parse a file in a worker process, within limits of time and memory: a parser may hang or crash.

The parsers that run at the same time share a budget of memory. A file that needs more than its share is
parsed once more, alone, with the whole budget.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio import BrokenWorkerProcess
from anyio.lowlevel import RunVar

from ragcommon.files.decoding import MAX_FILE_BYTES, NoText, NotText
from ragcommon.files.safe_open import read_regular
from ragmemory.files.formats.file_text import FileText

# Reads the bytes of a file. A worker imports it by its name. Raises NotText.
Parser: TypeAlias = Callable[[Path, bytes], FileText]

# The largest of usual books take a few seconds.
DEADLINE_SECONDS = 60.0
# The budget of all parsers is this part of the machine's memory, but not more than one file may need: the
# largest text and its archive take less than half of that.
PART_OF_MEMORY = 4
MAX_MEMORY = 4 << 30
# What usual files need. A machine with little memory runs fewer parsers at the same time.
MIN_MEMORY = 512 << 20
# Of a machine that does not say how much it has.
USUAL_MEMORY = 8 << 30
# Files that are parsed at the same time, at most.
WORKERS = min(4, os.cpu_count() or 1)
WATCH_SECONDS = 0.1


class NeedsMemory(NotText):
    """A parser needs more memory than it was given, or crashed, for which that may be the reason."""


class Parsers:
    """How many parsers run at the same time, and how many bytes of memory each of them may take."""

    def __init__(self, memory: int) -> None:
        """`memory`: the bytes that the machine has."""
        self.budget = max(min(memory // PART_OF_MEMORY, MAX_MEMORY), MIN_MEMORY)
        self.workers = min(WORKERS, self.budget // MIN_MEMORY)
        self.share = self.budget // self.workers
        self.limiter = anyio.CapacityLimiter(self.workers)
        self._next = anyio.Lock()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until no parser runs, and let none begin."""
        async with self._next, AsyncExitStack() as stack:
            for _ in range(self.workers):
                borrower = object()
                await self.limiter.acquire_on_behalf_of(borrower)
                stack.callback(self.limiter.release_on_behalf_of, borrower)
            yield


_parsers: RunVar[Parsers] = RunVar("_parsers")


def parsers() -> Parsers:
    """What all jobs of this event loop share, as they share the worker processes."""
    try:
        return _parsers.get()
    except LookupError:
        shared = Parsers(machine_memory())
        _parsers.set(shared)
        return shared


def machine_memory(groups: Path = Path("/proc/self/cgroup"), mounted: Path = Path("/sys/fs/cgroup")) -> int:
    """The bytes of memory of this machine, or of the container that this process runs in."""
    memory = USUAL_MEMORY
    with suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf.
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError):
        for line in groups.read_text().splitlines():
            _, kinds, name = line.split(":", 2)
            if kinds in ("", "memory"):  # version 2, version 1
                top, file = mounted / kinds, "memory.limit_in_bytes" if kinds else "memory.max"
                group = top / name.strip("/")
                for folder in (group, *group.parents):
                    with suppress(ValueError, OSError):  # "max" is no limit.
                        memory = min(memory, int((folder / file).read_text()))
    return memory


async def parse(read: Parser, path: Path) -> FileText:
    """Read a file with a parser; `path` is resolved. Raises NotText, OSError."""
    shared = parsers()
    try:
        async with shared.limiter:
            return await _run(read, path, shared.share)
    except NeedsMemory:
        if shared.share == shared.budget:
            raise
    async with shared.alone():
        return await _run(read, path, shared.budget)


async def _run(read: Parser, path: Path, memory: int) -> FileText:
    """Read a file in a worker with so many bytes of memory. Raises NotText, NeedsMemory, OSError."""
    from anyio import to_process

    more = f"needs more than {memory >> 20:,} MiB of memory"
    try:
        with anyio.fail_after(DEADLINE_SECONDS):
            result = await to_process.run_sync(_parse, read, path, DEADLINE_SECONDS, memory, cancellable=True)
    except TimeoutError:
        raise NotText(f"cannot be read: it took longer than {DEADLINE_SECONDS:.0f} seconds") from None
    except MemoryError:
        raise NeedsMemory(f"cannot be read: it {more}") from None
    except BrokenWorkerProcess:
        raise NeedsMemory(f"cannot be read: its parser crashed, or {more}") from None
    if isinstance(result, NoText):
        raise result
    if isinstance(result, str):
        raise NotText(result)
    return result


def _parse(read: Parser, path: Path, seconds: float, memory: int) -> FileText | NoText | str:
    """What the file holds, or why it cannot be read. Raises OSError, MemoryError.

    Only exceptions of the standard library are sure to survive being raised in another process.
    """
    # Ends this process even if the parent was killed, or a library holds the interpreter's lock.
    faulthandler.dump_traceback_later(seconds + 1, exit=True)
    try:
        with _limited_memory(memory):
            return read(path, read_regular(path, MAX_FILE_BYTES, links=False))
    except NoText as error:
        return NoText(str(error))
    except NotText as error:
        return str(error)
    except ImportError as error:
        return f"needs the package {error.name}, which is not installed"
    except MemoryError:
        raise MemoryError from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno:  # Without a number, a parser says what it misses.
            raise OSError(error.errno, error.strerror, str(path)) from None
        return f"cannot be read: it is damaged ({type(error).__name__})"
    finally:
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def _limited_memory(most: int) -> Iterator[None]:
    """Let this process take `most` bytes: of addresses on Linux, else of memory, where it is ended."""
    if sys.platform == "linux":
        import resource

        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
        yield
        return
    ended = threading.Event()
    threading.Thread(target=_watch_memory, args=(peak_memory() + most, ended), daemon=True).start()
    yield
    ended.set()


def _watch_memory(most: int, ended: threading.Event) -> None:
    """End this process when it has held more than `most` bytes."""
    while not ended.wait(WATCH_SECONDS):
        if peak_memory() > most:
            os._exit(1)


def peak_memory() -> int:
    """The most bytes of memory that this process has held at once."""
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
