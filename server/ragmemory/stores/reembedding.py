"""Replace all embeddings: new ones are collected in a second table, then the two tables are swapped.

Collected embeddings stay in the file: after a kill, the next reembedding with the same embedder continues.
Until the swap, memory is searched with the old embeddings. A document written meanwhile with the new
embedder has empty embeddings among the old ones: it is found by its words.

Afterwards the old embeddings of another embedder are kept, so that going back to it computes only what is
newer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ragmemory.errors import EmbedderMismatch
from ragmemory.stores import journal, meta
from ragmemory.stores.chunks import SEARCHED
from ragmemory.stores.engine import Connection, StorePart
from ragmemory.types.writes import Embedding

_NOTHING_KEPT = dict.fromkeys(("kept_embedder", "kept_dimensions", "kept_bytes"))
_NOTHING_COMING = dict.fromkeys(("next_embedder", "next_dimensions"))


class Missing(NamedTuple):
    """A chunk without a new embedding."""

    chunk_id: int
    title: str
    heading: str
    surroundings: str
    text: str  # after its context


class New(NamedTuple):
    """A new embedding. `input` is as in `Write.inputs`."""

    chunk_id: int
    vector: Embedding
    input: bytes | None


class ReembeddingStore(StorePart):
    """The transactions of a reembedding."""

    async def begin(self, identity: str) -> int:
        """Begin to collect new embeddings, or continue; return how many there are already."""
        async with self._engine.transaction() as connection:
            values = await meta.values(connection)
            is_return = values.get("kept_embedder") == identity != values.get("embedder")
            if is_return:
                dimensions = int(values["kept_dimensions"])
                # Without those that are empty, or were cut off on the disk.
                await connection.execute(
                    "DELETE FROM other_embeddings WHERE length(vector) <> ?", [2 * dimensions]
                )
            elif values.get("next_embedder") != identity:
                dimensions = 0
                await connection.execute("DELETE FROM other_embeddings")
            else:
                dimensions = int(values["next_dimensions"])
            coming = {"next_embedder": identity, "next_dimensions": str(dimensions)}
            await meta.put(connection, {**_NOTHING_KEPT, **coming})
            [(count,)] = await connection.execute_fetchall("SELECT count(*) FROM other_embeddings")
            return int(count)

    async def missing(self, after: int, limit: int) -> list[Missing]:
        """The next chunks, by id, that have no new embedding. Those that only undo needs never get one."""
        async with self._engine.reading() as connection:
            return await _missing(connection, after, limit)

    async def collect(self, identity: str, new: Sequence[New]) -> bool:
        """Store new embeddings until the switch; False if another process has ended this reembedding.

        Raises EmbedderMismatch if their dimensions differ from those of earlier ones.
        """
        async with self._engine.transaction() as connection:
            values = await meta.values(connection)
            if values.get("next_embedder") != identity:
                return False
            # A float16 has two bytes.
            dimensions = len(new[0].vector) // 2
            if values["next_dimensions"] == "0":
                await meta.put(connection, {"next_dimensions": str(dimensions)})
            elif int(values["next_dimensions"]) != dimensions:
                raise EmbedderMismatch(identity, int(values["next_dimensions"]), identity, dimensions)
            await put(connection, "other_embeddings", new)
            return True

    async def switch(self, identity: str, after: int) -> bool | None:
        """Make the collected embeddings those in use, and keep the old ones.

        None, without any change, if a chunk after the one with the id `after` has no new embedding: collect
        these as well. False if another process has ended this reembedding.
        """
        async with self._engine.transaction() as connection:
            values = await meta.values(connection)
            if values.get("next_embedder") != identity:
                return False
            if await _missing(connection, after, 1):
                return None
            await _switch(connection, identity, values)
            return True

    async def discard(self) -> None:
        """Delete the old embeddings, or the new ones of a reembedding that was not completed."""
        async with self._engine.transaction() as connection:
            await connection.execute("DELETE FROM other_embeddings")
            await meta.put(connection, {**_NOTHING_KEPT, **_NOTHING_COMING})


async def put(connection: Connection, table: meta.Table, new: Sequence[New]) -> None:
    """Insert or replace embeddings of those of the chunks that were not removed meanwhile."""
    condition, parameters = connection.dialect.among("chunk_id", [one.chunk_id for one in new])
    rows = await connection.execute_fetchall(f"SELECT chunk_id FROM chunks WHERE {condition}", parameters)
    present = {row[0] for row in rows}
    await connection.executemany(
        f"INSERT INTO {table}(chunk_id, vector, input) VALUES(?, ?, ?)"
        " ON CONFLICT(chunk_id) DO UPDATE SET vector = excluded.vector, input = excluded.input",
        (one for one in new if one.chunk_id in present),
    )


async def _missing(connection: Connection, after: int, limit: int) -> list[Missing]:
    rows = await connection.execute_fetchall(
        f"SELECT chunk_id, {SEARCHED} FROM chunks {connection.dialect.ordered_join} documents"
        " ON number = document WHERE chunk_id > ?"
        " AND NOT EXISTS (SELECT 1 FROM other_embeddings AS new WHERE new.chunk_id = chunks.chunk_id)"
        " AND (hidden = 0 OR EXISTS (SELECT 1 FROM embeddings AS old WHERE old.chunk_id = chunks.chunk_id))"
        " ORDER BY chunk_id LIMIT ?",
        [after, limit],
    )
    return [Missing(*row) for row in rows]


async def _switch(connection: Connection, identity: str, values: Mapping[str, str]) -> None:
    """Swap the two tables; `values` are those of `meta`."""
    # Renamed, not copied: copying would keep other writers waiting.
    for old, new in (
        ("embeddings", "replaced_embeddings"),
        ("other_embeddings", "embeddings"),
        ("replaced_embeddings", "other_embeddings"),
    ):
        await connection.execute(f"ALTER TABLE {old} RENAME TO {new}")
    [(chunks,)] = await connection.execute_fetchall(
        "SELECT CAST(coalesce(sum(chunks), 0) AS BIGINT) FROM documents WHERE hidden = 0"
    )
    current: dict[str, str | None] = {"embedder": identity, "dimensions": values["next_dimensions"]}
    kept: dict[str, str | None] = {
        "kept_embedder": values.get("embedder"),
        "kept_dimensions": values.get("dimensions"),
        "kept_bytes": str(2 * chunks * int(values.get("dimensions", "0"))),
    }
    if values.get("embedder") == identity:  # The same embedder: nothing to keep.
        await connection.execute("DELETE FROM other_embeddings")
        kept = _NOTHING_KEPT
    if not chunks:  # An empty memory accepts any embedder.
        current, kept = dict.fromkeys(current), _NOTHING_KEPT
    now = journal.iso(datetime.now(UTC))
    await meta.put(connection, {**current, **kept, **_NOTHING_COMING, "reembedded": now})
