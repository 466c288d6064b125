"""Files into memory: many calls in flight, one outcome for each file. For `ragchat inject` and `/inject`.

Not the walk (`files`), not the screen: progress goes to a callback, and the report is filled as documents are
stored, so that whoever is interrupted can still say what was done.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import anyio
from anyio import to_thread
from msgspec import Struct, field

from ragchat.errors import MemoryRefused, RagChatError
from ragchat.formatting import counted
from ragchat.ingest.decoding import GUESSED, EmptyText, NotText, Text, read_text, title_of
from ragchat.ingest.files import Collected, Refusal, Source, collect, is_gone, reason_of
from ragchat.memory.types import Documents, Injected

# Enough to fill the server's batches: one is embedded while another is committed. Of 64, batches are so small
# that it takes a third longer; more only holds more text in memory.
IN_FLIGHT = 256
# Bytes of files on their way; a larger one goes alone.
MOST_BYTES = 16 << 20
# Read in one go: a hop to a thread costs more than reading a file.
READ_AT_ONCE = 16
# Errors that every further file would meet as well.
HOPELESS = frozenset(
    {
        *("EMBEDDER_MISMATCH", "EMBEDDER_UNAVAILABLE", "NOT_A_MEMORY"),
        *("MEMORY_DAMAGED", "MEMORY_FULL", "MEMORY_READ_ONLY", "MEMORY_TOO_NEW", "MEMORY_UNUSABLE"),
    }
)


class Memory(Protocol):
    """What loading needs of `MemoryClient`."""

    async def inject(self, text: str, metadata: dict[str, Any] | None = None) -> Injected: ...
    async def documents(self, limit: int, offset: int = 0, uri_glob: str | None = None) -> Documents: ...


class Document(Struct, frozen=True):
    """What became of one file. A failed one has an error sentence and no document id."""

    uri: str
    document_id: str | None
    status: Literal["added", "updated", "unchanged", "failed"]
    chunks: int = 0
    error: str | None = None


class Skipped(Struct, frozen=True):
    path: str
    reason: str


class Progress(Struct):
    """How far the loading is; bytes are those of the files."""

    files: int
    bytes: int
    done_files: int = 0
    done_bytes: int = 0


class InjectReport(Struct):
    """The outcome, in the order of the files. `gone`: URIs in memory that the folders no longer hold."""

    documents: list[Document] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    begun: int = 0
    files: int = 0

    def count(self, status: str) -> int:
        return sum(document.status == status for document in self.documents)

    @property
    def chunks(self) -> int:
        return sum(document.chunks for document in self.documents)

    def public(self) -> dict[str, Any]:
        """The shape of `ragchat inject --json`."""
        counts = {status: self.count(status) for status in ("added", "updated", "unchanged", "failed")}
        return {
            "documents": self.documents,
            **counts,
            "skipped": self.skipped,
            "gone": self.gone,
            "notes": self.notes,
        }

    def summary(self) -> str:
        """One sentence with the counts."""
        parts = [
            f"{number:,} {status}"
            for status in ("added", "updated", "unchanged", "failed")
            if (number := self.count(status))
        ]
        if self.skipped:
            parts.append(f"{len(self.skipped):,} skipped")
        if not parts:
            return "There is nothing to load."
        return f"{', '.join(parts)} ({counted(self.chunks, 'chunk')})."


OnProgress = Callable[[Progress], None]
# What reading one file brings.
Reading: TypeAlias = Text | Skipped | Refusal


async def run_inject(
    memory: Memory,
    paths: Iterable[str | Path],
    on_progress: OnProgress | None = None,
    report: InjectReport | None = None,
) -> InjectReport:
    """Load every file that `paths` mean; a bad one never stops the rest.

    `report` is filled on the way, for a caller that may be cancelled: what it does not call failed is stored.
    Raises RagChatError when memory itself cannot go on. No further file is begun then, but those under way
    are waited for: each has its own answer, and some are stored.
    """
    report = report or InjectReport()
    collected = await _collected(list(paths))
    for refusal in collected.refusals:
        _refuse(report, refusal)
    report.files = len(collected.sources)
    progress = Progress(len(collected.sources), sum(source.size for source in collected.sources))
    reader = _Reader(collected.sources)
    ends: list[RagChatError] = []

    async def work() -> None:
        while not ends and (item := await reader.next()):
            source, found = item
            if not ends:
                report.begun += 1
                try:
                    await _load(memory, source, found, report)
                except RagChatError as error:
                    report.documents.append(failed(source.uri, error))
                    ends.append(error)
            reader.done(source)
            progress.done_files += 1
            progress.done_bytes += source.size
            if on_progress is not None:
                on_progress(progress)

    if on_progress is not None:
        on_progress(progress)
    try:
        async with anyio.create_task_group() as tasks:
            for _ in range(min(IN_FLIGHT, len(collected.sources))):
                tasks.start_soon(work)
    finally:
        order = {source.uri: index for index, source in enumerate(collected.sources)}
        report.documents.sort(key=lambda document: order.get(document.uri, -1))
    if ends:
        raise ends[0]
    report.gone = await _gone(memory, collected)
    return report


async def _collected(paths: Sequence[str | Path]) -> Collected:
    """What the walk finds. It ends when nobody waits for it any more: a program ends after its threads."""
    given_up = threading.Event()
    try:
        return await to_thread.run_sync(collect, paths, given_up.is_set)
    finally:
        given_up.set()


class _Reader:
    """Reads files for many takers; these hold no more bytes at a time than MOST_BYTES, or one file."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._batches = _batches(sources)
        self._ready: deque[tuple[Source, Reading]] = deque()
        self._bytes = 0
        self._one_at_a_time = anyio.Lock()
        self._less = anyio.Event()

    async def next(self) -> tuple[Source, Reading] | None:
        """None when there are no more."""
        async with self._one_at_a_time:
            if not self._ready and (batch := next(self._batches, None)):
                size = _size(batch)
                while self._bytes and self._bytes + size > MOST_BYTES:
                    self._less = anyio.Event()
                    await self._less.wait()
                self._bytes += size
                self._ready.extend(zip(batch, await to_thread.run_sync(_read, batch), strict=True))
            return self._ready.popleft() if self._ready else None

    def done(self, source: Source) -> None:
        """The file is in memory, or will never be."""
        self._bytes -= source.size
        self._less.set()


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


