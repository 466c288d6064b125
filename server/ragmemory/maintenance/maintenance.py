"""The care of the whole memory: each method is one tool of the toolset `maintenance`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from ragcommon.contract.maintenance import Backup, EmbedderModels, Reembedded, Repaired, Stats
from ragconfig.home import user_path
from ragmemory.embedders import Embedder
from ragmemory.errors import BackupFailed, BadArgument, EmbedderUnavailable
from ragmemory.files.roots import is_within
from ragmemory.files.walking import NOT_ALLOWED, why_unreadable
from ragmemory.ingest.writer import Writer
from ragmemory.maintenance import transfer
from ragmemory.maintenance.reembedding import OnProgress, prepare, reembed
from ragmemory.maintenance.repairing import repair
from ragmemory.search.indexing import Indexing
from ragmemory.stores import engine
from ragmemory.stores.store import Store


class Maintenance:
    """`roots`: the folders in which backups may be written."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        indexing: Indexing,
        writer: Writer,
        roots: Sequence[str],
        models: Path,
    ) -> None:
        self.stats = store.stats
        self.verify = store.engine.verify
        self.prepare_embedder = partial(prepare, embedder)
        self.export = partial(transfer.export_page, store)
        self.import_documents = partial(transfer.import_documents, store, writer.queue.submit)
        self._store = store
        self._embedder = embedder
        self._indexing = indexing
        self._roots = roots
        self._models = models
        self._reembedding = anyio.Lock()

    async def repair(self, on_progress: engine.OnProgress) -> Repaired:
        """Check the file; back it up, then repair what derives from the texts. Raises BackupFailed."""
        repaired = await repair(self._store, self._embedder, on_progress)
        self._indexing.note_write()
        return repaired

    async def embedder_models(self) -> EmbedderModels:
        """The models that can embed on this machine. Raises EmbedderUnavailable."""
        from ragmemory.embedders.choices import choices
        from ragmemory.embedders.onnx_files import ModelUnusable

        try:
            return await to_thread.run_sync(choices, self._models)
        except ModelUnusable as error:
            raise EmbedderUnavailable("fastembed", error.reason, error.hint) from error

    async def reembed(self, on_progress: OnProgress, *, switch: bool = True) -> Reembedded:
        """Recompute all embeddings with the configured embedder; without `switch`, they are not used yet.

        Raises EmbedderUnavailable, ReembeddingEnded.
        """
        async with self._reembedding:
            reembedded = await reembed(self._store, self._embedder, on_progress, switch=switch)
        self._indexing.note_write()
        return reembedded

    async def discard_embeddings(self) -> Stats:
        """Delete the previous embeddings, or those of an incomplete reembedding."""
        await self._store.reembedding.discard()
        return await self._store.stats()

    async def backup(self, path: str, on_progress: engine.OnCopied, *, force: bool = False) -> Backup:
        """Write a consistent copy of the memory to a new file; `force` replaces an existing memory.

        Raises BackupFailed, NotAMemory, BadArgument.
        """
        if "\0" in path:
            raise BadArgument("path", "holds a NUL character")
        target = user_path(path)
        try:
            place = target.resolve()
        except (OSError, RuntimeError) as error:
            raise BackupFailed(str(target), f"it {why_unreadable(error)}") from error
        if not is_within(self._roots, place):
            raise BackupFailed(str(target), f"it {NOT_ALLOWED}")
        size = await self._store.engine.backup(place, force=force, on_progress=on_progress)
        return Backup(str(target), size, (await self._store.stats()).documents)
