"""Loading files into memory: find them, read them in a thread, send many at a time.

The report is filled as documents are stored, so that an interrupted caller can still say what was done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import anyio
from anyio import to_thread
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from msgspec import Struct

from ragchat.errors import MemoryRefused, RagChatError
from ragchat.ingest.decoding import GUESSED, EmptyText, NotText, Text, read_text, title_of
from ragchat.ingest.report import Document, InjectReport, Skipped
from ragchat.ingest.walking import Found, Refusal, Source, find_files, is_missing, reason_of
from ragchat.memory.client import DOCUMENT_NOT_FOUND
from ragchat.memory.types import Documents, Forgotten, Injected
from ragchat.uris import short_path

# Enough to fill the server's batches: one is embedded while another is committed. With 64, batches are so
# small that loading takes a third longer; a larger number only holds more text in memory.
IN_FLIGHT = 256
# Bytes of files that are read but not yet stored; a larger file is loaded alone.
MOST_BYTES = 16 << 20
# Files read in one go: a hop to a thread costs more than reading a file.
READ_AT_ONCE = 16
# Error codes that every other file would get as well.
FATAL = frozenset(
    {
        *("EMBEDDER_MISMATCH", "EMBEDDER_UNAVAILABLE", "NOT_A_MEMORY"),
        *("MEMORY_DAMAGED", "MEMORY_FULL", "MEMORY_READ_ONLY", "MEMORY_TOO_NEW", "MEMORY_UNUSABLE"),
    }
)


class Memory(Protocol):
    """What loading needs of `MemoryClient`."""

    async def inject(
        self, text: str, metadata: dict[str, Any] | None = None, group: str = ""
    ) -> Injected: ...
    async def documents(self, limit: int, offset: int = 0, uri_glob: str | None = None) -> Documents: ...


class PrunableMemory(Protocol):
    """What pruning needs of `MemoryClient`."""

    async def forget(self, document: str, group: str = "") -> Forgotten: ...


class Progress(Struct):
    """How far the loading is; bytes are those of the files."""

    files: int
    bytes: int
    done_files: int = 0
    done_bytes: int = 0


OnProgress = Callable[[Progress], None]
# A file that was read, or why it was not.
Content: TypeAlias = Text | Skipped | Refusal


async def load_files(
    memory: Memory,
    paths: Iterable[str | Path],
    on_progress: OnProgress | None = None,
    report: InjectReport | None = None,
) -> InjectReport:
    """Load every file that `paths` name or contain; a bad file never stops the rest.

    `report` is filled on the way, for a caller that may be cancelled. Raises RagChatError when memory cannot
    go on. No further file is begun then, but those in flight are awaited: each has its own answer.
    """
    report = report or InjectReport()
    found = await _find_files(list(paths))
    for refusal in found.refusals:
        _refuse(report, refusal)
    report.files = len(found.sources)
    try:
        await _Loading(memory, found.sources, report, on_progress).run()
    finally:
        order = {source.uri: index for index, source in enumerate(found.sources)}
        report.documents.sort(key=lambda document: order.get(document.uri, -1))
    report.missing = await _missing(memory, found)
    return report


async def load_text(memory: Memory, text: str, metadata: dict[str, Any], group: str = "") -> Document:
    """Load one document. Raises RagChatError if every other document would fail as well."""
    try:
        injected = await memory.inject(text, metadata, group)
    except MemoryRefused as error:
        if error.word in FATAL:
            raise
        return failed(metadata.get("uri", ""), error)
    return Document(injected.uri, injected.document_id, injected.status, injected.chunks)


def failed(uri: str, error: RagChatError) -> Document:
    return Document(uri, None, "failed", error=str(error))


class _Loading:
    """One task reads files, at most IN_FLIGHT tasks send them to memory and fill the report."""

    def __init__(
        self, memory: Memory, sources: Sequence[Source], report: InjectReport, on_progress: OnProgress | None
    ) -> None:
        self._memory = memory
        self._sources = sources
        self._report = report
        self._on_progress = on_progress
        self._progress = Progress(len(sources), _size(sources))
        self._fatal: RagChatError | None = None
        self._bytes = 0  # read but not yet stored
        self._freed = anyio.Event()

    async def run(self) -> None:
        """Raises the first error that every other file would get as well."""
        self._show_progress()
        send, receive = anyio.create_memory_object_stream[tuple[Source, Content]]()
        with send, receive:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_files, send)
                for _ in range(min(IN_FLIGHT, len(self._sources))):
                    tasks.start_soon(self._store_files, receive)
        if self._fatal is not None:
            raise self._fatal

    async def _read_files(self, send: ObjectSendStream[tuple[Source, Content]]) -> None:
        async with send:
            for batch in _batches(self._sources):
                await self._reserve(_size(batch))
                if self._fatal is not None:
                    return
                for file in zip(batch, await to_thread.run_sync(_read, batch), strict=True):
                    await send.send(file)

    async def _reserve(self, size: int) -> None:
        """Wait until `size` more bytes may be held in memory."""
        while self._bytes and self._bytes + size > MOST_BYTES:
            self._freed = anyio.Event()
            await self._freed.wait()
        self._bytes += size

    async def _store_files(self, receive: ObjectReceiveStream[tuple[Source, Content]]) -> None:
        async for source, content in receive:
            if self._fatal is None:
                self._report.begun += 1
                try:
                    await self._store(source, content)
                except RagChatError as error:
                    self._report.documents.append(failed(source.uri, error))
                    self._fatal = self._fatal or error
                self._report.done += 1
            self._bytes -= source.size
            self._freed.set()
            self._progress.done_files += 1
            self._progress.done_bytes += source.size
            self._show_progress()

    async def _store(self, source: Source, content: Content) -> None:
        match content:
            case Skipped():
                self._report.skipped.append(content)
            case Refusal():
                _refuse(self._report, content)
            case Text(text, encoding):
                if encoding in GUESSED:
                    self._report.notes.append(
                        f"{short_path(source.path)} is not UTF-8; it was read as {encoding}."
                    )
                metadata = {"uri": source.uri, "title": title_of(source.path, text)}
                document = await load_text(self._memory, text, metadata, self._report.group)
                self._report.documents.append(document)

    def _show_progress(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self._progress)


async def _find_files(paths: Sequence[str | Path]) -> Found:
    """Find the files in a thread, which stops when this task is cancelled."""
    cancelled = threading.Event()
    try:
        return await to_thread.run_sync(find_files, paths, cancelled.is_set)
    finally:
        cancelled.set()


def _batches(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """READ_AT_ONCE files, or fewer where they are large."""
    batch: list[Source] = []
    for source in sources:
        if batch and (len(batch) == READ_AT_ONCE or _size([*batch, source]) > MOST_BYTES / 4):
            yield batch
            batch = []
        batch.append(source)
    if batch:
        yield batch


def _size(sources: Sequence[Source]) -> int:
    return sum(source.size for source in sources)


def _read(batch: Sequence[Source]) -> list[Content]:
    return [_read_one(source) for source in batch]


def _read_one(source: Source) -> Content:
    try:
        return read_text(source.path)
    except EmptyText as error:
        return Skipped(str(source.path), str(error))
    except NotText as error:
        return Refusal(source.path, str(error), source.named)
    except FileNotFoundError:
        return Refusal(source.path, "no longer exists", source.named)
    except OSError as error:
        return Refusal(source.path, reason_of(error))


def _refuse(report: InjectReport, refusal: Refusal) -> None:
    if refusal.failed:
        error = f"{refusal.name} {refusal.reason}."
        report.documents.append(Document(refusal.uri, None, "failed", error=error))
    else:
        report.skipped.append(Skipped(refusal.name, refusal.reason))


async def prune(memory: PrunableMemory, report: InjectReport) -> None:
    """Remove the missing documents of a finished load from memory. Raises RagChatError.

    Not if the folders hold no file at all: then a disk is probably not mounted.
    """
    if report.missing and not report.files:
        report.notes.append("The folders hold no files, so nothing is removed. Is the disk mounted?")
        return
    while report.missing:
        try:
            await memory.forget(report.missing[0], report.group)
        except MemoryRefused as error:
            if error.word != DOCUMENT_NOT_FOUND:  # else another program has removed it
                raise
        report.pruned.append(report.missing.pop(0))


async def _missing(memory: Memory, found: Found) -> list[str]:
    """URIs of documents from the walked folders whose files no longer exist.

    A document that the walk did not find may be an ignored or hidden file, which the user once named.
    """
    walked = {source.uri for source in found.sources}
    missing: list[str] = []
    for folder in found.folders:
        offset = 0
        while True:
            page = await memory.documents(limit=1000, offset=offset, uri_glob=f"{folder.as_uri()}/*")
            unseen = [document.uri for document in page.documents if document.uri not in walked]
            missing += await to_thread.run_sync(lambda uris: list(filter(is_missing, uris)), unseen)
            offset += len(page.documents)
            if not page.documents or offset >= page.total:
                break
    return missing
