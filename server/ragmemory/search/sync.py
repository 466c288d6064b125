"""Keeps the index up to date with the store, and its saved form with the index.

Threads work on the index, one at a time; files are written concurrently.
"""

from __future__ import annotations

import logging
import math
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from msgspec.structs import replace

from ragmemory.errors import RagMemoryError
from ragmemory.search.index.errors import DamagedFile, MergeStopped
from ragmemory.search.index.folder import IndexFolder
from ragmemory.search.indexing import BuiltSegment, source_of
from ragmemory.settings import RankingSettings
from ragmemory.stores.store import Store

if TYPE_CHECKING:
    from ragmemory.search.index.chunk_index import ChunkIndex
    from ragmemory.search.index.saving import SavedIndex
    from ragmemory.search.publishing import SharedIndex
    from ragmemory.search.queries import SearchRequest
    from ragmemory.search.ranking import Scored
    from ragmemory.search.retriever import Retriever
    from ragmemory.types.changes import Changes

logger = logging.getLogger(__name__)

# Chunks read from the store at a time: a query that arrives meanwhile waits for at most one page.
_PAGE = 2_000
# Chunks that the index may lag behind before a large write waits for it. This bounds the work left for the
# exit or the next start. Loading 194,000 chunks took 78 s with 1,000, 73 s with 4,000, 60 s with 8,000.
_MAX_BEHIND = 8_000
# Seconds without a change or a search after which segments are merged further: a merge can double the time of
# a concurrent search.
_IDLE_SECONDS = 2.0
# Seconds that updates wait for further writes.
_WRITES_FIRST_SECONDS = 0.5
# Seconds for the last update before the exit: the next start reads the rest.
_LAST_UPDATE_SECONDS = 0.25
# Rows in memory that are written to a file while the program runs: about 20 MB.
FLUSHED_ROWS = 1 << 14
# Segments that stay unmerged during many writes, and when there are none; those of more than half of the
# maximum size do not count. Each costs a query up to 1 ms; with fewer, a chunk is copied more often.
MANY, FEW = 5, 1
# Rows in memory above which reading waits until files are written: more than arrive during a large merge.
_MAX_UNSAVED = 8 * FLUSHED_ROWS
# Segments of batches that are not committed yet: 2 MB each.
_MAX_BUILT = 8
# Seconds after a search in which others are expected: meanwhile the worker that embeds a batch also builds
# its segment, which takes it a third of its time. It would delay a load without searches.
_SEARCHED_SECONDS = 10.0
# Equals no version of a store.
_UNKNOWN = (0, 0)


