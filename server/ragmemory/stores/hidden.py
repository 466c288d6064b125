"""Hidden documents: long ones on their way in or out, a page of chunks in each short transaction.

A hidden document is seen by no reader. One that is being written becomes visible in the transaction that
hides the version before it; one that was removed loses its full text and embeddings page by page, then, when
undo needs its text no more, its chunks. A kill at any moment leaves hidden documents that a later sweep
removes. An index follows hidden chunks like all others: a search leaves out those of `ranges`.

Called with the write lock held, except for `ranges`; begins and commits nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragmemory.stores import chunks as chunk_rows
from ragmemory.stores import journal, meta
from ragmemory.stores.chunks import FULLTEXT_DELETE, DocumentChunks
from ragmemory.stores.fulltext import searchable
from ragmemory.stores.writing import BUILDING, PAGE, REMOVED, hidden_name
from ragmemory.types import Built, Chunk, Draft, Embedding

if TYPE_CHECKING:
    import aiosqlite

# A document to which nothing was added for so long was left behind by a process that was killed. No live one
# waits so long for one page.
_ABANDONED = timedelta(hours=1)
# What a sweep has to do: pages to take out of the index, or chunks that undo does not need.
_GARBAGE = (
    f"(hidden = {REMOVED} OR hidden = {BUILDING} AND updated_at < ?)"
    " AND (EXISTS (SELECT 1 FROM pages WHERE document = number)"
    " OR NOT EXISTS (SELECT 1 FROM journal WHERE before_document = number))"
)


async def begin(connection: aiosqlite.Connection, draft: Draft, at: datetime) -> Built:
    """Make a hidden document without chunks."""
    [(number,)] = await connection.execute_fetchall("SELECT ifnull(max(number), 0) + 1 FROM documents")
    name = hidden_name()
    await connection.execute(
        "INSERT INTO documents(number, document_id, uri, title, digest, metadata, chunks, characters,"
        " created, added_at, updated_at, hidden) VALUES(?1, ?2, ?2, ?3, x'', '{}', 0, 0, 0, ?4, ?4, ?5)",
        [number, name, draft.title, journal.iso(at), BUILDING],
    )
    return Built(number, name)


async def add(
    connection: aiosqlite.Connection,
    built: Built,
    draft: Draft,
    chunks: Sequence[Chunk],
    embeddings: Sequence[Embedding],
    embedder: str,
    at: datetime,
) -> Built | None:
    """Add the next chunks to a hidden document; None if it is gone. Raises EmbedderMismatch."""
    cursor = await connection.execute(
        "UPDATE documents SET updated_at = ? WHERE number = ? AND uri = ? AND hidden = ?",
        [journal.iso(at), built.number, built.uri, BUILDING],
    )
    if cursor.rowcount == 0:
        return None
    # Two bytes a number.
    await meta.require_embedder(connection, embedder, len(embeddings[0]) // 2)
    first = await chunk_rows.insert(connection, [DocumentChunks(built.number, draft, chunks, embeddings)])
    await connection.execute(
        "INSERT INTO pages VALUES(?, ?, ?)", [first, first + len(chunks) - 1, built.number]
    )
    return replace(built, chunks=built.chunks + len(chunks))


async def abandon(connection: aiosqlite.Connection, built: Built) -> None:
    """Give up a document that is being written, unless it is visible by now."""
    await connection.execute(
        "UPDATE documents SET hidden = ? WHERE number = ? AND uri = ? AND hidden = ?",
        [REMOVED, built.number, built.uri, BUILDING],
    )


async def ranges(connection: aiosqlite.Connection) -> list[tuple[int, int]]:
    """The first and the last id of each page of chunks that are hidden, but have embeddings."""
    rows = await connection.execute_fetchall(
        "SELECT first, last FROM documents JOIN pages ON document = number WHERE hidden <> 0 ORDER BY first"
    )
    return [(row[0], row[1]) for row in rows]


async def has_garbage(connection: aiosqlite.Connection, at: datetime) -> bool:
    """Whether there is something to sweep. Needs no lock."""
    return await _garbage(connection, at) is not None


async def sweep(connection: aiosqlite.Connection, at: datetime) -> bool:
    """Remove at most a page of what is hidden for good; False if there is nothing."""
    found = await _garbage(connection, at)
    if found is None:
        return False
    number, title = found
    await connection.execute("UPDATE documents SET hidden = ? WHERE number = ?", [REMOVED, number])
    pages = list(
        await connection.execute_fetchall(
            "SELECT first, last FROM pages WHERE document = ? ORDER BY first LIMIT 1", [number]
        )
    )
    if pages:
        first, last = pages[0]
        await _take_out(connection, title, first, min(last, first + PAGE - 1))
        await connection.execute("DELETE FROM pages WHERE first = ?", [first])
        if last >= first + PAGE:
            await connection.execute("INSERT INTO pages VALUES(?, ?, ?)", [first + PAGE, last, number])
        return True
    cursor = await connection.execute(
        "DELETE FROM chunks WHERE chunk_id IN (SELECT chunk_id FROM chunks WHERE document = ? LIMIT ?)",
        [number, PAGE],
    )
    if cursor.rowcount < PAGE:
        await connection.execute("DELETE FROM documents WHERE number = ?", [number])
    return True


async def _garbage(connection: aiosqlite.Connection, at: datetime) -> tuple[int, str] | None:
    rows = await connection.execute_fetchall(
        f"SELECT number, title FROM documents WHERE hidden <> 0 AND {_GARBAGE} LIMIT 1",
        [journal.iso(at - _ABANDONED)],
    )
    return next(((row[0], row[1]) for row in rows), None)


async def _take_out(connection: aiosqlite.Connection, title: str, first: int, last: int) -> None:
    """Delete the full text and the embeddings of chunks, and log them as removed; their texts stay."""
    rows = await connection.execute_fetchall(
        "SELECT chunk_id, heading, text FROM chunks WHERE chunk_id BETWEEN ? AND ?", [first, last]
    )
    await connection.executemany(
        FULLTEXT_DELETE,
        ((row[0], searchable(title), searchable(row[1]), searchable(row[2])) for row in rows),
    )
    await connection.execute("DELETE FROM embeddings WHERE chunk_id BETWEEN ? AND ?", [first, last])
    await connection.execute(
        "INSERT INTO removals(chunk_id) SELECT chunk_id FROM chunks WHERE chunk_id BETWEEN ? AND ?",
        [first, last],
    )
