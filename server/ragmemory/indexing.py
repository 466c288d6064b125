"""Keeps the index in step with the store, whoever writes to it, and saves snapshots of it now and then.

All of the retriever's work is done here, in a thread and one piece at a time.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio import to_thread

from ragmemory.errors import EmbedderMismatch, RagMemoryError
from ragmemory.stores.sqlite import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.queries import ParsedQuery
    from ragmemory.ranking import Scored
    from ragmemory.retriever import Retriever

T = TypeVar("T")

logger = logging.getLogger(__name__)

# Chunks read from the store at a time: a query that comes meanwhile waits for one page only.
_PAGE = 2_000
# A snapshot is written again when it has fallen behind by this share of the index, and by a page at least:
# the work stays proportional to what was added.
_BEHIND = 0.2
# Seconds that writes go first, and seconds for the last writes at the end: a host does not wait for long.
_PATIENCE = 2.0
_FAREWELL = 1.0


class Indexing:
    """`make_retriever` takes the dimensions; `identity` is the embedder that is configured."""

    def __init__(self, store: Store, identity: str, make_retriever: Callable[[int], Retriever]) -> None:
        self._store = store
        self._identity = identity
        self._make_retriever = make_retriever
        self._retriever: Retriever | None = None
        self._version = (0, 0)
        self._unsaved = 0
        self._one_at_a_time = anyio.Lock()
        self._written = anyio.Event()
        self._has_written = False  # a process that only looked around leaves at once

    def note_write(self) -> None:
        """Something was committed: `follow` will take it in."""
        self._has_written = True
        self._written.set()

    async def follow(self, idle: Callable[[], Awaitable[None]]) -> None:
        """Work until cancelled. Whatever is written during one update is taken in by the next.

        `idle` returns when no more writes are on their way: until then they get the processor, if not for too
        long, since a query that comes meanwhile has to catch up.
        """
        while True:
            await self._written.wait()
            with anyio.move_on_after(_PATIENCE):
                await idle()
            self._written = anyio.Event()
            await self._follow_once()

    async def _follow_once(self) -> None:
        try:
            await self.bring_up_to_date()
            await self._save_if_behind()
        except Exception as error:  # the next query meets it again, and tells whom it concerns
            ours = isinstance(error, RagMemoryError)
            logger.warning("The index does not follow: %s", error, exc_info=not ours)

    async def bring_up_to_date(self) -> bool:
        """Take in what was committed until now; False if the memory is empty. Raises EmbedderMismatch."""
        async with self._one_at_a_time:
            version = await self._store.version()
            if version != self._version:
                await self._settle_retriever()
                if self._retriever is not None:
                    await self._sound(self._read_changes, self._retriever)
                    self._written.set()  # whoever wrote it, `follow` may have to save it
                self._version = version
            return self._retriever is not None and len(self._retriever) > 0

    async def _settle_retriever(self) -> None:
        """An index that fits the store as it is now; None while nothing was ever embedded."""
        stored = await self._store.embedder()
        if stored is None:
            self._retriever = None
            return
        identity, dimensions = stored
        if identity != self._identity:
            raise EmbedderMismatch(identity, dimensions, self._identity)
        fingerprint = await self._store.fingerprint()
        if self._retriever is None or self._retriever.fingerprint != fingerprint:
            self._retriever = await to_thread.run_sync(self._open, dimensions, fingerprint)
        if not await self._store.has_passed(self._retriever.mark):
            logger.warning("The memory %s was restored from a copy", self._store.path)
            self._retriever = await to_thread.run_sync(self._open_anew, self._retriever)

    def _open(self, dimensions: int, fingerprint: str) -> Retriever:
        retriever = self._make_retriever(dimensions)
        try:
            retriever.open(fingerprint)
        except Exception:  # numpy raises this and that on damaged files
            logger.warning("The saved index of %s is damaged", self._store.path, exc_info=True)
            return self._open_anew(retriever)
        return retriever

    def _open_anew(self, unfit: Retriever) -> Retriever:
        logger.warning("The index of %s is built anew", self._store.path)
        if unfit.folder is not None:
            shutil.rmtree(unfit.folder, ignore_errors=True)
            if unfit.folder.exists():
                return self._make_retriever(unfit.dimensions)
        return self._open(unfit.dimensions, unfit.fingerprint)

    async def _read_changes(self, retriever: Retriever) -> None:
        while True:
            changes = await self._store.changes_since(retriever.mark, _PAGE)
            if changes.mark == retriever.mark:
                return
            await to_thread.run_sync(retriever.apply, changes)
            self._unsaved += len(changes.chunk_ids) + len(changes.removed)
            if len(changes.chunk_ids) < _PAGE:
                return

    async def _save_if_behind(self) -> None:
        async with self._one_at_a_time:
            if self._retriever and self._unsaved > max(_PAGE, _BEHIND * len(self._retriever)):
                await self._save(self._retriever)

    async def close(self) -> None:
        """Take in the last writes if that is quickly done, and save what is not saved yet."""
        if self._retriever is not None or self._has_written:
            with anyio.move_on_after(_FAREWELL):
                await self._follow_once()
        async with self._one_at_a_time:
            if self._retriever and self._unsaved:
                await self._save(self._retriever)

    async def _save(self, retriever: Retriever) -> None:
        try:
            await to_thread.run_sync(retriever.save)
        except OSError as error:
            logger.warning(
                "The index of %s cannot be saved: %s. It lives in memory only.", self._store.path, error
            )
        self._unsaved = 0

    def weigh(self, words: list[str]) -> list[float]:
        """How much each word tells in this memory; see `Retriever.weigh`."""
        return self._retriever.weigh(words) if self._retriever else [1.0] * len(words)

    async def search(
        self,
        query: ParsedQuery,
        vector: NDArray[np.float32] | None,
        allowed: list[int] | None,
        boosted: set[int],
        top_k: int,
        hidden: Sequence[tuple[int, int]] = (),
    ) -> list[Scored]:
        """The best `top_k` chunks as the index stands, best first; see `Retriever.search`."""
        async with self._one_at_a_time:
            retriever = self._retriever
            if retriever is None:
                return []
            if vector is not None and len(vector) != retriever.dimensions:
                raise EmbedderMismatch(self._identity, retriever.dimensions, self._identity, len(vector))
            search = partial(_search, query, vector, allowed, boosted, top_k, hidden)
            return await self._sound(partial(to_thread.run_sync, search), retriever)

    async def _sound(self, work: Callable[[Retriever], Awaitable[T]], retriever: Retriever) -> T:
        """`work` on the index; if that fails, once more on one built anew: its files may be damaged."""
        try:
            return await work(retriever)
        except RagMemoryError:
            raise
        except Exception:
            logger.warning("The index of %s is damaged", self._store.path, exc_info=True)
            self._retriever = await to_thread.run_sync(self._open_anew, retriever)
        await self._read_changes(self._retriever)
        return await work(self._retriever)


def _search(
    query: ParsedQuery,
    vector: NDArray[np.float32] | None,
    allowed: list[int] | None,
    boosted: set[int],
    top_k: int,
    hidden: Sequence[tuple[int, int]],
    retriever: Retriever,
) -> list[Scored]:
    import numpy as np

    ids = None if allowed is None else np.array(allowed, np.int64)
    return retriever.search(query, vector, ids, boosted, top_k, hidden)
