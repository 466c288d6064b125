"""Replacing all embeddings: new ones are collected in a temporary table, then switched in one transaction.

The temporary table belongs to this connection and disappears with it, however the process ends. Called with
the write lock of this process held.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from ragmemory.stores import journal
from ragmemory.types import Checkpoint, Embedding

if TYPE_CHECKING:
    import aiosqlite


async def begin(connection: aiosqlite.Connection) -> None:
    """Create the table, empty."""
    await connection.execute("DROP TABLE IF EXISTS temp.fresh")
    await connection.execute("CREATE TEMP TABLE fresh(chunk_id INTEGER PRIMARY KEY, vector BLOB)")


async def collect(
    connection: aiosqlite.Connection, chunk_ids: Iterable[int], embeddings: Iterable[Embedding]
) -> None:
    """Store new embeddings until the switch."""
    await connection.executemany(
        "INSERT INTO temp.fresh VALUES(?, ?)", zip(chunk_ids, embeddings, strict=True)
    )


async def switch(
    connection: aiosqlite.Connection, checkpoint: Checkpoint, identity: str, at: datetime
) -> int | None:
    """Replace all embeddings by the new ones and return their number.

    None, without any change, if chunks were added after the checkpoint.
    """
    newer = await connection.execute_fetchall(
        "SELECT 1 FROM embeddings WHERE chunk_id > ? LIMIT 1", [checkpoint.chunk_id]
    )
    if newer:
        return None
    await connection.execute("DELETE FROM embeddings")
    # Some of the chunks may have been removed meanwhile.
    await connection.execute(
        "INSERT INTO embeddings(chunk_id, vector) SELECT fresh.* FROM temp.fresh JOIN chunks USING(chunk_id)"
    )
    [(count, size)] = await connection.execute_fetchall(
        "SELECT count(*), max(length(vector)) FROM embeddings"
    )
    await connection.execute("DELETE FROM meta WHERE key IN ('embedder', 'dimensions')")
    # A float16 has two bytes. An empty memory accepts any embedder.
    values = [("embedder", identity), ("dimensions", str(size // 2))] if count else []
    values.append(("reembedded", journal.iso(at)))
    await connection.executemany("INSERT OR REPLACE INTO meta VALUES(?, ?)", values)
    return int(count)
