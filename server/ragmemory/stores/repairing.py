"""Rebuild what follows from the texts: full text, references, embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ragmemory.stores import journal, meta
from ragmemory.stores.chunks import SEARCHED
from ragmemory.stores.engine import FulltextRow, StorePart
from ragmemory.stores.reembedding import Missing, New, put
from ragmemory.stores.values import are_sound

# Chunks that are read at a time.
_PAGE = 1_000


class RepairStore(StorePart):
    """The repairs of one memory."""

    async def fulltext(self) -> None:
        """Rebuild the full text of all chunks that can be found."""
        async with self._engine.transaction() as connection:
            await connection.dialect.clear_fulltext(connection)
            last = 0
            while page := await connection.execute_fetchall(
                "SELECT chunk_id, title, heading, text FROM chunks"
                f" {connection.dialect.ordered_join} documents ON number = document"
                " WHERE chunk_id > ? AND (hidden = 0 OR EXISTS (SELECT 1 FROM pages"
                " WHERE pages.document = number AND chunk_id BETWEEN first AND last))"
                " ORDER BY chunk_id LIMIT ?",
                [last, _PAGE],
            ):
                last = page[-1][0]
                await connection.dialect.insert_fulltext(connection, (FulltextRow(*row) for row in page))

    async def references(self) -> None:
        """Build the indexes of all tables again, and delete derived rows that belong to nothing."""
        async with self._engine.transaction() as connection:
            await connection.dialect.rebuild_indexes(connection)
            for table in ("embeddings", "other_embeddings"):
                await connection.execute(
                    f"DELETE FROM {table} WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)"
                )
            await connection.execute("DELETE FROM pages WHERE document NOT IN (SELECT number FROM documents)")

    async def without_embedding(self, after: int, dimensions: int) -> tuple[int, list[Missing]]:
        """The last id of the next chunks, or 0; and those of them whose embeddings are missing or damaged."""
        async with self._engine.reading() as connection:
            rows = await connection.execute_fetchall(
                f"SELECT chunk_id, {SEARCHED}, vector FROM chunks"
                f" {connection.dialect.ordered_join} documents ON number = document"
                " LEFT JOIN embeddings USING(chunk_id)"
                " WHERE chunk_id > ? AND hidden = 0 ORDER BY chunk_id LIMIT ?",
                [after, _PAGE],
            )
            sound = are_sound([row[5] for row in rows], dimensions)
        missing = [Missing(*row[:5]) for row, is_sound in zip(rows, sound, strict=True) if not is_sound]
        return (rows[-1][0] if rows else 0), missing

    async def put_embeddings(self, identity: str, new: Sequence[New]) -> None:
        """Replace embeddings by those of the same embedder. Raises EmbedderMismatch."""
        async with self._engine.transaction() as connection:
            await meta.require_embedder(connection, identity, len(new[0].vector) // 2)
            await put(connection, "embeddings", new)

    async def invalidate_indexes(self) -> None:
        """Have every index built again from the file."""
        async with self._engine.transaction() as connection:
            await meta.put(connection, {"reembedded": journal.iso(datetime.now(UTC))})
