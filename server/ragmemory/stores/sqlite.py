"""The store: one SQLite file with documents, chunks, embeddings, full text and journal.

Operations on the whole memory are here; each table has its own part. Every method is one
transaction or one read. Scores and ranks are computed elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ragcommon.contract.documents import Forgotten
from ragcommon.contract.history import Origin
from ragcommon.contract.maintenance import Stats, Verified
from ragmemory.stores import backup, meta, reuse, verifying, writing
from ragmemory.stores.changes import ChangeStore
from ragmemory.stores.code import CodeStore
from ragmemory.stores.documents import DocumentStore
from ragmemory.stores.file import MemoryFile
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


class Store(MemoryFile):
    """The store and its parts raise what `MemoryFile` raises."""

    def __init__(
        self,
        path: Path,
        busy_seconds: float,
        undo_depth: int,
        *,
        read_only: bool = False,
        make: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(path, busy_seconds, read_only=read_only, make=make)
        self._undo_depth = undo_depth
        self.documents = DocumentStore(self)
        self.passages = PassageStore(self)
        self.hidden = HiddenStore(self)
        self.journal = JournalStore(self)
        self.versions = VersionStore(self)
        self.outlines = OutlineStore(self)
        self.code = CodeStore(self)
        self.ingestions = IngestionStore(self)
        self.sources = SourceStore(self)
        self.changes = ChangeStore(self)
        self.reembedding = ReembeddingStore(self)
        self.repairs = RepairStore(self)

    async def write(self, writes: Sequence[Write], embedder: tuple[str, int] | None) -> list[writing.Outcome]:
        """Write documents with different uris in one transaction; on return they are on the disk.

        `embedder` is the identity and dimensions of the embeddings, None if there are none. An outcome is
        None if the write has no chunks but needs them, an error if this write alone failed: UndoConflict,
        EmbedderMismatch, NotStored.
        """
        arguments = writes, embedder, datetime.now(UTC), self._undo_depth
        async with self.transaction() as connection:
            try:
                return await writing.write_batch(connection, *arguments)
            except Exception as error:
                if writing.concerns_the_file(error):
                    raise
            # One write failed: repeat the others without it.
            await connection.execute("ROLLBACK")
            await connection.execute("BEGIN IMMEDIATE")
            return await writing.write_each(connection, *arguments, self.path)

    async def remove(self, removals: Mapping[str, int | None], origin: Origin) -> list[Forgotten]:
        """Delete those of some documents that exist: by uri, the entry that this undoes.

        Raises UndoConflict; then nothing is deleted.
        """
        async with self.transaction() as connection:
            return await writing.remove(connection, removals, origin, datetime.now(UTC), self._undo_depth)

    async def find(self, uris: Sequence[str]) -> dict[str, writing.StoredDocument]:
        """The documents stored under these uris."""
        async with self.reading() as connection:
            return await writing.find(connection, uris)

    async def embedded(self, uris: Sequence[str]) -> list[reuse.Embedded]:
        """The embedded chunks of some documents, with the embeddings."""
        async with self.reading() as connection:
            return await reuse.embedded(connection, uris)

    async def embeddings_of(self, inputs: Sequence[bytes]) -> dict[bytes, Embedding]:
        """The stored embeddings by the digests of their inputs."""
        async with self.reading() as connection:
            return await reuse.find(connection, inputs)

    async def embedder(self) -> tuple[str, int] | None:
        """Identity and dimensions of the embedder of this memory; None before the first embedding."""
        async with self.reading() as connection:
            return await meta.embedder(connection)

    async def embedders(self) -> dict[str, int]:
        """That embedder, and its replacement during a reembedding: see `meta.embedders`."""
        async with self.reading() as connection:
            return await meta.embedders(connection)

    async def stats(self) -> Stats:
        """Counts and sizes."""
        [(documents, chunks, characters)] = await self.read(
            "SELECT count(*), ifnull(sum(chunks), 0), ifnull(sum(characters), 0) FROM documents"
            " WHERE hidden = 0"
        )
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        async with self.reading() as connection:
            values = await meta.values(connection)
        return Stats(
            str(self.path),
            *(documents, chunks, characters, size),
            embedder=values.get("embedder", ""),
            dimensions=int(values.get("dimensions", "0")),
            next_embedder=values.get("next_embedder", ""),
            kept_embedder=values.get("kept_embedder", ""),
            kept_bytes=int(values.get("kept_bytes", "0")),
        )

    async def backup(self, target: Path, *, force: bool, on_progress: backup.OnProgress) -> int:
        """Copy the file, and return the bytes of the copy: see `stores.backup`."""
        async with self.reading():
            return await backup.backup(self.path, target, force=force, on_progress=on_progress)

    async def verify(self, on_progress: verifying.OnProgress) -> Verified:
        """Check the whole file, even if it cannot be opened."""
        return await verifying.verify(self.path, self._busy_seconds, on_progress)
