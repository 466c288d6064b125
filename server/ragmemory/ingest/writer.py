"""The single entry point for writes to memory: documents stored and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from anyio import to_thread
from msgspec.structs import replace

from ragcommon.contract.documents import Forgotten, Injected, Metadata
from ragcommon.contract.history import Origin
from ragcommon.text.places import Place
from ragmemory.embedders import Embedder
from ragmemory.errors import CLOSED, DocumentNotFound, MemoryUnusable
from ragmemory.ingest.documents import make_document
from ragmemory.ingest.preparation import Preparation
from ragmemory.ingest.sweeping import Sweeper
from ragmemory.ingest.write_queue import OnOutcome, WriteQueue
from ragmemory.stores.engine import OnProgress
from ragmemory.stores.store import Store
from ragmemory.types.writes import Document, Write

if TYPE_CHECKING:
    from ragmemory.search.indexing import Indexing

# Only larger batches (chunks) wait for an index that is far behind.
_MANY_CHUNKS = 250
# Documents removed per transaction, for which other writers wait.
_REMOVED_AT_ONCE = 64
# Longer texts (characters) are hashed in a thread; for shorter ones, starting a thread takes longer.
_SHORT = 100_000


class Writer:
    """`max_tokens`: the size limit of a chunk.

    `on_written` is called with the ids of the documents that were added, updated or removed;
    `on_whole_change` with those whose text was written as a whole, or removed.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        indexing: Indexing,
        max_tokens: int,
        on_written: Callable[[Iterable[str]], None],
        on_whole_change: Callable[[Sequence[str]], None],
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._indexing = indexing
        self._on_written = on_written
        self._on_whole_change = on_whole_change
        self.sweeper = Sweeper(store)
        self.preparation = Preparation(store, embedder, indexing, max_tokens, self.sweeper.wake)
        self.queue = WriteQueue(
            self.preparation.prepare,
            self._commit,
            self._keep_up,
            self.preparation.build,
            self.preparation.abandon,
            lambda: MemoryUnusable(store.engine.place, CLOSED, hint=""),
        )

    async def inject(
        self,
        text: str,
        metadata: Metadata,
        origin: Origin,
        stamp: str = "",
        places: Sequence[Place] = (),
        on_progress: OnProgress | None = None,
    ) -> Injected:
        """Store a document, or its new version; return when it is on the disk.

        `stamp` identifies the state of the source file; `places` are ordered by line. Only long
        documents report progress. Raises BadArgument, EmbedderUnavailable, EmbedderMismatch.
        """
        document = await self.document(text, metadata, stamp, places)
        return await self.queue.submit(Write(document, origin, on_progress=on_progress))

    async def inject_all(self, documents: Sequence[Document], origin: Origin, on_outcome: OnOutcome) -> None:
        """Store documents with different uris; `on_outcome` is called for each when it is on the disk."""
        await self.queue.submit_all([Write(document, origin) for document in documents], on_outcome)

    async def document(
        self, text: str, metadata: Metadata, stamp: str = "", places: Sequence[Place] = ()
    ) -> Document:
        """A document to inject; see `inject`. Raises BadArgument."""
        document = await _make(text, metadata)
        if not (stamp or places):
            return document
        machine = self._store.engine.machine if stamp else ""
        return replace(document, stamp=stamp, machine=machine, places=list(places))

    async def idle(self) -> None:
        """Return when nothing is waiting to be written."""
        await self.queue.idle()

    async def forget(self, document: str, origin: Origin, machine: str | None = None) -> Forgotten:
        """Remove a document by its id or uri; with `machine`, one that it has loaded.

        Raises DocumentNotFound.
        """
        info = await self._store.documents.find(document)
        removed = await self.remove({info.uri: None}, origin, machine)
        if not removed:  # Another process removed it first, or another machine has loaded it.
            raise DocumentNotFound(document)
        return removed[0]

    async def forget_all(self, uris: Sequence[str], origin: Origin, machine: str) -> list[Forgotten]:
        """Remove documents by uri, in several transactions, unless another machine has loaded them since.

        Unknown uris are ignored.
        """
        removed = []
        for start in range(0, len(uris), _REMOVED_AT_ONCE):
            some = dict.fromkeys(uris[start : start + _REMOVED_AT_ONCE])
            removed += await self.remove(some, origin, machine)
        return removed

    async def remove(
        self, removals: Mapping[str, int | None], origin: Origin, machine: str | None = None
    ) -> list[Forgotten]:
        """Remove documents; with `machine`, those that it has loaded.

        `removals` maps uris to the journal entries they undo. Raises UndoConflict.
        """
        removed = await self._store.remove(removals, origin, machine)
        self._note_write()
        ids = [forgotten.document_id for forgotten in removed]
        self._on_written(ids)
        self._on_whole_change(ids)
        return removed

    async def _commit(self, writes: Sequence[Write]) -> Sequence[Injected | Exception | None]:
        vectors = [write.embeddings[0] for write in writes if write.embeddings]
        # A float16 has two bytes.
        embedder = (self._embedder.identity, len(vectors[0]) // 2) if vectors else None
        outcomes = await self._store.write(writes, embedder)
        self._note_write(_chunks(writes))
        written, updated = [], []
        for write, outcome in zip(writes, outcomes, strict=True):
            if isinstance(outcome, Injected) and outcome.status != "unchanged":
                written.append(outcome.document_id)
                if outcome.status == "updated" and write.edit is None:  # An edit knows its blocks.
                    updated.append(outcome.document_id)
        self._on_written(written)
        self._on_whole_change(updated)
        return outcomes

    async def _keep_up(self, writes: Sequence[Write]) -> None:
        if _chunks(writes) > _MANY_CHUNKS:
            await self._indexing.keep_up()

    def _note_write(self, chunks: int = 0) -> None:
        self._indexing.note_write(chunks)
        self.sweeper.wake()


def _chunks(writes: Sequence[Write]) -> int:
    return sum(len(write.chunks or ()) for write in writes)


async def _make(text: str, metadata: Metadata) -> Document:
    if len(text) <= _SHORT:
        return make_document(text, metadata)
    return await to_thread.run_sync(make_document, text, metadata)
