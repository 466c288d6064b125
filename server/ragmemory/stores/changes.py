"""The changes since a checkpoint, from which an index follows the store."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ragmemory.stores import journal, meta
from ragmemory.stores.chunks import SEARCHED
from ragmemory.stores.engine import Condition, Row, StorePart
from ragmemory.types.changes import Changes, Checkpoint, indexed_title

# SQLite's highest integer.
MAX_ID = 2**63 - 1
_COLUMNS = f"chunk_id, {SEARCHED}, vector, uri"
_CHANGES = (
    f"SELECT * FROM (SELECT 'chunk', {_COLUMNS}"
    " FROM chunks JOIN documents ON number = document LEFT JOIN embeddings USING(chunk_id)"
    " WHERE chunk_id > ? AND chunk_id <= ? AND (hidden = 0 OR vector IS NOT NULL)"
    " ORDER BY chunk_id LIMIT ?) AS added"
    " UNION ALL SELECT * FROM (SELECT 'removal', seq, CAST(chunk_id AS TEXT), '', '', '',"
    " CAST(NULL AS BYTEA), '' FROM removals WHERE seq > ? ORDER BY seq) AS removed"
    " UNION ALL SELECT * FROM (SELECT 'hidden', first, CAST(last AS TEXT), '', '', '',"
    " CAST(NULL AS BYTEA), '' FROM documents JOIN pages ON document = number WHERE hidden <> 0"
    " ORDER BY first) AS hidden"
)


class ChangeStore(StorePart):
    """The changes of one memory."""

    async def source(self) -> tuple[str, dict[str, int]]:
        """See `meta.fingerprint` and `meta.embedders`."""
        async with self._engine.reading() as connection:
            values = await meta.values(connection)
        return meta.fingerprint(values), meta.embedders(values)

    async def last_chunk_id(self) -> int:
        """The highest id that a chunk ever had."""
        async with self._engine.reading() as connection:
            return await connection.dialect.last_chunk_id(connection)

    async def has_passed(self, checkpoint: Checkpoint) -> bool:
        """Whether this store was ever at the checkpoint, so that an index can continue from it."""
        if checkpoint == Checkpoint():
            return True
        async with self._engine.reading() as connection:
            # Pages of hidden documents are written without an entry in the journal.
            last_id = await connection.dialect.last_chunk_id(connection)
            is_held = await journal.holds(connection, checkpoint.entry, checkpoint.entry_at)
        return is_held and checkpoint.chunk_id <= last_id

    async def since(self, checkpoint: Checkpoint, limit: int, upto: int = MAX_ID) -> Changes:
        """At most `limit` chunks added after the checkpoint, up to the id `upto`, and all removals.

        Fewer chunks than `limit` mean that there are no more.
        """
        # One use of the file: between two uses the file may be replaced.
        async with self._engine.reading() as connection:
            # One statement, hence one snapshot: otherwise a concurrent sweep or replacement could hide chunks
            # from the result without their removal.
            found = await connection.execute_fetchall(
                _CHANGES, [checkpoint.chunk_id, upto, limit, checkpoint.removal]
            )
            removals = [(row[1], int(row[2])) for row in found if row[0] == "removal"]
            hidden = [(row[1], int(row[2])) for row in found if row[0] == "hidden"]
            values = await meta.values(connection)
            # Read last: a store with this entry has all changes above.
            entry = await journal.last(connection)
        rows = [row[1:] for row in found if row[0] == "chunk"]
        last = Checkpoint(
            rows[-1][0] if rows else checkpoint.chunk_id,
            removals[-1][0] if removals else checkpoint.removal,
            *entry,
        )
        dimensions = next(iter(meta.embedders(values).values()), 0)
        changes = _changes(last, rows, dimensions, [row[1] for row in removals], hidden)
        return replace(changes, fingerprint=meta.fingerprint(values))

    async def of(self, chunk_ids: Sequence[int], filter: Condition | None, dimensions: int) -> Changes:
        """Those of some chunks that can be found and match the filter, as if they were new."""
        among, parameters = self._engine.dialect.among("chunk_id", chunk_ids)
        matches, values = filter or ("TRUE", [])
        rows = await self._engine.read(
            # Before the joins: PostgreSQL would look for these chunks in each document of a small memory.
            f"WITH found AS MATERIALIZED (SELECT * FROM chunks WHERE {among}) SELECT {_COLUMNS}"
            " FROM found JOIN documents ON number = document LEFT JOIN embeddings USING(chunk_id)"
            f" WHERE hidden = 0 AND {matches} ORDER BY chunk_id",
            [*parameters, *values],
        )
        return _changes(Checkpoint(), rows, dimensions, [], [])


def _changes(
    checkpoint: Checkpoint,
    rows: Sequence[Row],
    dimensions: int,
    removed: list[int],
    hidden: list[tuple[int, int]],
) -> Changes:
    # A lost or cut off embedding is replaced by zeros: the chunk is still found by its words.
    no_embedding = bytes(2 * dimensions)
    columns = zip(*rows, strict=True) if rows else [()] * 7
    chunk_ids, titles, headings, surroundings, texts, vectors, uris = map(list, columns)
    return Changes(
        checkpoint=checkpoint,
        chunk_ids=chunk_ids,
        titles=list(map(indexed_title, uris, titles)),
        headings=headings,
        texts=texts,
        surroundings=surroundings,
        embeddings=[one if len(one or b"") == len(no_embedding) else no_embedding for one in vectors],
        removed=removed,
        hidden=hidden,
    )
