"""The memory service: one part for each feature. Knows no MCP.

Files and models are opened when a feature first needs them; `warm_up` opens them ahead of time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio

from ragcommon.contract.history import Action
from ragmemory.blocks.editor import BlockEditor
from ragmemory.code.service import CodeMemory
from ragmemory.embedders import Embedder
from ragmemory.files.ingestions import Ingestions
from ragmemory.files.ocr import Ocr
from ragmemory.files.sources import Sources
from ragmemory.follower import Follower
from ragmemory.history.history import History
from ragmemory.ingest.writer import Writer
from ragmemory.maintenance.maintenance import Maintenance
from ragmemory.search.mapping import DocumentMap
from ragmemory.search.searching import Search
from ragmemory.stores.store import Store

if TYPE_CHECKING:
    from ragmemory.search.indexing import Indexing
    from ragmemory.search.reranking import Reranker
    from ragmemory.web.fetching import Web


class MemoryService:
    """An async context manager. Every part raises RagMemoryErrors; any other exception is a bug."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        indexing: Indexing,
        max_tokens: int,
        reranker: Reranker | None,
        roots: Sequence[str],
        repository: Path | None,
        previous_embedder: Callable[[str], Embedder | None],
        models: Path,
        ocr: Ocr,
    ) -> None:
        """`roots`: the folders in which files may be read, and written by edits and backups; `repository`:
        the root of the git repository whose memory this is.

        `previous_embedder` makes the embedder with an identity, if possible: it embeds queries during a
        reembedding. `models` is the folder of downloaded models.
        """
        self.roots = roots
        self.web: Web | None = None
        """Loads web pages. Only for a process of the user's own commands; set before the start."""
        self.repository = repository
        self.on_change: Callable[[str, Action, bool], None] = lambda *_: None
        """Called with the id of every document that a process adds, updates or removes while
        `follower.is_wanted`, and whether it is this process."""
        self.on_block_change: Callable[[str, Sequence[str]], None] = lambda _, __: None
        """Called with the ids of the blocks that this process changes or removes, if they were ever shown."""
        self._store = store
        self.engine = store.engine
        self._embedder = embedder
        self.indexing = indexing
        self._ocr = ocr
        self.follower = Follower(store, indexing, lambda *change: self.on_change(*change))
        store.engine.on_opening, store.engine.on_open = self._prepare, self._wake
        store.engine.on_commit = self.follower.note_commit
        self.search = Search(store, embedder, indexing, reranker, previous_embedder)
        self.writer = Writer(
            store,
            embedder,
            indexing,
            max_tokens,
            self.follower.note_written,
            self._note_blocks,
        )
        self.documents = store.documents
        self.passages = store.passages
        self.map = DocumentMap(store)
        self.history = History(store, self.writer, lambda group: self.ingestions.cancel_group(group))
        self.maintenance = Maintenance(store, embedder, indexing, self.writer, roots, models)
        self.code = CodeMemory(store)
        self.block_editor = BlockEditor(
            store,
            self.search.query,
            self.writer.queue.submit,
            roots,
            lambda *change: self.on_block_change(*change),
        )

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self.ingestions = Ingestions(
            self._store, self.writer, self.roots, self._tasks, web=self.web, ocr=self._ocr
        )
        self.sources = Sources(self._store, self.writer, self.ingestions)
        self._tasks.start_soon(self.writer.queue.run)
        self._tasks.start_soon(self.writer.sweeper.run)
        self._tasks.start_soon(self.indexing.follow, self.writer.queue.idle)
        self._tasks.start_soon(self.indexing.maintain)
        self._tasks.start_soon(self.ingestions.run)
        self._tasks.start_soon(self.follower.run)
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        self.indexing.stop()
        self._tasks.cancel_scope.cancel()
        try:
            # An error of the body must not be wrapped in an exception group.
            if isinstance(error[1], (Exception, KeyboardInterrupt, SystemExit)):
                await self._tasks.__aexit__(None, None, None)
                return False
            return await self._tasks.__aexit__(*error)
        finally:
            with anyio.CancelScope(shield=True):
                await self._close()

    async def _close(self) -> None:
        # The file is closed whatever fails: its threads would keep the program from exiting.
        async with AsyncExitStack() as closing:
            closing.push_async_callback(self._store.engine.close)
            closing.push_async_callback(self.indexing.close)
            closing.push_async_callback(self._embedder.aclose)

    def _prepare(self) -> None:
        self.indexing.check()
        self._tasks.start_soon(self.search.load_embedder)

    async def _wake(self) -> None:
        await self.follower.begin()
        if self._store.engine.is_writable:
            self.writer.sweeper.wake()
            self.ingestions.wake()

    async def check(self) -> None:
        """Read from the memory."""
        await self._store.journal.last_number()

    async def warm_up(self) -> None:
        """Open and load what the first query needs; the model is loaded a little later."""
        await self.indexing.bring_up_to_date()

    def _note_blocks(self, document_ids: Sequence[str]) -> None:
        if document_ids:
            self._tasks.start_soon(self.block_editor.note_changes, document_ids)
