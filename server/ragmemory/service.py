"""The memory itself: put text in, find it again, look at it, forget it, undo. Knows nothing of MCP.

Nothing is opened or loaded before it is needed; `warm_up` does so ahead of time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
from anyio import to_thread
from msgspec.structs import replace

from ragmemory.embedders import Embedder
from ragmemory.errors import DocumentNotFound, EmbedderUnavailable, NothingToUndo, NotUndoable
from ragmemory.ingest.documents import complete, make_draft
from ragmemory.ingest.preparation import Preparation
from ragmemory.ingest.reembedding import OnProgress, reembed
from ragmemory.ingest.sweeping import Sweeper
from ragmemory.ingest.write_queue import Intake
from ragmemory.search.queries import LONGEST, parse
from ragmemory.search.sync import Indexing
from ragmemory.stores import verifying
from ragmemory.stores.filters import compile_filter
from ragmemory.stores.sqlite import Store
from ragmemory.stores.values import check_uri
from ragmemory.types import (
    Change,
    DocumentInfo,
    Draft,
    Entry,
    Forgotten,
    Injected,
    Metadata,
    Origin,
    QueryResult,
    Reembedded,
    Stats,
    Verified,
    Write,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Chunks of a batch that waits for the index where that is far behind; smaller ones do not wait.
_MANY_CHUNKS = 250
# Characters that are hashed before a thread could be woken for them.
_SHORT = 100_000


class MemoryService:
    """An async context manager. Every method raises RagMemoryErrors; anything else is a fault of our own."""

    def __init__(self, store: Store, embedder: Embedder, indexing: Indexing, max_tokens: int) -> None:
        self._store = store
        self._embedder = embedder
        self._indexing = indexing
        self._sweeper = Sweeper(store)
        preparation = Preparation(store, embedder, max_tokens, self._note_page, self._sweeper.wake)
        self._intake = Intake(preparation.prepare, self._commit, preparation.build, preparation.abandon)
        self._opening = anyio.Lock()
        self._reembedding = anyio.Lock()
        self._is_open = False
        self.on_change: Callable[[str, Change], None] = lambda _, __: None
        """Called with the id of every document that was added, updated or removed by this process."""

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._tasks.start_soon(self._intake.run)
        self._tasks.start_soon(self._indexing.follow, self._intake.idle)
        self._tasks.start_soon(self._indexing.maintain)
        self._tasks.start_soon(self._sweeper.run)
        return self

    async def __aexit__(
        self,
        type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._indexing.stop()
        self._tasks.cancel_scope.cancel()
        try:
            return await self._tasks.__aexit__(type, error, traceback)
        finally:
            with anyio.CancelScope(shield=True):
                await self._close()

    async def _close(self) -> None:
        # Whatever fails, the file is closed, also by whom it is just being opened: left open, it would keep
        # the program from ending.
        async with AsyncExitStack() as closing:
            await closing.enter_async_context(self._opening)
            if self._is_open:
                closing.push_async_callback(self._store.close)
                closing.push_async_callback(self._indexing.close)
            closing.push_async_callback(self._embedder.aclose)

    async def _open(self) -> None:
        async with self._opening:
            if self._is_open:
                if self._store.is_replaced():
                    await self._store.reopen()
            else:
                self._indexing.check()
                # The first query needs both; neither has to wait for the other.
                self._tasks.start_soon(self._load_embedder)
                await self._store.open()
                self._is_open = True
                if self._store.is_writable:
                    self._sweeper.wake()

    async def _load_embedder(self) -> None:
        with suppress(Exception):  # whoever needs it will be told
            await to_thread.run_sync(self._embedder.warm_up)

    async def warm_up(self) -> None:
        """Do now what the first query would wait for."""
        await self._open()
        await self._indexing.bring_up_to_date()

    # Putting in

    async def inject(self, text: str, metadata: Metadata, origin: Origin) -> Injected:
        """Store a document, or its new version; returns when it is on the disk.

        Raises BadArgument, EmbedderUnavailable, EmbedderMismatch.
        """
        draft = await _drafted(make_draft, text, metadata)
        await self._open()
        return await self._intake.submit(Write(draft, origin))

    async def _commit(self, writes: Sequence[Write]) -> Sequence[Injected | Exception | None]:
        vectors = [write.embeddings[0] for write in writes if write.embeddings]
        # Two bytes a number.
        embedder = (self._embedder.identity, len(vectors[0]) // 2) if vectors else None
        chunks = sum(len(write.chunks or ()) for write in writes)
        if chunks > _MANY_CHUNKS:
            await self._indexing.keep_up()
        outcomes = await self._store.write(writes, embedder)
        self._note_write(chunks)
        for outcome in outcomes:
            if isinstance(outcome, Injected) and outcome.status != "unchanged":
                self.on_change(outcome.document_id, outcome.status)
        return outcomes

    async def _note_page(self, chunks: int) -> None:
        self._indexing.note_write(chunks)
        await self._indexing.keep_up()

    def _note_write(self, chunks: int = 0) -> None:
        self._indexing.note_write(chunks)
        self._sweeper.wake()

    async def _remove(self, uri: str, origin: Origin, undoes: int | None = None) -> Forgotten | None:
        forgotten = await self._store.remove(uri, origin, undoes)
        if forgotten:
            self._note_write()
            self.on_change(forgotten.document_id, "removed")
        return forgotten

    @property
    def waiting(self) -> int:
        """How many documents wait to be written."""
        return self._intake.waiting

    # Finding

    async def query(self, text: str, top_k: int, filter: dict[str, Any] | None = None) -> QueryResult:
        """Search everything that was committed before the call.

        Without the embedder the search goes by words alone, and the notice says so. A hit that lies on a
        damaged page is left out. Raises BadArgument, EmbedderMismatch.
        """
        condition = compile_filter(filter) if filter else None
        await self._open()
        if not await self._indexing.bring_up_to_date():
            return QueryResult([], empty=True)
        notices: list[str] = []
        if len(text) > LONGEST:
            notices.append(f"Only the first {LONGEST:,} characters of the question were used.")
        parsed = parse(text)
        vector = await self._embed(parsed.text, notices)
        allowed = await self._store.allowed(condition) if condition else None
        boosted: set[int] = set()
        if parsed.phrases or parsed.prefixes:
            boosted = await self._store.holding(parsed.phrases, parsed.prefixes)
        scored = await self._indexing.search(parsed, vector, allowed, boosted, top_k)
        hits, damage = await self._store.hits({one.chunk_id: one.score for one in scored})
        if damage:
            notices.append(f"Some passages were left out. {damage} {damage.hint}")
        return QueryResult(hits, empty=False, notice=" ".join(notices))

    async def _embed(self, text: str, notices: list[str]) -> NDArray[np.float32] | None:
        try:
            return await self._embedder.embed_query(text, self._indexing.weigh)
        except EmbedderUnavailable as error:
            notices.append(f"Searched by words alone. {error}")
            return None

    # Looking

    async def documents(
        self, limit: int, offset: int = 0, uri_glob: str = "*"
    ) -> tuple[list[DocumentInfo], int]:
        """A page of the documents, by uri, and how many there are in all. Raises BadArgument."""
        check_uri("uri_glob", uri_glob)
        await self._open()
        return await self._store.documents(limit, offset, uri_glob)

    async def document(self, document: str) -> tuple[DocumentInfo, str]:
        """One document by its id or uri, and its text. Raises DocumentNotFound."""
        await self._open()
        info = await self._store.document(document)
        return info, await self._store.text(info.document_id)

    async def document_ids(self, prefix: str) -> list[str]:
        """The ids that begin so, of the documents last changed first."""
        await self._open()
        return await self._store.document_ids(prefix)

    async def journal(self, limit: int) -> list[Entry]:
        """The newest entries of the journal, newest first."""
        await self._open()
        return await self._store.journal(limit)

    async def stats(self) -> Stats:
        """Counts and sizes."""
        await self._open()
        return await self._store.stats()

    async def verify(self, on_progress: verifying.OnProgress) -> Verified:
        """Check the whole file, also one that cannot be opened."""
        return await self._store.verify(on_progress)

    # Embedding anew

    async def reembed(self, on_progress: OnProgress) -> Reembedded:
        """Make all embeddings anew with the configured embedder. Raises EmbedderUnavailable."""
        await self._open()
        async with self._reembedding:  # what is gathered has one place
            reembedded = await reembed(self._store, self._embedder, on_progress)
        self._indexing.note_write()
        return reembedded

    # Taking back

    async def forget(self, document: str, origin: Origin) -> Forgotten:
        """Remove a document by its id or uri. Raises DocumentNotFound."""
        await self._open()
        info = await self._store.document(document)
        forgotten = await self._remove(info.uri, origin)
        if forgotten is None:  # another was faster
            raise DocumentNotFound(document)
        return forgotten

    async def undo(self, origin: Origin) -> Entry:
        """Take back the last write that is not undone, and return it.

        Raises NothingToUndo, NotUndoable, UndoConflict; nothing is changed then.
        """
        await self._open()
        last = await self._store.last_write()
        if last is None:
            raise NothingToUndo
        entry, before = last
        if entry.action == "added":
            await self._remove(entry.uri, origin, entry.seq)
        elif before is None:
            raise NotUndoable(entry.seq, entry.action, entry.uri)
        else:
            draft = await _drafted(complete, before.text, before.metadata)
            write = Write(draft, origin, undoes=entry.seq, added_at=before.added_at)
            await self._intake.submit(write)
        return replace(entry, undone=True)


async def _drafted(make: Callable[[str, Metadata], Draft], text: str, metadata: Metadata) -> Draft:
    """`make(text, metadata)`, in a thread where that takes long."""
    if len(text) <= _SHORT:
        return make(text, metadata)
    return await to_thread.run_sync(make, text, metadata)