class IndexSync:
    """`identity` is that of the configured embedder. A writable store's index is saved in `folder`."""

    def __init__(self, store: Store, identity: str, folder: Path, ranking: RankingSettings) -> None:
        self._store = store
        self._configured = identity
        self.identity = identity
        self._folder = IndexFolder(folder)
        self.ranking = ranking
        self._index: ChunkIndex | None = None
        self._saved: SavedIndex  # set together with the first index
        self._version = _UNKNOWN
        self.losses = 0
        self._index_lock = anyio.Lock(fast_acquire=True)  # Every query takes it.
        self._save_lock = anyio.Lock()
        self._written = anyio.Event()
        self._progress = anyio.Event()
        self._changed = anyio.Event()
        # Chunks written by this process, and how many of them the index holds.
        self._noted = 0
        self._indexed = 0
        self._write_debounce: anyio.CancelScope | None = None
        self._idle_wait: anyio.CancelScope | None = None
        self._built: deque[BuiltSegment] = deque(maxlen=_MAX_BUILT)
        self._searched_at = -math.inf
        self._has_written = False  # a process that only reads exits at once
        self._shared: SharedIndex | None = None
        if store.engine.machine and store.engine.is_writable:
            from ragmemory.search.publishing import SharedIndex

            self._shared = SharedIndex(store, self._folder)
        self._is_stopped = Event()
        self._warned = ""

    def check(self) -> None:
        """Raises NotAnIndex if the folder of the index holds something else."""
        self._folder.check()

    def note_write(self, chunks: int = 0) -> None:
        """Note a commit, which `follow` will read."""
        self._has_written = True
        self._noted += chunks
        self._written.set()
        if self._write_debounce is not None and self._is_far_behind:
            self._write_debounce.cancel()

    @property
    def segment_settings(self) -> RankingSettings | None:
        """See `Indexing.segment_settings`."""
        is_searched = anyio.current_time() - self._searched_at < _SEARCHED_SECONDS
        return self.ranking if is_searched else None

    def offer(self, built: BuiltSegment) -> None:
        """See `Indexing.offer`."""
        self._built.append(built)

    def note_change(self) -> None:
        """Note that there may be commits of other processes, which `follow` will read."""
        self._written.set()

    @property
    def _is_far_behind(self) -> bool:
        return self._noted - self._indexed > _MAX_BEHIND

    async def keep_up(self) -> None:
        """Return when the index does not lag far behind the writes of this process."""
        while self._is_far_behind:
            await self._progress.wait()

    async def follow(self, idle: Callable[[], Awaitable[None]]) -> None:
        """Apply writes to the index, until cancelled.

        `idle` returns when no writes are in progress. The wait is short: a query that arrives meanwhile has
        to catch up.
        """
        while True:
            await self._written.wait()
            if not (self._is_far_behind or self._built):
                with anyio.move_on_after(_WRITES_FIRST_SECONDS) as self._write_debounce:
                    await idle()
            self._written = anyio.Event()
            noted = self._noted
            await self._log_errors(self.bring_up_to_date)
            self._note_indexed(noted)  # Also after an error: writes do not wait for a broken index.
            await self._log_errors(self._merge)

    async def maintain(self) -> None:
        """Save new segments and merge small ones, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            with anyio.move_on_after(_IDLE_SECONDS) as self._idle_wait:
                await self._changed.wait()
            if self._idle_wait.cancelled_caught:
                await self._save(_PAGE, sys.maxsize, FEW)
                if self._shared:
                    await self._log_errors(self._shared.publish)
            else:
                await self._save(FLUSHED_ROWS, sys.maxsize, MANY)

    def _note_indexed(self, chunks: int) -> None:
        """Note how many of the chunks noted by `note_write` the index holds."""
        self._indexed = max(self._indexed, min(chunks, self._noted))
        self._progress.set()
        self._progress = anyio.Event()

    async def _log_errors(self, work: Callable[[], Awaitable[object]]) -> None:
        try:
            await work()
        except Exception as error:  # The next query raises it again.
            ours = isinstance(error, RagMemoryError)
            logger.warning("The index could not be updated: %s", error, exc_info=not ours)

    # Read from the store

    async def bring_up_to_date(self) -> bool:
        """Apply what was committed until now; False if the memory is empty. Raises EmbedderMismatch."""
        is_current = False
        while not is_current:
            async with self._index_lock:
                try:
                    is_current = await self._read_page()
                except DamagedFile as error:
                    self._drop_damaged(error)
            if self._index and self._index.unsaved > _MAX_UNSAVED:
                await self._save(FLUSHED_ROWS, FLUSHED_ROWS, MANY)
        return self._index is not None and len(self._index) > 0

    async def _read_page(self) -> bool:
        """Apply one page of changes; True if there are no more."""
        version = await self._store.engine.version()
        if version == self._version:
            return True
        self._changed.set()
        index = await self._index_of_store()
        if index is None:
            self._version = version
            return True
        gap = next(index.gaps(), None)
        if gap:
            await self._fill(index, *gap)
            return False
        built = self._built[0] if self._built else None
        # One more chunk tells whether there are more.
        limit = len(built.segment) + 1 if built else _PAGE
        changes = await self._store.changes.since(index.checkpoint, limit)
        if self._is_switched(changes):
            return False
        is_whole = len(changes.chunk_ids) < limit
        if built and not is_whole:
            changes = changes.first(limit - 1)
        segment = None
        if built and changes.chunk_ids:
            segment = await to_thread.run_sync(built.segment_of, changes)
            if segment is None:  # Its batch was not committed, or not next: neither may those after it be.
                self._built.clear()
        if changes.checkpoint != index.checkpoint or changes.hidden != index.hidden:
            await to_thread.run_sync(index.apply, changes, segment)
        if segment and self._built and self._built[0] is built:
            self._built.popleft()
        self._note_indexed(self._indexed + len(changes.chunk_ids))
        if is_whole:
            self._version = version
        return is_whole

    async def _fill(self, index: ChunkIndex, after: int, upto: int) -> None:
        """Read one page of what a lost file held."""
        changes = await self._store.changes.since(replace(index.checkpoint, chunk_id=after), _PAGE, upto)
        if self._is_switched(changes):
            return
        end = changes.checkpoint.chunk_id if len(changes.chunk_ids) == _PAGE else upto
        await to_thread.run_sync(index.fill, after, end, changes)

    def _is_switched(self, changes: Changes) -> bool:
        """Whether the store has switched embeddings since the index was created: they are never mixed."""
        return changes.fingerprint != self._saved.fingerprint

    async def _index_of_store(self) -> ChunkIndex | None:
        """The index of the current store; None while it has no embeddings."""
        fingerprint, embedder = await source_of(self._store, self._configured)
        if embedder is None:
            self._index = None
            return None
        identity, dimensions = embedder
        if self._index and not await self._store.changes.has_passed(self._index.checkpoint):
            place = self._store.engine.place
            logger.warning("The memory %s was restored from a copy; its index is rebuilt.", place)
            self._index = None
        if self._index is None or self._saved.fingerprint != fingerprint:
            from ragmemory.search.index.chunk_index import ChunkIndex
            from ragmemory.search.index.saving import SavedIndex

            self._index, self.identity = ChunkIndex(dimensions, self.ranking), identity
            self._saved = SavedIndex(self._folder, fingerprint)
            self._note_loss()
            if self._shared:
                await self._log_errors(partial(self._shared.fetch, fingerprint))
        if not self._saved.is_current:
            await self._adopt(self._index)
        return self._index

    async def _adopt(self, index: ChunkIndex) -> None:
        """Continue from the saved index, if the store has passed its checkpoint."""
        saved = await to_thread.run_sync(self._saved.read, index.segments)
        if await self._store.changes.has_passed(saved.checkpoint):
            before = index.checkpoint
            await to_thread.run_sync(index.adopt, saved.checkpoint, saved.segments, saved.removed)
            now = index.checkpoint
            if now.chunk_id < before.chunk_id or now.removal < before.removal or any(index.gaps()):
                self._note_loss()

    def _note_loss(self) -> None:
        self.losses += 1
        self._version = _UNKNOWN
        self._written.set()

    async def repair(self, error: DamagedFile) -> None:
        """Rebuild from the store what a damaged file held."""
        async with self._index_lock:
            self._drop_damaged(error)
        await self.bring_up_to_date()

    def _drop_damaged(self, error: DamagedFile) -> None:
        """Stop using a damaged file; the next update reads its chunks from the store."""
        while self._index is not None:
            self._saved.set_aside(error.path, error)
            try:
                self._index.drop(error.path)
                break
            except DamagedFile as another:
                error = another
        self._note_loss()

    async def _merge(self) -> None:
        """Merge small segments in memory. Queries go on meanwhile: none of them pays for it."""
        from ragmemory.search.index.segments import Segment

        while (index := self._index) is not None and (run := index.mergeable()):
            merged = await to_thread.run_sync(Segment.merge, run, [None] * len(run))
            async with self._index_lock:
                await to_thread.run_sync(index.replace, run, merged)

    # Save

    async def _save(
        self, min_unsaved: int, max_rows: int, max_segments: int, *, at_the_end: bool = False
    ) -> None:
        """Write and merge files while any are due (see `next_merge`), unless another process does."""
        async with self._save_lock:
            # A reader must not leave files that the memory's owner may not write.
            if self._index is None or not self._store.engine.is_writable:
                return
            try:
                with self._folder.locked() as is_ours:
                    is_due = is_ours
                    while is_due:
                        is_due = await self._write_next(min_unsaved, max_rows, max_segments)
                        if is_due or at_the_end:
                            await self._commit()
            except MergeStopped:
                return
            except Exception as error:  # Searches do not need the files.
                if self._warned != str(error):  # Log it once, not at every attempt.
                    ours = isinstance(error, (OSError, RagMemoryError))
                    logger.warning("The index is kept in memory only: %s", error, exc_info=not ours)
                self._warned = str(error)

    async def _write_next(self, min_unsaved: int, max_rows: int, max_segments: int) -> bool:
        """Write one file if one is due. Raises OSError, MergeStopped."""
        from ragmemory.search.index.saving import next_merge

        async with self._index_lock:
            saved, index = self._saved, self._index
            if index is None:
                return False
            if not saved.is_current:
                await self._adopt(index)
            saved.sweep(index)
            merge = await to_thread.run_sync(next_merge, index, min_unsaved, max_rows, max_segments)
        segments, _ = merge
        if not segments:
            return False
        write = partial(saved.write, merge, self._is_stopped.is_set)
        try:
            merged = await to_thread.run_sync(write)
        except DamagedFile as error:
            async with self._index_lock:
                self._drop_damaged(error)
        else:
            # Also while the program exits: `close` lists the new file.
            with anyio.CancelScope(shield=True):
                async with self._index_lock:
                    await to_thread.run_sync(index.replace, segments, merged)
        return True

    async def _commit(self) -> None:
        """Make the current files the saved index. Raises OSError."""
        async with self._index_lock:
            if self._index is None:
                return
            saved, description = self._saved, self._saved.describe(self._index)
        await to_thread.run_sync(saved.commit, *description)

    def stop(self) -> None:
        """Stop a merge in progress. Call it before the tasks are cancelled."""
        self._is_stopped.set()

    async def close(self) -> None:
        """Apply the last writes if that is quick, and save what is not saved yet."""
        if self._index is not None or self._has_written:
            with anyio.move_on_after(_LAST_UPDATE_SECONDS):
                await self._log_errors(self.bring_up_to_date)
            self._is_stopped.clear()
            # No large merges: a host does not wait long.
            await self._save(1, FLUSHED_ROWS, MANY, at_the_end=True)

    # Search: see `indexing.Searcher`.

    @property
    def retriever(self) -> Retriever:
        """See `Searcher.retriever`."""
        from ragmemory.search.index.chunk_index import ChunkIndex
        from ragmemory.search.retriever import Retriever

        return Retriever(ChunkIndex(0, self.ranking) if self._index is None else self._index)

    async def searcher(self, text: str) -> IndexSync:  # noqa: ARG002
        """The same for every text."""
        return self

    async def corrections(self, words: list[str], pieces: Callable[[str], int]) -> dict[str, list[str]]:
        """Corrections of misspelt words; see `Retriever.corrections`."""
        return self.retriever.corrections(words, pieces)

    async def search(self, request: SearchRequest, notices: list[str]) -> list[Scored]:  # noqa: ARG002
        """See `Searcher.search`."""
        import numpy as np

        from ragmemory.search.index.vectors import ALL_EXACT

        allowed = None
        if request.filter:
            allowed = np.array(await self._store.passages.allowed(request.filter), np.int64)
        self._searched_at = anyio.current_time()
        if self._idle_wait is not None:
            self._idle_wait.deadline = self._searched_at + _IDLE_SECONDS
        async with self._index_lock:
            if self._index is None:
                return []
            request = request.for_index(self.identity, self._index.dimensions)
            search = partial(self.retriever.search, request, allowed)
            # A small index takes less than 2 ms: a thread would add a tenth to a query.
            is_short = len(self._index.rows) <= ALL_EXACT
            return search() if is_short else await to_thread.run_sync(search)
