"""Parse a file in a worker process with limits on time and memory: a parser may hang or crash.

Concurrent parsers share a memory budget. A file that needs more than its share is parsed again, alone, with
the whole budget.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio import BrokenWorkerProcess
from anyio.lowlevel import RunVar
from msgspec import Struct
from msgspec.structs import replace

from ragcommon.files.decoding import MAX_FILE_BYTES, NoText, NotText
from ragcommon.files.safe_open import read_regular
from ragcommon.memory_limit import limited_process
from ragmemory.files.formats.file_text import FileText
from ragmemory.files.formats.scans import NOT_INSTALLED, Image, Recognised, Scans, scans
from ragmemory.files.ocr import Ocr

# Turns the bytes of a file into text. Must be picklable. Raises NotText.
Parser: TypeAlias = Callable[[Path, bytes], FileText]
# Gets how many scanned pages of a file are read, and how many there are.
OnPage: TypeAlias = Callable[[int, int], None]

# Large books take a few seconds.
DEADLINE_SECONDS = 60.0
# The budget is this fraction of the machine's memory, up to what one file may need: the largest text and its
# archive take less than half of that.
PART_OF_MEMORY = 4
MAX_MEMORY = 4 << 30
# Enough for usual files. A machine with little memory runs fewer parsers concurrently.
MIN_MEMORY = 512 << 20
# Assumed if the machine's memory is unknown.
USUAL_MEMORY = 8 << 30
# Maximum concurrent parsers.
WORKERS = min(4, os.cpu_count() or 1)


# Bytes of images that a parser collects before they are read: four pages.
IMAGE_BYTES = 32 << 20


class NeedsMemory(NotText):
    """A parser exceeded its memory limit, or crashed, possibly for that reason."""


class Parsers:
    """The number of concurrent parsers, and the bytes of memory for each."""

    def __init__(self, memory: int) -> None:
        """`memory`: bytes of the machine."""
        self.budget = max(min(memory // PART_OF_MEMORY, MAX_MEMORY), MIN_MEMORY)
        self.workers = min(WORKERS, self.budget // MIN_MEMORY)
        self.share = self.budget // self.workers
        self.limiter = anyio.CapacityLimiter(self.workers)
        # Files whose images are held in memory, and OCR programs that run.
        self.scanned = anyio.CapacityLimiter(self.workers)
        self.pages = anyio.CapacityLimiter(self.workers)
        self._next = anyio.Lock()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until no parser runs, and keep others from starting."""
        async with self._next, AsyncExitStack() as stack:
            for _ in range(self.workers):
                borrower = object()
                await self.limiter.acquire_on_behalf_of(borrower)
                stack.callback(self.limiter.release_on_behalf_of, borrower)
            yield


class Parsed(Struct):
    """The text of a file, or why it cannot be read, and its scanned pages."""

    result: FileText | NoText | str
    scans: Scans

    def content(self) -> FileText:
        """Raises NotText."""
        result = self.result
        if isinstance(result, NoText) and not (self.scans.unread or self.scans.failed):
            raise result
        if not isinstance(result, FileText):  # There may be text on the pages that were not read.
            raise NotText(str(result))
        return replace(result, has_unread_scans=True) if self.scans.unread else result


_parsers: RunVar[Parsers] = RunVar("_parsers")


def parsers() -> Parsers:
    """Shared by all jobs of this event loop, like the worker processes."""
    try:
        return _parsers.get()
    except LookupError:
        shared = Parsers(machine_memory())
        _parsers.set(shared)
        return shared


def machine_memory(groups: Path = Path("/proc/self/cgroup"), mounted: Path = Path("/sys/fs/cgroup")) -> int:
    """The bytes of memory of this machine or container."""
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


async def parse(
    read: Parser, path: Path, ocr: Ocr | None = None, on_page: OnPage = lambda _, __: None
) -> FileText:
    """Read a file with a parser, and its scanned pages with an OCR program; `path` is resolved.

    Raises NotText, OSError.
    """
    with_images = ocr is not None and not ocr.image_refusal
    known: dict[str, Recognised] = {}

    async def run(problem: str = "", room: int = 0) -> Parsed:
        return await _parsed(read, path, Scans(known, problem, with_images, room))

    parsed = await run("" if ocr is not None and ocr.path else NOT_INSTALLED)
    if ocr is None or not parsed.scans.missing:
        return parsed.content()
    if problem := await ocr.problem():
        return (await run(problem)).content()
    known |= await ocr.cached(parsed.scans.missing)
    async with parsers().scanned:
        while parsed.scans.missing:
            try:
                parsed = await run(room=IMAGE_BYTES)
            except NotText:
                return (await run("drawing them failed")).content()
            total = len(known) + len(parsed.scans.missing)
            async with anyio.create_task_group() as tasks:
                for key, image in parsed.scans.wanted.items():
                    tasks.start_soon(_read_page, ocr, key, image, known, total, on_page)
    return parsed.content()


async def _read_page(
    ocr: Ocr, key: str, image: Image, known: dict[str, Recognised], total: int, on_page: OnPage
) -> None:
    async with parsers().pages:
        known[key] = await ocr.read(key, image)
    on_page(len(known), total)


async def _parsed(read: Parser, path: Path, scans: Scans) -> Parsed:
    """Run a parser once. Raises NeedsMemory, NotText, OSError."""
    shared = parsers()
    try:
        async with shared.limiter:
            return await _run(read, path, shared.share, scans)
    except NeedsMemory:
        if shared.share == shared.budget:
            raise
    async with shared.alone():
        return await _run(read, path, shared.budget, scans)


async def _run(read: Parser, path: Path, memory: int, scans: Scans) -> Parsed:
    """Read a file in a worker limited to `memory` bytes. Raises NotText, NeedsMemory, OSError."""
    from anyio import to_process

    more = f"needs more than {memory >> 20:,} MiB of memory"
    try:
        with anyio.fail_after(DEADLINE_SECONDS):
            return await to_process.run_sync(
                _parse, read, path, DEADLINE_SECONDS, memory, scans, cancellable=True
            )
    except TimeoutError:
        raise NotText(f"cannot be read: it took longer than {DEADLINE_SECONDS:.0f} seconds") from None
    except MemoryError:
        raise NeedsMemory(f"cannot be read: it {more}") from None
    except BrokenWorkerProcess:
        raise NeedsMemory(f"cannot be read: its parser crashed, or {more}") from None


def _parse(read: Parser, path: Path, seconds: float, memory: int, asked: Scans) -> Parsed:
    """The text of a file and its scanned pages, or why it cannot be read. Raises OSError, MemoryError."""
    token = scans.set(asked)
    try:
        return Parsed(_result(read, path, seconds, memory), asked)
    finally:
        scans.reset(token)


def _result(read: Parser, path: Path, seconds: float, memory: int) -> FileText | NoText | str:
    """The text of a file, or why it cannot be read. Raises OSError, MemoryError.

    Only exceptions of the standard library are sure to be unpickled in the parent process.
    """
    try:
        with limited_process(memory, seconds + 1):
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
        if isinstance(error, OSError) and error.errno:  # Without errno it is a parser's own message.
            raise OSError(error.errno, error.strerror, str(path)) from None
        return f"cannot be read: it is damaged ({type(error).__name__})"
