"""The table `meta`: the memory's identity, and whose embeddings it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragmemory.errors import EmbedderMismatch

if TYPE_CHECKING:
    import aiosqlite


async def fingerprint(connection: aiosqlite.Connection) -> str:
    """Identifies what an index is derived from: the memory, its embedder, and the last reembedding."""
    rows = await connection.execute_fetchall("SELECT key, value FROM meta ORDER BY key")
    return " ".join(f"{key}={value}" for key, value in rows)


async def require_embedder(connection: aiosqlite.Connection, identity: str, dimensions: int) -> None:
    """Record the embedder of the first embeddings. Raises EmbedderMismatch if it is another one later."""
    stored = await embedder(connection)
    if stored is None:
        values = [("embedder", identity), ("dimensions", str(dimensions))]
        await connection.executemany("INSERT INTO meta VALUES(?, ?)", values)
    elif stored != (identity, dimensions):
        raise EmbedderMismatch(*stored, identity, dimensions)


async def embedder(connection: aiosqlite.Connection) -> tuple[str, int] | None:
    """Identity and dimensions of the embedder that filled this memory; None before the first embedding."""
    rows = await connection.execute_fetchall("SELECT key, value FROM meta")
    values = {row[0]: row[1] for row in rows}
    return (values["embedder"], int(values["dimensions"])) if "embedder" in values else None
