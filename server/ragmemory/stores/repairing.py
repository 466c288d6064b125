"""Rebuild what follows from the texts: full text, references, embeddings. Called with the write lock held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragconfig.text_rules import searchable
from ragmemory.stores.chunks import FULLTEXT_INSERT
from ragmemory.stores.reembedding import Missing, New

if TYPE_CHECKING:
    import aiosqlite

# Chunks that are read at a time.
_PAGE = 1_000
# A float16 vector of length 1 differs from it by less.
_ROUNDING = 0.02


async def fulltext(connection: aiosqlite.Connection) -> None:
    """Rebuild the full text of all chunks that can be found."""
    await connection.execute("INSERT INTO fulltext(fulltext) VALUES('delete-all')")
    last = 0
    while page := list(
        await connection.execute_fetchall(
            "SELECT chunk_id, title, heading, text FROM chunks CROSS JOIN documents ON number = document"
            " WHERE chunk_id > ? AND (hidden = 0 OR EXISTS (SELECT 1 FROM pages"
            " WHERE pages.document = number AND chunk_id BETWEEN first AND last))"
            " ORDER BY chunk_id LIMIT ?",
            [last, _PAGE],
        )
    ):
        last = page[-1][0]
        rows = ((row[0], *map(searchable, row[1:])) for row in page)
        await connection.executemany(FULLTEXT_INSERT, rows)


async def references(connection: aiosqlite.Connection) -> None:
    """Build the indexes of the tables again; delete derived rows of chunks and documents that are gone."""
    await connection.execute("REINDEX")
    for table in ("embeddings", "other_embeddings"):
        await connection.execute(f"DELETE FROM {table} WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)")
    await connection.execute("DELETE FROM pages WHERE document NOT IN (SELECT number FROM documents)")


async def without_embedding(
    connection: aiosqlite.Connection, after: int, dimensions: int
) -> tuple[int, list[Missing]]:
    """The last id of the next chunks, or 0; and those of them whose embeddings are missing or damaged."""
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


def are_sound(vectors: Sequence[object], dimensions: int) -> list[bool]:
    """Which are embeddings: of these dimensions, and of unit length, or zeros for a text without words."""
    import numpy as np

    blobs = [vector if isinstance(vector, bytes) else b"" for vector in vectors]
    sized = [len(blob) == 2 * dimensions > 0 for blob in blobs]
    joined = b"".join(blob for blob, is_sized in zip(blobs, sized, strict=True) if is_sized)
    matrix = np.frombuffer(joined, "<f2").reshape(-1, max(1, dimensions)).astype(np.float32)
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(matrix, axis=1)
        is_unit = iter(((np.abs(lengths - 1) < _ROUNDING) | (lengths == 0)).tolist())
    return [is_sized and next(is_unit) for is_sized in sized]


async def put(connection: aiosqlite.Connection, new: Sequence[New]) -> None:
    """Replace embeddings."""
    await connection.executemany(
        "INSERT OR REPLACE INTO embeddings(chunk_id, vector, input)"
        " SELECT chunk_id, ?2, ?3 FROM chunks WHERE chunk_id = ?1",
        new,
    )
