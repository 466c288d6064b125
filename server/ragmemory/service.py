"""The memory service: inject, query, list, forget, undo. Knows no MCP.

Files and models are opened when they are first needed; `warm_up` opens them ahead of time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
from anyio import to_thread
from msgspec.structs import replace

from ragconfig.home import user_path
from ragconfig.places import Place
from ragconfig.text_rules import MAX_QUERY_CHARACTERS, with_words_replaced
from ragmemory.blocks.library import Library
from ragmemory.code.service import CodeMemory
from ragmemory.embedders import Embedder
from ragmemory.errors import (
    BackupFailed,
    ChunkNotFound,
    DocumentNotFound,
    EmbedderUnavailable,
    MemoryDamaged,
    RerankerUnavailable,
)
from ragmemory.files.ingestions import Ingestions, is_under
from ragmemory.files.sources import Sources
from ragmemory.ingest import transfer, undoing, versions
from ragmemory.ingest.documents import make_document
from ragmemory.ingest.preparation import Preparation
from ragmemory.ingest.reembedding import OnProgress, reembed
from ragmemory.ingest.repairing import repair
from ragmemory.ingest.sweeping import Sweeper
from ragmemory.ingest.write_queue import WriteQueue
from ragmemory.limits import MOST_SOUGHT
from ragmemory.search.queries import parse
from ragmemory.search.sync import IndexSync
from ragmemory.stores import backup, verifying
from ragmemory.stores.code import IS_CODE
from ragmemory.stores.filters import compile_filter
from ragmemory.stores.sqlite import Store
from ragmemory.text.analysis import content_words
from ragmemory.types import (
    Backup,
    Change,
    Difference,
    Document,
    DocumentInfo,
    DocumentOrder,
    DocumentPart,
    Entry,
    ExportPage,
    Forgotten,
    Hit,
    ImportOutcome,
    Injected,
    Metadata,
    Origin,
    Passage,
    PortableDocument,
    QueryResult,
    Reembedded,
    Repaired,
    Restored,
    Selection,
    Stats,
    Undone,
    Verified,
    Versions,
    VersionText,
    Write,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.search.reranking import Reranker


# Weight of the single words' matches against the cosine. What is shown hardly changes from .25 to .5.
MATCH_WEIGHT = 1 / 3
# A batch of more chunks waits while the index is far behind; a smaller one does not.
_MANY_CHUNKS = 250
# Documents that one transaction removes, for which other writers wait.
_REMOVED_AT_ONCE = 64
# Seconds without a query after which the model is loaded for the first one.
_UNASKED_SECONDS = 1.0
# Longer texts, in characters, are hashed in a thread; shorter ones faster than a thread could be woken.
_SHORT = 100_000


_LAST_CHANGE = Selection()


class MemoryService:
    """An async context manager. Every method raises RagMemoryErrors; any other exception is a bug."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        indexing: IndexSync,
        max_tokens: int,
        reranker: Reranker | None = None,
        roots: Sequence[str] = (),
        former: Callable[[str], Embedder | None] = lambda _: None,
    ) -> None:
        """`roots`: the folders in which files may be read, and written by edits and backups.

        `former` makes the embedder with some identity, if it can: during a reembedding it embeds queries.
        """
        self._former = former
        self.roots = roots
        self._store = store
        self._embedder = embedder
        self._indexing = indexing
        self._reranker = reranker
        self._sweeper = Sweeper(store)
        self._code = CodeMemory(store)
        preparation = Preparation(store, embedder, max_tokens, self._note_page, self._sweeper.wake)
        self._queue = WriteQueue(preparation.prepare, self._commit, preparation.build, preparation.abandon)
        self._opening = anyio.Lock()
        self._reembedding = anyio.Lock()
        self._is_open = False
        self._is_asked = anyio.Event()
        self.on_change: Callable[[str, Change], None] = lambda _, __: None
        """Called with the id of every document that this process adds, updates or removes."""
        self.on_block_change: Callable[[str, Sequence[str]], None] = lambda _, __: None
        """Called with the ids of the blocks that it changes or removes, if anyone has seen their ids."""

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._library = Library(
            self._store,
            self.query,
            self._queue.submit,
            self.roots,
            lambda *change: self.on_block_change(*change),
        )
        self._ingestions = Ingestions(self._store, self, self.roots, self._tasks)
        self._tasks.start_soon(self._queue.run)
        self._tasks.start_soon(self._indexing.follow, self._queue.idle)
        self._tasks.start_soon(self._indexing.maintain)
        self._tasks.start_soon(self._sweeper.run)
        self._tasks.start_soon(self._ingestions.run)
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
        # The file is closed whatever fails, and also if it is just being opened: its threads would keep the
        # program from exiting.
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
                self._tasks.start_soon(self._load_embedder)
                await self._store.open()
                self._is_open = True
                if self._store.is_writable:
                    self._sweeper.wake()
                    self._ingestions.wake()

    async def _load_embedder(self) -> None:
        """At the first query, while the store is opened; without one, soon after the start."""
        # A command that only lists documents has ended by then: it does not pay for a model.
        with anyio.move_on_after(_UNASKED_SECONDS):
            await self._is_asked.wait()
        with suppress(Exception):  # The query that needs it raises the error.
            await to_thread.run_sync(self._embedder.warm_up, abandon_on_cancel=True)

    async def warm_up(self) -> None:
        """Open and load what the first query needs; the model is loaded a little later."""
        await self._open()
        await self._indexing.bring_up_to_date()

    # Inject

    async def inject(
        self, text: str, metadata: Metadata, origin: Origin, stamp: str = "", places: Sequence[Place] = ()
    ) -> Injected:
        """Store a document, or its new version; return when it is on the disk.

        `stamp` identifies the state of the file that it was read from; `places` are in the order of their
        lines. Raises BadArgument, EmbedderUnavailable, EmbedderMismatch.
        """
        document = await _make(text, metadata)
        if stamp or places:
            document = replace(document, stamp=stamp, places=list(places))
        await self._open()
        return await self._queue.submit(Write(document, origin))

    async def ingestions(self) -> Ingestions:
        """The jobs that load files."""
        await self._open()
        return self._ingestions

    async def sources(self) -> Sources:
        """The files and folders that memory is kept in step with."""
        return Sources(self._store, self, await self.ingestions())

    async def library(self) -> Library:
        """The documents as trees of blocks."""
        await self._open()
        return self._library

    async def code(self) -> CodeMemory:
        """The source code in memory."""
        await self._open()
        return self._code

    async def _commit(self, writes: Sequence[Write]) -> Sequence[Injected | Exception | None]:
        vectors = [write.embeddings[0] for write in writes if write.embeddings]
        # A float16 has two bytes.
        embedder = (self._embedder.identity, len(vectors[0]) // 2) if vectors else None
        chunks = sum(len(write.chunks or ()) for write in writes)
        outcomes = await self._store.write(writes, embedder)
        self._note_write(chunks)
        updated = []
        for write, outcome in zip(writes, outcomes, strict=True):
            if isinstance(outcome, Injected) and outcome.status != "unchanged":
                self.on_change(outcome.document_id, outcome.status)
                if outcome.status == "updated" and write.edit is None:  # An edit knows its blocks.
                    updated.append(outcome.document_id)
        self._note_blocks(updated)
        if chunks > _MANY_CHUNKS:
            await self._indexing.keep_up()
        return outcomes

    async def _note_page(self, chunks: int) -> None:
        self._indexing.note_write(chunks)
        await self._indexing.keep_up()

    def _note_write(self, chunks: int = 0) -> None:
        self._indexing.note_write(chunks)
        self._sweeper.wake()

    async def _remove(self, removals: Mapping[str, int | None], origin: Origin) -> list[Forgotten]:
        removed = await self._store.remove(removals, origin)
        self._note_write()
        for forgotten in removed:
            self.on_change(forgotten.document_id, "removed")
        self._note_blocks([forgotten.document_id for forgotten in removed])
        return removed

    def _note_blocks(self, document_ids: Sequence[str]) -> None:
        if document_ids:
            self._tasks.start_soon(self._library.note_changes, document_ids)

    @property
    def waiting(self) -> int:
        """How many documents wait to be written."""
        return self._queue.waiting

    # Query

    async def query(
        self,
        text: str,
        top_k: int,
        filter: dict[str, Any] | None = None,
        min_score: float = 0.0,
        *,
        only_code: bool = False,
    ) -> QueryResult:
        """Search everything that was committed before the call; with `only_code`, in source code alone.

        Misspelt words are corrected by those of this memory. Hits below `min_score` are left out.
        Without the embedder the search goes by words alone, and the notice says so. A hit that lies on a
        damaged page is left out. Raises BadArgument, EmbedderMismatch.
        """
        condition = compile_filter(filter or {}) if filter or only_code else None
        if condition and only_code:
            condition = f"{condition[0]} AND {IS_CODE[0]}", [*condition[1], *IS_CODE[1]]
        self._is_asked.set()
        await self._open()
        if not await self._indexing.bring_up_to_date():
            return QueryResult([], empty=True)
        notices: list[str] = []
        if len(text) > MAX_QUERY_CHARACTERS:
            notices.append(f"Only the first {MAX_QUERY_CHARACTERS:,} characters of the question were used.")
        parsed = parse(text)
        # Before the words are corrected: which words are common is known once the embedder is loaded.
        embedder = self._searching(notices)
        vector = await self._embed(embedder, parsed.text, notices)
        similar = self._indexing.corrections(content_words(parsed.text), self._embedder.is_common)
        corrections = await self._store.with_words(similar) if similar else {}
        if corrections:
            parsed = parse(with_words_replaced(text[:MAX_QUERY_CHARACTERS], corrections))
            vector = await self._embed(embedder, parsed.text, []) if vector is not None else None
        allowed = await self._store.allowed(condition) if condition else None
        boosted: set[int] = set()
        if parsed.phrases or parsed.prefixes:
            boosted = await self._store.holding(parsed.phrases, parsed.prefixes)
        wanted = max(top_k, self._reranker.settings.passages) if self._reranker else top_k
        used = embedder or self._embedder
        scored = await self._indexing.search(
            parsed, vector, allowed, boosted, wanted, used.scale, used.identity
        )
        scores = {one.chunk_id: one.score for one in scored if one.score >= min_score}
        hits, damage = await self._store.hits(scores)
        if damage:
            notices.append(f"Some passages were left out. {damage} {damage.hint}")
        hits = (await self._rerank(parsed.text, hits, boosted, notices))[:top_k]
        found = [hit.chunk_id for hit in hits]
        weights, missing = self._indexing.evidence(content_words(parsed.text), found)
        return QueryResult(
            hits,
            empty=False,
            notice=" ".join(notices),
            missing=missing,
            weights=weights,
            corrections=corrections,
        )

    async def query_documents(self, text: str, limit: int) -> QueryResult:
        """The best documents, each with its best passage alone. Raises what `query` raises."""
        wanted = 4 * limit
        while True:
            result = await self.query(text, wanted)
            best: dict[str, Hit] = {}
            for hit in result.hits:
                best.setdefault(hit.document_id, hit)
            if len(best) >= limit or len(result.hits) < wanted or wanted >= MOST_SOUGHT:
                hits = [replace(hit, rank=rank) for rank, hit in enumerate(best.values(), 1)]
                return replace(result, hits=hits[:limit])
            wanted *= 4

    async def similarities(self, query: str, texts: Sequence[str]) -> list[float]:
        """How similar each text is to a query by meaning: on the scale of the local embedder's cosines.

        If the model has vectors of single words, the cosine is averaged with the match of the single words.
        Raises EmbedderUnavailable.
        """
        import numpy as np

        await self._open()
        vector = await self._embedder.embed_query(query[:MAX_QUERY_CHARACTERS], self._indexing.word_weights)
        if vector is None or not texts:
            return [0.0] * len(texts)
        embeddings = await self._embedder.embed_documents(texts, [""] * len(texts))
        matrix = np.frombuffer(b"".join(embeddings), "<f2").reshape(len(texts), -1).astype(np.float32)
        similar = self._embedder.scale.to_local(np.vecdot(matrix, vector))
        matches = await self._embedder.word_matches(query, texts, self._indexing.word_weights)
        if matches is not None:
            similar = (1 - MATCH_WEIGHT) * similar + MATCH_WEIGHT * matches
        similarities: list[float] = similar.tolist()
        return similarities

    def _searching(self, notices: list[str]) -> Embedder | None:
        """The embedder of the index; None if it can be searched by words alone."""
        identity = self._indexing.identity
        if identity == self._embedder.identity:
            return self._embedder
        embedder = self._former(identity)
        how = f"with {identity}" if embedder else "by words alone"
        notices.append(
            f"Searched {how}, because the memory is not yet embedded with {self._embedder.identity}."
            " `ragchat memory reembed` completes that."
        )
        return embedder

    async def _embed(
        self, embedder: Embedder | None, text: str, notices: list[str]
    ) -> NDArray[np.float32] | None:
        if embedder is None:
            return None
        try:
            return await embedder.embed_query(text, self._indexing.word_weights)
        except EmbedderUnavailable as error:
            notices.append(f"Searched by words alone. {error} {error.hint}")
            return None

    async def _rerank(self, query: str, hits: list[Hit], first: set[int], notices: list[str]) -> list[Hit]:
        if self._reranker is None or len(hits) < 2:
            return hits
        try:
            return await self._reranker.rerank(query, hits, first)
        except RerankerUnavailable as error:
            notices.append(f"In the order of the search. {error} {error.hint}".rstrip())
            return hits

    # Read

    async def documents(
        self,
        limit: int,
        offset: int = 0,
        filter: dict[str, Any] | None = None,
        order: DocumentOrder = "uri",
        *,
        descending: bool = False,
    ) -> tuple[list[DocumentInfo], int]:
        """A page of the documents that match a filter, and how many match in all. Raises BadArgument."""
        condition = compile_filter(filter or {})
        await self._open()
        return await self._store.documents(limit, offset, condition, order, descending=descending)

    async def document_part(
        self, document: str, lines: tuple[int, int | None], first_chunk: int, size: int
    ) -> DocumentPart:
        """Some lines of a document, by its id or uri: see `stores.parts`.

        Raises DocumentNotFound, BadArgument.
        """
        await self._open()
        return await self._store.document_part(document, lines, first_chunk, size)

    async def document(self, document: str) -> tuple[DocumentInfo, str]:
        """A document by its id or uri, and its text. Raises DocumentNotFound."""
        await self._open()
        info = await self._store.document(document)
        return info, await self._store.text(info.document_id)

    async def documents_named(self, words: str, limit: int) -> list[DocumentInfo]:
        """The documents whose uri or title contains `words`: see `Store.named`."""
        await self._open()
        return await self._store.named(words, limit)

    async def document_ids(self, prefix: str) -> list[str]:
        """The ids that begin with `prefix`, most recently changed first."""
        await self._open()
        return await self._store.document_ids(prefix)

    async def passages_around(self, chunk_id: int, before: int = 0, after: int = 0) -> list[Passage]:
        """A chunk with as many chunks before and after it, in the order of their document.

        Raises ChunkNotFound.
        """
        await self._open()
        found = await self._store.around(chunk_id, before, after)
        if not found:
            raise ChunkNotFound(chunk_id)
        return found

    async def turns_around(self, chunk_ids: Sequence[int], distance: int) -> dict[int, dict[int, str]]:
        """The texts around each of these chunks that is a turn of a conversation.

        They are by chunk id, in the order of the conversation: at most `distance` before and after it. If one
        of them lies on a damaged page, there are none.
        """
        await self._open()
        try:
            return await self._store.turns_around(chunk_ids, distance)
        except MemoryDamaged:
            return {}

    async def document_of(self, chunk_id: int) -> DocumentInfo:
        """The document of a chunk. Raises ChunkNotFound."""
        [passage] = await self.passages_around(chunk_id)
        return await self._store.document(passage.document_id)

    async def journal(self, limit: int, before: int | None = None) -> list[Entry]:
        """The newest entries of the journal, newest first; those before an entry, by its number."""
        await self._open()
        return await self._store.journal(limit, before)

    async def stats(self) -> Stats:
        """Counts and sizes."""
        await self._open()
        return await self._store.stats()

    async def backup(self, path: str, on_progress: backup.OnProgress, *, force: bool = False) -> Backup:
        """Write a consistent copy of the memory to a new file; `force` replaces a memory that is there.

        Raises BackupFailed, NotAMemory.
        """
        target = user_path(path)
        if not is_under(self.roots, target):
            raise BackupFailed(str(target), "it is in none of the folders that memory.roots names")
        await self._open()
        size = await self._store.backup(target, force=force, on_progress=on_progress)
        return Backup(str(target), size, (await self._store.stats()).documents)

    async def export(self, after: int = 0, *, vectors: bool = False) -> ExportPage:
        """A page of the documents with their texts: see `ingest.transfer`."""
        await self._open()
        return await transfer.export_page(self._store, after, vectors=vectors)

    async def import_documents(
        self, documents: Sequence[PortableDocument], origin: Origin
    ) -> list[ImportOutcome]:
        """Store exported documents; the outcomes are in the same order."""
        await self._open()
        return await transfer.import_documents(self._queue.submit, documents, origin)

    async def verify(self, on_progress: verifying.OnProgress) -> Verified:
        """Check the whole file, even if it cannot be opened."""
        return await self._store.verify(on_progress)

    async def repair(self, on_progress: verifying.OnProgress) -> Repaired:
        """Check the file; copy it and repair what follows from the texts. Raises BackupFailed."""
        await self._open()
        repaired = await repair(self._store, self._embedder, on_progress)
        self._indexing.note_write()
        return repaired

    # Reembed

    async def reembed(self, on_progress: OnProgress) -> Reembedded:
        """Recompute all embeddings with the configured embedder.

        Raises EmbedderUnavailable, ReembeddingEnded.
        """
        await self._open()
        async with self._reembedding:
            reembedded = await reembed(self._store, self._embedder, on_progress)
        self._indexing.note_write()
        return reembedded

    async def discard_embeddings(self) -> Stats:
        """Delete the embeddings of a former reembedding, or of one that was not completed."""
        await self._open()
        await self._store.discard_embeddings()
        return await self._store.stats()

    # Versions

    async def versions(self, document: str, limit: int) -> Versions:
        """The newest versions of a document by its id or uri, removed ones too. Raises DocumentNotFound."""
        await self._open()
        return await versions.versions(self._store, document, limit)

    async def version(self, document: str, number: int | None = None) -> VersionText:
        """A version with its text, by default the current one. Raises: see `ingest.versions`."""
        await self._open()
        return await versions.version(self._store, document, number)

    async def difference(
        self, document: str, before: int | None = None, after: int | None = None
    ) -> Difference:
        """What changed from one version of a document to another. Raises: see `ingest.versions`."""
        await self._open()
        return await versions.difference(self._store, document, before, after)

    async def restore(self, document: str, number: int | None, origin: Origin) -> Restored:
        """Make a version of a document the current one again. Raises: see `ingest.versions`."""
        await self._open()
        return await versions.restore(self._store, self._queue.submit, document, number, origin)

    # Remove and undo

    async def forget(self, document: str, origin: Origin) -> Forgotten:
        """Remove a document by its id or uri. Raises DocumentNotFound."""
        await self._open()
        info = await self._store.document(document)
        removed = await self._remove({info.uri: None}, origin)
        if not removed:  # Another process removed it first.
            raise DocumentNotFound(document)
        return removed[0]

    async def forget_all(self, uris: Sequence[str], origin: Origin) -> list[Forgotten]:
        """Remove those of some documents that exist, by uri, a few in each transaction."""
        await self._open()
        removed = []
        for start in range(0, len(uris), _REMOVED_AT_ONCE):
            removed += await self._remove(dict.fromkeys(uris[start : start + _REMOVED_AT_ONCE]), origin)
        return removed

    async def undo(
        self,
        origin: Origin,
        on_progress: undoing.OnProgress | None = None,
        selection: Selection = _LAST_CHANGE,
    ) -> Undone:
        """Undo the last write that is not undone yet, with all writes of its group; or the selected writes.

        An ingestion that still runs is cancelled before its group is undone. Raises: see `undoing.undo`.
        """
        await self._open()
        if selection == _LAST_CHANGE:
            entries, _ = await self._store.change(selection, None)
            if entries and entries[0].origin.group:
                await self._ingestions.cancel_group(entries[0].origin.group)
        submit, remove = self._queue.submit, self._remove
        return await undoing.undo(self._store, submit, remove, selection, origin, on_progress)


async def _make(text: str, metadata: Metadata) -> Document:
    if len(text) <= _SHORT:
        return make_document(text, metadata)
    return await to_thread.run_sync(make_document, text, metadata)
