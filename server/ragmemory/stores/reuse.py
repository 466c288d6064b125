"""Embeddings by the digest of what was embedded, also those of chunks that no longer exist.

An edit, another branch, a renamed file and an undo bring back chunks that were embedded before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragmemory.types.writes import Embedding

if TYPE_CHECKING:
    from ragmemory.stores.engine import Connection

# Embeddings of removed chunks that are kept: 60 MB with 1536 dimensions.
MAX_REMOVED = 20_000
# Older releases of SQLite take 999 parameters.
_PARAMETERS = 900


async def find(connection: Connection, inputs: Sequence[bytes]) -> dict[bytes, Embedding]:
    """The embeddings that are stored for these digests."""
    found: dict[bytes, Embedding] = {}
    for start in range(0, len(inputs), _PARAMETERS):
        some = inputs[start : start + _PARAMETERS]
        places = ", ".join(f"?{number}" for number in range(1, len(some) + 1))
        # In one statement: a sweep in another transaction moves embeddings from one table to another.
        rows = await connection.execute_fetchall(
            " UNION ALL ".join(
                f"SELECT input, vector FROM {table} WHERE input IN ({places})"
                for table in ("removed_embeddings", "other_embeddings", "embeddings")
            ),
            some,
        )
        found |= {row[0]: row[1] for row in rows}
    return found


async def keep(connection: Connection, documents: Sequence[int]) -> None:
    """Keep the embeddings of documents whose chunks are about to be deleted. With the write lock held."""
    condition, parameters = connection.dialect.among("document", documents)
    joined = f"chunks {connection.dialect.ordered_join} embeddings USING(chunk_id)"
    await _keep(connection, f"{joined} WHERE {condition}", parameters)


async def keep_page(connection: Connection, first: int, last: int) -> None:
    """Keep the embeddings of a range of chunks that are about to be deleted. With the write lock held."""
    await _keep(connection, "embeddings WHERE chunk_id BETWEEN ? AND ?", [first, last])


async def _keep(connection: Connection, rows: str, parameters: Sequence[object]) -> None:
    # Replaced ones get a new number, so that they are kept longer. The comparison keeps SQLite from reading
    # the index of all digests.
    kept_ones = f"FROM {rows} AND (input IS NOT NULL) = TRUE"
    await connection.execute(
        f"DELETE FROM removed_embeddings WHERE input IN (SELECT input {kept_ones})", parameters
    )
    kept = await connection.execute(
        f"INSERT INTO removed_embeddings(input, vector) SELECT input, vector {kept_ones}"
        " ON CONFLICT(input) DO NOTHING",
        parameters,
    )
    if kept.rowcount > 0:
        await connection.execute(
            "DELETE FROM removed_embeddings WHERE number <= (SELECT max(number) FROM removed_embeddings) - ?",
            [MAX_REMOVED],
        )
