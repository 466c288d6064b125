"""Keeps the index in step with the store, and its saved form in step with the index.

The work on the index is done in threads, one piece at a time; files are written beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from msgspec.structs import replace

from ragmemory.errors import EmbedderMismatch, RagMemoryError
from ragmemory.search.index.chunk_index import ChunkIndex
from ragmemory.search.index.columns import DamagedFile
from ragmemory.search.index.folder import IndexFolder
from ragmemory.search.index.postings import MOST_ROWS
from ragmemory.search.index.saving import FEW, FLUSHED_ROWS, MANY, SavedIndex, next_merge
from ragmemory.search.index.segments import MergeStopped
from ragmemory.search.ranking import RankingSettings, Scored
from ragmemory.search.retriever import Retriever
from ragmemory.stores.sqlite import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.search.queries import ParsedQuery

logger = logging.getLogger(__name__)

# Chunks read from the store at a time: a query that comes meanwhile waits for one page only.
_PAGE = 2_000
# Chunks by which the index may be behind before a large write waits for it: what is left to read at the next
# start must not take longer than that.
_MOST_BEHIND = 2_500
# Seconds without a change after which segments are merged further.
_QUIET = 2.0
# Seconds that writes go first, and seconds for the last changes at the end: the next start reads the rest.
_PATIENCE = 0.5
_FAREWELL = 0.25
# Rows in memory at which reading from the store waits for the files: more than come during a large merge.
_MOST_UNSAVED = 8 * FLUSHED_ROWS
# What differs from every version of a store.
_UNKNOWN = (0, 0)


class Indexing:
    """`identity` is the configured embedder; the index is saved in `folder`, unless `read_only`."""

    def __init__(
        self, store: Store, identity: str, folder: Path, ranking: RankingSettings, *, read_only: bool = False
    ) -> None:
        self._store = store
        self._identity = identity
        self._folder = IndexFolder(folder)
        self._ranking = ranking
        self._read_only = read_only
        self._index: ChunkIndex | None = None
        self._saved = SavedIndex(self._folder, "")
        self._version = _UNKNOWN
        self._one_at_a_time = anyio.Lock()
        self._saving = anyio.Lock()
        self._written = anyio.Event()
        self._progress = anyio.Event()
        self._changed = anyio.Event()
        self._behind = 0  # chunks that this process has written since the index was last up to date
        self._has_written = False  # a process that only reads leaves at once
        self._is_stopped = Event()
        self._warned = ""

    def check(self) -> None:
        """Raises NotAnIndex where something else lies in the index's place."""
        self._folder.check()

    def note_write(self, chunks: int = 0) -> None:
        """Something was committed: `follow` will take it in."""
        self._has_written = True
        self._behind += chunks
        self._written.set()

    async def keep_up(self) -> None:
        """Returns when the index is not far behind what this process has written."""
        while self._behind > _MOST_BEHIND:
            await self._progress.wait()

    async def follow(self, idle: Callable[[], Awaitable[None]]) -> None:
        """Take in what is written, until cancelled.

        `idle` returns when no more writes are on their way: until then they get the processor, if not for too
        long, since a query that comes meanwhile has to catch up.
        """
        while True:
            await self._written.wait()
            if self._behind < _PAGE:
                with anyio.move_on_after(_PATIENCE):
                    await idle()
            self._written = anyio.Event()
            await self._log_errors(self.bring_up_to_date)
            self._note_progress(self._behind)

    async def maintain(self) -> None:
        """Save what has grown and merge what is small, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            with anyio.move_on_after(_QUIET) as quiet:
                await self._changed.wait()
            if quiet.cancelled_caught:
                await self._save(_PAGE, MOST_ROWS, FEW)
            else:
                await self._save(FLUSHED_ROWS, MOST_ROWS, MANY)

    def _note_progress(self, chunks: int) -> None:
        self._behind = max(0, self._behind - chunks)
        self._progress.set()
        self._progress = anyio.Event()

    async def _log_errors(self, work: Callable[[], Awaitable[object]]) -> None:
        try:
            await work()
        except Exception as error:  # the next query meets it again, and answers with it
            ours = isinstance(error, RagMemoryError)
            logger.warning("The index does not follow: %s", error, exc_info=not ours)

    # Reading from the store

    async def bring_up_to_date(self) -> bool:
        """Take in what was committed until now; False if the memory is empty. Raises EmbedderMismatch."""
        is_current = False
        while not is_current:
            async with self._one_at_a_time:
                try:
                    is_current = await self._read_page()
                except DamagedFile as error:
                    self._drop(error)
            if self._index and self._index.unsaved > _MOST_UNSAVED:
                await self._save(FLUSHED_ROWS, FLUSHED_ROWS, MANY)
        return self._index is not None and len(self._index) > 0

    async def _read_page(self) -> bool:
        """Take in one page of changes; True if there are no more."""
        version = await self._store.version()
        if version == self._version:
            return True
        self._changed.set()
        index = await self._fitting_index()
        if index is None:
            self._version = version
            return True
        gap = next(index.gaps(), None)
        if gap:
            await self._fill(index, *gap)
            return False
        changes = await self._store.changes_since(index.mark, _PAGE)
        if changes.mark != index.mark:
            await to_thread.run_sync(index.apply, changes)
        self._note_progress(len(changes.chunk_ids))
        is_whole = len(changes.chunk_ids) < _PAGE
        if is_whole:
            hidden = await self._store.hidden_chunks()
            if hidden != index.hidden:
                await to_thread.run_sync(index.hide, hidden)
            self._version = version
        return is_whole

    async def _fill(self, index: ChunkIndex, after: int, upto: int) -> None:
        """Take in one page of what a lost file held."""
        changes = await self._store.changes_since(replace(index.mark, chunk_id=after), _PAGE, upto)
        end = changes.mark.chunk_id if len(changes.chunk_ids) == _PAGE else upto
        await to_thread.run_sync(index.fill, after, end, changes)

    async def _fitting_index(self) -> ChunkIndex | None:
        """An index of the store as it is now; None while nothing was ever embedded."""
        stored = await self._store.embedder()
        if stored is None:
            self._index = None
            return None
        identity, dimensions = stored
        if identity != self._identity:
            raise EmbedderMismatch(identity, dimensions, self._identity)
        fingerprint = await self._store.fingerprint()
        if self._index and not await self._store.has_passed(self._index.mark):
            logger.warning("The memory %s was restored from a copy; its index is rebuilt.", self._store.path)
            self._index = None
        if self._index is None or self._saved.fingerprint != fingerprint:
            self._index = ChunkIndex(dimensions, self._ranking)
            self._saved = SavedIndex(self._folder, fingerprint)
        if not self._saved.is_current:
            await self._adopt(self._index)
        return self._index

    async def _adopt(self, index: ChunkIndex) -> None:
        """Go on from what was saved, by this process or another, if this store has come that way."""
        saved = await to_thread.run_sync(self._saved.read, index.segments)
        if await self._store.has_passed(saved.mark):
            await to_thread.run_sync(index.adopt, saved.mark, saved.segments, saved.removed)

    def _drop(self, error: DamagedFile) -> None:
        """Leave a damaged file alone; what it held is read from the store next."""
        damaged: DamagedFile | None = error
        while damaged is not None and self._index is not None:
            self._saved.set_aside(damaged.path, damaged)
            try:
                self._index.drop(damaged.path)
                damaged = None
            except DamagedFile as another:
                damaged = another
        self._version = _UNKNOWN
        self._written.set()

    # Saving

    async def _save(
        self, least_unsaved: int, most_rows: int, most_segments: int, *, at_the_end: bool = False
    ) -> None:
        """Write and merge files while something is due (see `next_merge`), if no other process does so."""
        async with self._saving:
            if self._index is None or self._read_only:
                return
            try:
                with self._folder.locked() as is_ours:
                    is_due = is_ours
                    while is_due:
                        is_due = await self._write_next(least_unsaved, most_rows, most_segments)
                        if is_due or at_the_end:
                            await self._commit()
            except MergeStopped:
                return
            except Exception as error:  # searches do not need what is saved
                if self._warned != str(error):  # each time would fill the log
                    ours = isinstance(error, (OSError, RagMemoryError))
                    logger.warning("The index is kept in memory only: %s", error, exc_info=not ours)
                self._warned = str(error)

    async def _write_next(self, least_unsaved: int, most_rows: int, most_segments: int) -> bool:
        """Write one file, if one is due. Raises OSError, MergeStopped."""
        async with self._one_at_a_time:
            saved, index = self._saved, self._index
            if index is None:
                return False
            if not saved.is_current:
                await self._adopt(index)
            merge = await to_thread.run_sync(next_merge, index, least_unsaved, most_rows, most_segments)
        segments, _ = merge
        if not segments:
            return False
        write = partial(saved.write, index, merge, self._is_stopped.is_set)
        try:
            merged = await to_thread.run_sync(write)
        except DamagedFile as error:
            async with self._one_at_a_time:
                self._drop(error)
        else:
            async with self._one_at_a_time:
                await to_thread.run_sync(index.replace, segments, merged)
        return True

    async def _commit(self) -> None:
        """Make the files that are there now the saved index. Raises OSError."""
        async with self._one_at_a_time:
            if self._index is None:
                return
            saved, description = self._saved, self._saved.describe(self._index)
        await to_thread.run_sync(saved.commit, *description)

    def stop(self) -> None:
        """End a merge that is under way; to be called before the tasks are cancelled."""
        self._is_stopped.set()

    async def close(self) -> None:
        """Take in the last writes if that is quickly done, and save what is not saved yet."""
        if self._index is not None or self._has_written:
            with anyio.move_on_after(_FAREWELL):
                await self._log_errors(self.bring_up_to_date)
            self._is_stopped.clear()
            # No large merges: a host does not wait for long.
            await self._save(1, FLUSHED_ROWS, MANY, at_the_end=True)

    # Searching

    def weigh(self, words: list[str]) -> list[float]:
        """How much each word tells in this memory; see `Retriever.weigh`."""
        try:
            return Retriever(self._index).weigh(words) if self._index else [1.0] * len(words)
        except DamagedFile:  # the search that follows meets it, too
            return [1.0] * len(words)

    async def search(
        self,
        query: ParsedQuery,
        vector: NDArray[np.float32] | None,
        allowed: list[int] | None,
        boosted: set[int],
        top_k: int,
    ) -> list[Scored]:
        """The best `top_k` chunks as the index stands, best first; see `Retriever.search`."""
        while True:
            async with self._one_at_a_time:
                if self._index is None:
                    return []
                dimensions = self._index.dimensions
                if vector is not None and len(vector) != dimensions:
                    raise EmbedderMismatch(self._identity, dimensions, self._identity, len(vector))
                search = partial(_search, Retriever(self._index), query, vector, allowed, boosted, top_k)
                try:
                    return await to_thread.run_sync(search)
                except DamagedFile as error:
                    self._drop(error)
            await self.bring_up_to_date()


def _search(
    retriever: Retriever,
    query: ParsedQuery,
    vector: NDArray[np.float32] | None,
    allowed: list[int] | None,
    boosted: set[int],
    top_k: int,
) -> list[Scored]:
    import numpy as np

    ids = None if allowed is None else np.array(allowed, np.int64)
    return retriever.search(query, vector, ids, boosted, top_k)
