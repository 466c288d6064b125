"""The store: documents, chunks, embeddings, full text and journal, in one of the engines.

Operations on the whole memory are here; each table has its own part. Every method is one
transaction or one read. Scores and ranks are computed elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ragcommon.contract.documents import Forgotten
from ragcommon.contract.history import Origin
from ragcommon.contract.maintenance import Stats
from ragmemory.stores import meta, reuse, writing
from ragmemory.stores.changes import ChangeStore
from ragmemory.stores.code import CodeStore
from ragmemory.stores.documents import DocumentStore
from ragmemory.stores.embeddings import EmbeddingStore
from ragmemory.stores.engine import Engine
from ragmemory.stores.hidden import HiddenStore
from ragmemory.stores.ingestions import IngestionStore
from ragmemory.stores.journal import JournalStore
from ragmemory.stores.outlines import OutlineStore
from ragmemory.stores.passages import PassageStore
from ragmemory.stores.reembedding import ReembeddingStore
from ragmemory.stores.repairing import RepairStore
from ragmemory.stores.sources import SourceStore
from ragmemory.stores.versions import VersionStore
from ragmemory.types.writes import Embedding, Write


class Store:
    """The store and its parts raise what an `Engine` raises."""

    def __init__(self, engine: Engine, undo_depth: int) -> None:
        self.engine = engine
        self._undo_depth = undo_depth
        self.documents = DocumentStore(engine)
        self.passages = PassageStore(engine)
        self.embeddings = EmbeddingStore(engine)
        self.hidden = HiddenStore(engine)
        self.journal = JournalStore(engine)
        self.versions = VersionStore(engine)
        self.outlines = OutlineStore(engine)
        self.code = CodeStore(engine)
        self.ingestions = IngestionStore(engine)
        self.sources = SourceStore(engine)
        self.changes = ChangeStore(engine)
        self.reembedding = ReembeddingStore(engine)
        self.repairs = RepairStore(engine)

    @property
    def path(self) -> Path:
        """See `Engine.path`."""
        return self.engine.path

    async def write(self, writes: Sequence[Write], embedder: tuple[str, int] | None) -> list[writing.Outcome]:
        """Write documents with different uris in one transaction; on return they are on the disk.

        `embedder` is the identity and dimensions of the embeddings, None if there are none. An outcome is
        None if the write has no chunks but needs them, an error if this write alone failed: UndoConflict,
        EmbedderMismatch, NotStored.
        """
        at = datetime.now(UTC)
        async with self.engine.transaction() as connection:
            batch = writing.Writing(connection, at, self._undo_depth)
            await connection.execute("SAVEPOINT batch")
            try:
                return await batch.write_batch(writes, embedder)
            except Exception as error:
                if self.engine.concerns_all(error):
                    raise
            # One write failed: repeat the others without it.
            await connection.execute("ROLLBACK TO batch")
            return await batch.write_each(writes, embedder, self.engine)

    async def remove(
        self, removals: Mapping[str, int | None], origin: Origin, machine: str | None = None
    ) -> list[Forgotten]:
        """Delete those of some documents that exist: by uri, the entry that this undoes.

        With `machine`, those that it has loaded. Raises UndoConflict; then nothing is deleted.
        """
        async with self.engine.transaction() as connection:
            batch = writing.Writing(connection, datetime.now(UTC), self._undo_depth)
            return await batch.remove(removals, origin, machine)

    async def find(self, uris: Sequence[str]) -> dict[str, writing.StoredDocument]:
        """The documents stored under these uris."""
        async with self.engine.reading() as connection:
            return await writing.find(connection, uris)

    async def embeddings_of(self, inputs: Sequence[bytes]) -> dict[bytes, Embedding]:
        """The stored embeddings by the digests of their inputs."""
        async with self.engine.reading() as connection:
            return await reuse.find(connection, inputs)

    async def embedder(self) -> tuple[str, int] | None:
        """Identity and dimensions of the embedder of this memory; None before the first embedding."""
        async with self.engine.reading() as connection:
            return await meta.embedder(connection)

    async def embedders(self) -> dict[str, int]:
        """That embedder, and its replacement during a reembedding: see `meta.embedders`."""
        async with self.engine.reading() as connection:
            return meta.embedders(await meta.values(connection))

    async def stats(self) -> Stats:
        """Counts and sizes."""
        [(documents, chunks, characters)] = await self.engine.read(
            "SELECT count(*), CAST(coalesce(sum(chunks), 0) AS BIGINT),"
            " CAST(coalesce(sum(characters), 0) AS BIGINT) FROM documents"
            " WHERE hidden = 0"
        )
        size = await self.engine.size()
        async with self.engine.reading() as connection:
            values = await meta.values(connection)
        return Stats(
            path=self.engine.place,
            documents=documents,
            chunks=chunks,
            characters=characters,
            bytes=size,
            embedder=values.get("embedder", ""),
            dimensions=int(values.get("dimensions", "0")),
            next_embedder=values.get("next_embedder", ""),
            kept_embedder=values.get("kept_embedder", ""),
            kept_bytes=int(values.get("kept_bytes", "0")),
        )
