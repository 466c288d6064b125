"""Every embedding made anew: gathered aside first, then put in place in one transaction.

The temporary table is of this connection alone and ends with it, however the process ends; until the switch
nobody sees any of it. Called with the write lock of this process held.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from ragmemory.stores import journal
from ragmemory.types import Embedding, Mark

if TYPE_CHECKING:
    import aiosqlite


async def begin(connection: aiosqlite.Connection) -> None:
    """Make the table anew, empty."""
    await connection.execute("DROP TABLE IF EXISTS temp.fresh")
    await connection.execute("CREATE TEMP TABLE fresh(chunk_id INTEGER PRIMARY KEY, vector BLOB)")


async def gather(
    connection: aiosqlite.Connection, chunk_ids: Iterable[int], made: Iterable[Embedding]
) -> None:
    """Keep these for the switch."""
    await connection.executemany("INSERT INTO temp.fresh VALUES(?, ?)", zip(chunk_ids, made, strict=True))


async def switch(connection: aiosqlite.Connection, mark: Mark, identity: str, at: datetime) -> int | None:
    """Replace all embeddings by those gathered up to the mark, and return how many there are now.

    None, with nothing done, if chunks were added after the mark.
    """
    newer = await connection.execute_fetchall(
        "SELECT 1 FROM embeddings WHERE chunk_id > ? LIMIT 1", [mark.chunk_id]
    )
    if newer:
        return None
    await connection.execute("DELETE FROM embeddings")
    # Some of the chunks may have gone meanwhile.
    await connection.execute(
        "INSERT INTO embeddings SELECT fresh.* FROM temp.fresh JOIN chunks USING(chunk_id)"
    )
    [(count, size)] = await connection.execute_fetchall(
        "SELECT count(*), max(length(vector)) FROM embeddings"
    )
    await connection.execute("DELETE FROM meta WHERE key IN ('embedder', 'dimensions')")
    # Two bytes a number. An empty memory is free for any embedder.
    values = [("embedder", identity), ("dimensions", str(size // 2))] if count else []
    values.append(("reembedded", journal.iso(at)))
    await connection.executemany("INSERT OR REPLACE INTO meta VALUES(?, ?)", values)
    return int(count)
