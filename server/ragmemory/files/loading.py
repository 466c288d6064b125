"""Load the files of one job: read them in threads, and store many at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio
from anyio import to_thread
from msgspec.structs import replace

from ragcommon.contract.documents import Injected, Metadata
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
    from anyio.abc import TaskGroup

    from ragmemory.ingest.writer import Writer
    from ragmemory.stores.store import Store

logger = logging.getLogger(__name__)

# Files read but not yet stored, enough to fill two batches of the writer: one is embedded while another is
# committed. With 256, loading small files takes a tenth longer; more than 512 only hold more text in memory.
IN_FLIGHT = 512
# Bytes of files that are read but not yet stored. A larger file is loaded on its own.
MAX_BYTES = 16 << 20
# Files read by one call in a thread, and stored by one task: a call or a task costs more than a small file.
# Larger batches gain little, and delay the first outcome on a slow disk.
READ_AT_ONCE = 16
# Files whose stored states are looked up per query.
LOOKED_UP_AT_ONCE = IN_FLIGHT
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
    """One task reads files in batches. For each batch, another stores the texts and records the outcomes."""

    _store: Store
    _writer: Writer
    _files: Sequence[File]
    _run: JobRun
    _ocr: Ocr | None

    def __post_init__(self) -> None:
        self._parts: dict[str, int] = {}  # bytes that count as done of files with scanned pages, by URI
        self._numbers = {file.uri: number for number, file in enumerate(self._files, 1)}
        self._fatal: Exception | None = None  # affects all files
        self._stamps: dict[str, tuple[str, bytes]] = {}
        self._stored: set[str] = set()  # URIs of changed files that have a document
        self._foreign: set[str] = set()  # URIs of documents that another machine has loaded
        self._in_flight: dict[str, File] = {}
        self._held: dict[str, int] = {}  # bytes of those that are in memory, by URI
        self._freed = anyio.Event()

    async def run(self) -> None:
        """Raises the first error that affects all files."""
        async with anyio.create_task_group() as tasks:
            await self._read_files(tasks)
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

    async def _read_files(self, tasks: TaskGroup) -> None:
        for start in range(0, len(self._files), LOOKED_UP_AT_ONCE):
            changed = await self._changed(self._files[start : start + LOOKED_UP_AT_ONCE])
            for batch in _batches(changed):
                await self._reserve(batch)
                if self._fatal is not None:
                    return
                contents = await to_thread.run_sync(_read, batch, abandon_on_cancel=True)
                self._run.job.begun += len(batch)
                self._in_flight |= {file.uri: file for file in batch}
                read = []
                for file, content in zip(batch, contents, strict=True):
                    if isinstance(content, str):
                        tasks.start_soon(self._parse, file)
                    else:
                        read.append((file, content))
                if read:
                    tasks.start_soon(self._store_files, read)

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

    async def _reserve(self, batch: Sequence[File]) -> None:
        """Wait until these files may be in flight too, and their bytes in memory."""
        while len(self._in_flight) + len(batch) > IN_FLIGHT or (
            self._held and sum(self._held.values()) + size_of(batch) > MAX_BYTES
        ):
            self._freed = anyio.Event()
            await self._freed.wait()
        self._held |= {file.uri: file.size for file in batch}

    def _release(self, file: File) -> None:
        self._held.pop(file.uri, None)
        self._freed.set()

    async def _parse(self, file: File) -> None:
        # The parser reads the file itself, and may take minutes for its scanned pages.
        self._release(file)
        content: Content
        try:
            content = await parse(detection.read, file.path, self._ocr, partial(self._note_page, file))
        except Exception as error:
            content = error
        await self._store_files([(file, content)])

    async def _store_files(self, read: Sequence[tuple[File, Content]]) -> None:
        """Store the texts of files, and record the outcome of each when it is known."""
        documents, texts = [], {}
        for file, content in read:
            try:
                if isinstance(content, FileText) and (file.named or not content.left_out):
                    metadata, stamp = metadata_of(file.uri, content), _stamp_of(file, content)
                    documents.append(
                        await self._writer.document(content.text, metadata, stamp, content.places)
                    )
                    texts[file.uri] = content
                else:
                    self._done(file, await self._refuse(file, content))
            except Exception as error:
                self._fail(file, error)
        await self._writer.inject_all(documents, self._run.origin, partial(self._note_stored, texts))
        # Without memory or threads, files that are being parsed need not be waited for.
        if self._fatal is not None and not isinstance(self._fatal, RagMemoryError):
            raise self._fatal

    def _note_stored(self, texts: Mapping[str, FileText], uri: str, stored: Injected | Exception) -> None:
        file, content = self._in_flight[uri], texts[uri]
        if isinstance(stored, Exception):
            self._fail(file, stored)
            return
        if stored.status == "unchanged":
            self._stamp(file, _stamp_of(file, content), text_digest(content.text))
        self._done(file, outcome_of(stored, content))

    async def _refuse(self, file: File, content: Content) -> FileOutcome:
        """The outcome of a file that is not read. A sync removes its document if it no longer holds text."""
        if isinstance(content, FileText):
            held = STILL_HELD if file.uri in self._stored and not self._run.job.prune else ""
            content = NoText(f"is {content.left_out}, and is read only if you name it{held}")
        outcome = _unread(file, content)
        if isinstance(content, NoText) and self._run.job.prune and file.uri in self._stored - self._foreign:
            await self._writer.forget_all([file.uri], self._run.origin, self._store.engine.machine)
            return replace(outcome, status="removed")
        return outcome

    def _fail(self, file: File, error: Exception) -> None:
        if isinstance(error, RagMemoryError):
            is_fatal = error.code in FATAL
            outcome = FileOutcome(file.uri, "failed", error=str(error))
        else:
            is_fatal, outcome = of_the_system(error) is not None, _failed(file, error)
        if is_fatal:
            self._fatal = self._fatal or error
        self._done(file, outcome)

    def _done(self, file: File, outcome: FileOutcome) -> None:
        self._in_flight.pop(file.uri, None)
        self._release(file)
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
    """Batches of READ_AT_ONCE files, or fewer if they are large.

    A batch stays in memory until all its texts are stored.
    """
    batch: list[File] = []
    size = 0
    for file in files:
        if batch and (len(batch) == READ_AT_ONCE or size + file.size > MAX_BYTES / 16):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
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


def metadata_of(uri: str, content: FileText) -> Metadata:
    """The metadata of the document of a file or page."""
    # The title may be the file name, which on POSIX need not be valid Unicode.
    metadata: Metadata = {"uri": uri, "title": content.title.encode(errors="replace").decode()}
    if content.tags:
        metadata["tags"] = content.tags
    if content.media_type:
        metadata["media_type"] = content.media_type
    return metadata


def outcome_of(stored: Injected, content: FileText) -> FileOutcome:
    """The outcome of a file or page that is stored."""
    return FileOutcome(stored.uri, stored.status, stored.document_id, stored.chunks, note=content.note)


def _stamp_of(file: File, content: FileText) -> str:
    mark = UNREAD_SCANS if file.stamp and content.has_unread_scans else ""
    return with_depth(file.stamp + mark, file.root)


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