def _read(batch: Sequence[Source]) -> list[Reading]:
    return [_read_one(source) for source in batch]


def _read_one(source: Source) -> Reading:
    try:
        return read_text(source.path)
    except EmptyText as error:
        return Skipped(str(source.path), str(error))
    except NotText as error:
        return Refusal(source.path, str(error), source.named)
    except FileNotFoundError:
        return Refusal(source.path, "is gone", source.named)
    except OSError as error:
        return Refusal(source.path, reason_of(error))


async def _load(memory: Memory, source: Source, found: Reading, report: InjectReport) -> None:
    match found:
        case Skipped():
            report.skipped.append(found)
        case Refusal():
            _refuse(report, found)
        case Text(text, encoding):
            if encoding in GUESSED:
                report.notes.append(f"{source.path} is not UTF-8; it was read as {encoding}.")
            metadata = {"uri": source.uri, "title": title_of(source.path, text)}
            report.documents.append(await inject_one(memory, text, metadata))


async def inject_one(memory: Memory, text: str, metadata: dict[str, Any]) -> Document:
    """One document to memory. Raises RagChatError where another document could do no better."""
    try:
        injected = await memory.inject(text, metadata)
    except MemoryRefused as error:
        if error.word in HOPELESS:
            raise
        return failed(metadata.get("uri", ""), error)
    return Document(injected.uri, injected.document_id, injected.status, injected.chunks)


def failed(uri: str, error: RagChatError) -> Document:
    return Document(uri, None, "failed", error=str(error))


def _refuse(report: InjectReport, refusal: Refusal) -> None:
    if refusal.failed:
        error = f"{refusal.name} {refusal.reason}."
        report.documents.append(Document(refusal.uri, None, "failed", error=error))
    else:
        report.skipped.append(Skipped(refusal.name, refusal.reason))


async def _gone(memory: Memory, collected: Collected) -> list[str]:
    """URIs that memory has from the walked folders, of files that are not there any more.

    What the walk has passed over, because it is ignored or hidden, may still be there.
    """
    found = {source.uri for source in collected.sources}
    gone: list[str] = []
    for folder in collected.folders:
        offset = 0
        while True:
            page = await memory.documents(limit=1000, offset=offset, uri_glob=f"{folder.as_uri()}/*")
            missed = [document.uri for document in page.documents if document.uri not in found]
            gone += await to_thread.run_sync(_which_are_gone, missed)
            offset += len(page.documents)
            if not page.documents or offset >= page.total:
                break
    return gone


def _which_are_gone(uris: Sequence[str]) -> list[str]:
    return [uri for uri in uris if is_gone(uri)]
