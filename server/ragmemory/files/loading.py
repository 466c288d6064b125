"""Load the files of one job: read them in threads, and inject many concurrently."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio
from anyio import to_thread
from msgspec.structs import replace

from ragcommon.contract.documents import Metadata
from ragcommon.contract.errors import FATAL
from ragcommon.contract.files import FileOutcome, Ingestion, IngestionError
from ragcommon.contract.history import Origin
from ragcommon.errors import StructuredError, of_the_system
from ragcommon.files.decoding import EmptyText, NoText, NotText
from ragcommon.files.folder import Folder
from ragmemory.errors import MemoryFull, MemoryReadOnly, RagMemoryError
from ragmemory.files.formats import detection
from ragmemory.files.formats.file_text import FileText
from ragmemory.files.ocr import Ocr
from ragmemory.files.parsing import parse
from ragmemory.files.reading import UNREAD_SCANS, is_current, read_file, with_depth, without_depth
from ragmemory.files.walking import File, refused, why_unreadable
from ragmemory.stores.chunks import text_digest
from ragmemory.stores.journal import iso

if TYPE_CHECKING:
    from anyio.abc import ObjectReceiveStream, ObjectSendStream

    from ragmemory.ingest.writer import Writer
    from ragmemory.stores.store import Store

logger = logging.getLogger(__name__)

# Concurrent injections, enough to fill two batches: one is embedded while another is committed. With 256,
# loading small files takes a tenth longer; more than 512 only hold more text in memory.
IN_FLIGHT = 512
# Bytes of files that are read but not yet stored. A larger file is loaded on its own.
MAX_BYTES = 16 << 20
# Files read per call in a thread: switching threads costs more than reading a file.
READ_AT_ONCE = 16
# Files whose stored states are looked up per query.
LOOKED_UP_AT_ONCE = 500
# How long a cancelled job waits for the commits that have begun: less than those who cancel it wait.
SETTLE_SECONDS = 1.5
# Failures that are stored with a job.
MAX_FAILURES = 100
# Follows the reason why a file is no longer read.
STILL_HELD = "; memory still has an earlier load of it"


# A file that was read, or why it could not be. Before that, also the module that is to parse it.
Content: TypeAlias = FileText | Exception
EndStatus: TypeAlias = Literal["completed", "failed", "cancelled"]


@dataclass(eq=False)
class JobRun:
    """A job of this process, running or ended, with its outcomes."""

    job: Ingestion
    origin: Origin
    roots: Sequence[str]  # the folders that it may read

    def __post_init__(self) -> None:
        self.outcomes: list[FileOutcome] = []
        self.scope = anyio.CancelScope()
        self.ended = anyio.Event()
        self.loading: Loading | None = None
        self._began = time.monotonic()

    def add(self, outcome: FileOutcome) -> None:
        """Record the outcome of a file."""
        self.outcomes.append(outcome)
        job = self.job
        setattr(job, outcome.status, getattr(job, outcome.status) + 1)
        if outcome.status == "failed" and len(job.failures) < MAX_FAILURES:
            job.failures.append(outcome)

    def update(self) -> None:
        """Update the times and rates of the job."""
        job = self.job
        if job.ended_at:
            return
        job.seconds = time.monotonic() - self._began
        job.rate = job.done / job.seconds if job.seconds else 0.0
        left = job.bytes - job.done_bytes
        job.seconds_left = job.seconds * left / job.done_bytes if job.done_bytes else None

    def end(self, status: EndStatus, error: StructuredError | None = None) -> None:
        """Set the outcome of the job."""
        self.update()
        end_job(self.job, status, error)


def end_job(job: Ingestion, status: EndStatus, error: StructuredError | None = None) -> None:
    """Set the outcome of a job, running or not."""
    job.status = status
    job.seconds_left = 0.0
    job.ended_at = now()
    if error is not None:
        job.error = IngestionError(error.code, str(error), error.hint)


@dataclass(eq=False)
class Loading:
    """One task reads files; at most IN_FLIGHT tasks inject them and record the outcomes."""

    _store: Store
    _writer: Writer
    _files: Sequence[File]
    _run: JobRun
    _ocr: Ocr | None

    def __post_init__(self) -> None:
        self._parts: dict[str, int] = {}  # bytes that count as done of files with scanned pages, by URI
        self._numbers = {file.uri: number for number, file in enumerate(self._files, 1)}
        self._fatal: RagMemoryError | None = None
        self._stamps: dict[str, tuple[str, bytes]] = {}
        self._stored: set[str] = set()  # URIs of changed files that have a document
        self._foreign: set[str] = set()  # URIs of documents that another machine has loaded
        self._bytes = 0  # read but not yet stored
        self._freed = anyio.Event()
        self._in_flight: dict[str, File] = {}

    async def run(self) -> None:
        """Raises the first error that affects all files."""
        send, receive = anyio.create_memory_object_stream[tuple[File, Content | str]]()
        with send, receive:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_files, send)
                for _ in range(min(IN_FLIGHT, len(self._files))):
                    tasks.start_soon(self._store_files, receive)
        try:
            if self._stamps:
                await self._store.documents.set_stamps(self._stamps)
        except (MemoryFull, MemoryReadOnly) as error:
            # Only the next load will read these files again.
            logger.warning("The stamps of unchanged files were not saved: %s", error)
        if self._fatal is not None:
            raise self._fatal

    async def settle(self) -> None:
        """After a cancellation: record the files that were being committed, and are stored all the same.

        The others count as not begun, if all commits have ended.
        """
        with anyio.move_on_after(SETTLE_SECONDS) as waiting:
            await self._writer.idle()
        stored = await self._store.documents.files([*self._in_flight])
        for file in [*self._in_flight.values()]:
            known = stored.get(file.uri)
            if known is not None and is_current(known.stamp, file.stamp, can_read_scans=False):
                status: Literal["added", "updated"] = "updated" if file.uri in self._stored else "added"
                self._done(file, FileOutcome(file.uri, status, known.document_id, known.chunks))
            elif not waiting.cancelled_caught:
                self._run.job.begun -= 1

    async def _read_files(self, send: ObjectSendStream[tuple[File, Content | str]]) -> None:
        async with send:
            for start in range(0, len(self._files), LOOKED_UP_AT_ONCE):
                changed = await self._changed(self._files[start : start + LOOKED_UP_AT_ONCE])
                for batch in _batches(changed):
                    await self._reserve(size_of(batch))
                    if self._fatal is not None:
                        return
                    for file in zip(batch, await to_thread.run_sync(_read, batch), strict=True):
                        await send.send(file)

    async def _changed(self, files: Sequence[File]) -> list[File]:
        """The files that are new or changed; the others are recorded as unchanged."""
        stored = await self._store.documents.files([file.uri for file in files])
        changed, machine = [], self._store.engine.machine
        # New files need no answer, which takes a process.
        can_read_scans = bool(stored) and self._ocr is not None and not await self._ocr.problem()
        for file in files:
            known = stored.get(file.uri)
            if known is not None and known.machine not in (machine, ""):
                self._foreign.add(file.uri)
            if known is not None and is_current(known.stamp, file.stamp, can_read_scans=can_read_scans):
                self._run.job.begun += 1
                self._done(file, FileOutcome(file.uri, "unchanged", known.document_id, known.chunks))
                stamp = with_depth(without_depth(known.stamp), file.root)
                if (known.stamp, known.machine) != (stamp, machine):
                    self._stamp(file, stamp, known.digest)
            else:
                changed.append(file)
                if known is not None:
                    self._stored.add(file.uri)
        return changed

    def _stamp(self, file: File, stamp: str, digest: bytes) -> None:
        # A folder that two machines share would pass from one to the other with each of their syncs.
        if file.uri not in self._foreign:
            self._stamps[file.uri] = stamp, digest

    async def _reserve(self, size: int) -> None:
        """Wait until `size` more bytes may be held in memory."""
        while self._bytes and self._bytes + size > MAX_BYTES:
            self._freed = anyio.Event()
            await self._freed.wait()
        self._bytes += size

    async def _store_files(self, receive: ObjectReceiveStream[tuple[File, Content | str]]) -> None:
        async for file, content in receive:
            if isinstance(content, str):
                # The parser reads the file itself, and may take minutes for its scanned pages.
                self._release(file.size)
            if self._fatal is None:
                self._run.job.begun += 1
                self._in_flight[file.uri] = file
                read = await self._parsed(file) if isinstance(content, str) else content
                self._done(file, await self._outcome(file, read))
            if not isinstance(content, str):
                self._release(file.size)

    async def _parsed(self, file: File) -> Content:
        try:
            return await parse(detection.read, file.path, self._ocr, partial(self._note_page, file))
        except Exception as error:
            return error

    def _release(self, size: int) -> None:
        self._bytes -= size
        self._freed.set()

    async def _outcome(self, file: File, content: Content) -> FileOutcome:
        try:
            if isinstance(content, FileText):
                if file.named or not content.left_out:
                    return await self._inject(file, content)
                held = STILL_HELD if file.uri in self._stored and not self._run.job.prune else ""
                content = NoText(f"is {content.left_out}, and is read only if you name it{held}")
            return await self._refuse(file, content)
        except RagMemoryError as error:
            if error.code in FATAL:
                self._fatal = self._fatal or error
            return FileOutcome(file.uri, "failed", error=str(error))
        except Exception as error:
            if of_the_system(error):
                raise
            return _failed(file, error)

    async def _inject(self, file: File, content: FileText) -> FileOutcome:
        mark = UNREAD_SCANS if file.stamp and content.has_unread_scans else ""
        stamp = with_depth(file.stamp + mark, file.root)
        outcome = await inject(self._writer, file.uri, content, stamp, self._run.origin)
        if outcome.status == "unchanged":
            self._stamp(file, stamp, text_digest(content.text))
        return outcome

    async def _refuse(self, file: File, error: Exception) -> FileOutcome:
        """The outcome of an unreadable file. A sync removes its document if the file no longer holds text."""
        outcome = _unread(file, error)
        if isinstance(error, NoText) and self._run.job.prune and file.uri in self._stored - self._foreign:
            await self._writer.forget_all([file.uri], self._run.origin, self._store.engine.machine)
            return replace(outcome, status="removed")
        return outcome

    def _done(self, file: File, outcome: FileOutcome) -> None:
        self._in_flight.pop(file.uri, None)
        self._run.add(replace(outcome, number=self._numbers[file.uri]))
        self._run.job.done += 1
        self._run.job.done_bytes += file.size - self._parts.pop(file.uri, 0)

    def _note_page(self, file: File, read: int, known: int) -> None:
        """`read` of the `known` scanned pages of a file are read."""
        job, part = self._run.job, file.size * read // known
        job.done_bytes += part - self._parts.get(file.uri, 0)
        self._parts[file.uri] = part
        job.scanning = f"{file.path.name}, page {read:,} of {known:,}"


def _batches(files: Sequence[File]) -> Iterator[list[File]]:
    """Batches of READ_AT_ONCE files, or fewer if they are large."""
    batch: list[File] = []
    for file in files:
        if batch and (len(batch) == READ_AT_ONCE or size_of([*batch, file]) > MAX_BYTES / 4):
            yield batch
            batch = []
        batch.append(file)
    if batch:
        yield batch


def size_of(files: Sequence[File]) -> int:
    return sum(file.size for file in files)


def _read(batch: Sequence[File]) -> list[Content | str]:
    """Read files grouped by folder: opening the folder takes longer than reading a small file."""
    contents: list[Content | str] = []
    for path, group in groupby(batch, key=lambda file: file.path.parent):
        files = list(group)
        try:
            with Folder(path) as folder:
                contents += [_read_one(file, folder) for file in files]
        except OSError as error:
            contents += [error] * len(files)
    return contents


def _read_one(file: File, folder: Folder) -> Content | str:
    try:
        return read_file(file.path, folder)
    except Exception as error:
        return error


async def inject(writer: Writer, uri: str, content: FileText, stamp: str, origin: Origin) -> FileOutcome:
    """Inject a file or page, with its `stamp`. Raises RagMemoryError."""
    # The title may be the file name, which on POSIX need not be valid Unicode.
    metadata: Metadata = {"uri": uri, "title": content.title.encode(errors="replace").decode()}
    if content.tags:
        metadata["tags"] = content.tags
    if content.media_type:
        metadata["media_type"] = content.media_type
    injected = await writer.inject(content.text, metadata, origin, stamp, content.places)
    return FileOutcome(uri, injected.status, injected.document_id, injected.chunks, note=content.note)


def _unread(file: File, error: Exception) -> FileOutcome:
    if isinstance(error, EmptyText):
        return refused(file.path, str(error), failed=False)
    if isinstance(error, NotText):
        return refused(file.path, str(error), file.named)
    if isinstance(error, FileNotFoundError):
        return refused(file.path, "no longer exists", file.named)
    if isinstance(error, OSError):
        return refused(file.path, why_unreadable(error))
    return _failed(file, error)


def _failed(file: File, error: Exception) -> FileOutcome:
    """The outcome of a file whose loading met an error of the program, which must not end that of others."""
    logger.error("%s could not be loaded", file.uri, exc_info=error)
    reason = f"cannot be loaded ({type(error).__name__}; the log of the server has the details)"
    return FileOutcome(file.uri, "failed", reason=reason)


def now() -> str:
    """The time in ISO 8601, UTC."""
    return iso(datetime.now(UTC))
