"""Rebuild what follows from the texts: full text, references, embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ragcommon.text.rules import searchable
from ragmemory.stores import journal, meta
from ragmemory.stores.chunks import FULLTEXT_INSERT
from ragmemory.stores.file import StorePart
from ragmemory.stores.reembedding import Missing, New
from ragmemory.stores.values import are_sound

# Chunks that are read at a time.
_PAGE = 1_000


class RepairStore(StorePart):
    """The repairs of one memory."""

    async def fulltext(self) -> None:
        """Rebuild the full text of all chunks that can be found."""
        async with self._file.transaction() as connection:
            await connection.execute("INSERT INTO fulltext(fulltext) VALUES('delete-all')")
            last = 0
            while page := list(
                await connection.execute_fetchall(
                    "SELECT chunk_id, title, heading, text FROM chunks"
                    " CROSS JOIN documents ON number = document"
                    " WHERE chunk_id > ? AND (hidden = 0 OR EXISTS (SELECT 1 FROM pages"
                    " WHERE pages.document = number AND chunk_id BETWEEN first AND last))"
                    " ORDER BY chunk_id LIMIT ?",
                    [last, _PAGE],
                )
            ):
                last = page[-1][0]
                rows = ((row[0], *map(searchable, row[1:])) for row in page)
                await connection.executemany(FULLTEXT_INSERT, rows)

    async def references(self) -> None:
        """Build SQLite's indexes again, and delete derived rows that belong to nothing."""
        async with self._file.transaction() as connection:
            await connection.execute("REINDEX")
            for table in ("embeddings", "other_embeddings"):
                await connection.execute(
                    f"DELETE FROM {table} WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)"
                )
            await connection.execute("DELETE FROM pages WHERE document NOT IN (SELECT number FROM documents)")

    async def without_embedding(self, after: int, dimensions: int) -> tuple[int, list[Missing]]:
        """The last id of the next chunks, or 0; and those of them whose embeddings are missing or damaged."""
        async with self._file.reading() as connection:
            rows = list(
                await connection.execute_fetchall(
                    "SELECT chunk_id, title, heading, surroundings, context || text, vector FROM chunks"
                    " CROSS JOIN documents ON number = document LEFT JOIN embeddings USING(chunk_id)"
                    " WHERE chunk_id > ? AND hidden = 0 ORDER BY chunk_id LIMIT ?",
                    [after, _PAGE],
                )
            )
            sound = are_sound([row[5] for row in rows], dimensions)
        missing = [Missing(*row[:5]) for row, is_sound in zip(rows, sound, strict=True) if not is_sound]
        return (rows[-1][0] if rows else 0), missing

    async def put_embeddings(self, identity: str, new: Sequence[New]) -> None:
        """Replace embeddings by those of the same embedder. Raises EmbedderMismatch."""
        async with self._file.transaction() as connection:
            await meta.require_embedder(connection, identity, len(new[0].vector) // 2)
            await connection.executemany(
                "INSERT OR REPLACE INTO embeddings(chunk_id, vector, input)"
                " SELECT chunk_id, ?2, ?3 FROM chunks WHERE chunk_id = ?1",
                new,
            )

    async def invalidate_indexes(self) -> None:
        """Have every index built again from the file."""
        async with self._file.transaction() as connection:
            await meta.put(connection, {"reembedded": journal.iso(datetime.now(UTC))})
