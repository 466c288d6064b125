"""Hidden documents: long documents are written and removed page by page, in short transactions.

No reader sees a hidden document. A staged one becomes visible in the transaction that hides its previous
version. A removed one loses its full text and embeddings page by page and then, once undo no longer needs its
text, its chunks. A process that is killed leaves hidden documents, which a later sweep removes. An index
holds hidden chunks like all others; a search excludes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from msgspec.structs import replace

from ragcommon.text.places import file_name
from ragmemory.stores import chunks as chunk_rows
from ragmemory.stores import journal, meta, reuse
from ragmemory.stores.chunks import DocumentChunks
from ragmemory.stores.engine import Connection, FulltextRow, StorePart
from ragmemory.stores.writing import PAGE, REMOVED, STAGED, hidden_name
from ragmemory.types.changes import indexed_title
from ragmemory.types.writes import Chunk, Document, Embedding, StagedDocument

# A staged document that has not grown for this long belongs to a killed process.
_ABANDONED = timedelta(hours=1)
_INSERT_PAGE = "INSERT INTO pages(first, last, document) VALUES(?, ?, ?)"
# What a sweep removes: pages with full text and embeddings, or chunks that undo does not need.
_GARBAGE = (
    f"(hidden = {REMOVED} OR hidden = {STAGED} AND updated_at < ?)"
    " AND (EXISTS (SELECT 1 FROM pages WHERE document = number)"
    " OR NOT EXISTS (SELECT 1 FROM journal WHERE before_document = number))"
)


async def digest_of(connection: Connection, number: int) -> bytes:
    """SHA-256 of the text of a hidden document; b"" if there is no such document."""
    rows = await connection.execute_fetchall(
        "SELECT digest FROM documents WHERE number = ? AND hidden <> 0", [number]
    )
    return next((row[0] for row in rows), b"")


class HiddenStore(StorePart):
    """The transactions on hidden documents."""

    async def begin(self, document: Document) -> StagedDocument:
        """Create a hidden document without chunks, to which they are added."""
        async with self._engine.transaction() as connection:
            [(number,)] = await connection.execute_fetchall(
                "SELECT coalesce(max(number), 0) + 1 FROM documents"
            )
            name = hidden_name()
            if indexed_title(document.uri, document.title) != document.title:
                name += f"/{quote(file_name(document.uri))}"  # Its chunks are indexed by it.
            await connection.execute(
                "INSERT INTO documents(number, document_id, uri, title, digest, metadata, chunks, characters,"
                " created, added_at, updated_at, hidden)"
                " VALUES(?1, ?2, ?2, ?3, ?6, '{}', 0, 0, 0, ?4, ?4, ?5)",
                [number, name, document.title, journal.iso(await _now(connection)), STAGED, b""],
            )
        return StagedDocument(number, name)

    async def add(
        self,
        staged: StagedDocument,
        document: Document,
        chunks: Sequence[Chunk],
        embeddings: Sequence[Embedding],
        inputs: Sequence[bytes],
        embedder: str,
    ) -> StagedDocument | None:
        """Add the next chunks, at most a page; `embedder` is the identity of the embeddings.

        None if the hidden document no longer exists: the file was replaced. Raises EmbedderMismatch.
        """
        async with self._engine.transaction() as connection:
            cursor = await connection.execute(
                "UPDATE documents SET updated_at = ? WHERE number = ? AND uri = ? AND hidden = ?",
                [journal.iso(await _now(connection)), staged.number, staged.uri, STAGED],
            )
            if cursor.rowcount == 0:
                return None
            # A float16 has two bytes.
            table = await meta.require_embedder(connection, embedder, len(embeddings[0]) // 2)
            part = DocumentChunks(staged.number, document, chunks, embeddings, inputs)
            first = await chunk_rows.insert(connection, [part], table)
            await connection.execute(_INSERT_PAGE, [first, first + len(chunks) - 1, staged.number])
        return replace(staged, chunks=staged.chunks + len(chunks))

    async def abandon(self, staged: StagedDocument) -> None:
        """Mark a staged document as removed, unless it is visible by now."""
        async with self._engine.transaction() as connection:
            await connection.execute(
                "UPDATE documents SET hidden = ? WHERE number = ? AND uri = ? AND hidden = ?",
                [REMOVED, staged.number, staged.uri, STAGED],
            )

    async def sweep(self) -> bool:
        """Remove at most one page of garbage; False if there is none."""
        async with self._engine.reading() as connection:  # This needs no lock.
            if await _garbage(connection) is None:
                return False
        async with self._engine.transaction() as connection:
            found = await _garbage(connection)
            if found is None:
                return False
            await _sweep(connection, *found)
            return True


async def _now(connection: Connection) -> datetime:
    """By the clock of the engine: a host whose clock is behind would see its document swept by another."""
    [(seconds,)] = await connection.execute_fetchall(f"SELECT {connection.dialect.now}")
    return datetime.fromtimestamp(seconds, UTC)


async def _garbage(connection: Connection) -> tuple[int, str] | None:
    """Number and title of a document that has something to sweep."""
    rows = await connection.execute_fetchall(
        f"SELECT number, title FROM documents WHERE hidden <> 0 AND {_GARBAGE} LIMIT 1",
        [journal.iso(await _now(connection) - _ABANDONED)],
    )
    return next(((row[0], row[1]) for row in rows), None)


async def _sweep(connection: Connection, number: int, title: str) -> None:
    """Remove the next page of a hidden document; if it has none, its next chunks, and in the end itself."""
    await connection.execute("UPDATE documents SET hidden = ? WHERE number = ?", [REMOVED, number])
    pages = await connection.execute_fetchall(
        "SELECT first, last FROM pages WHERE document = ? ORDER BY first LIMIT 1", [number]
    )
    if pages:
        first, last = pages[0]
        await _delete_page(connection, title, first, min(last, first + PAGE - 1))
        await connection.execute("DELETE FROM pages WHERE first = ?", [first])
        if last >= first + PAGE:
            await connection.execute(_INSERT_PAGE, [first + PAGE, last, number])
        return
    cursor = await connection.execute(
        "DELETE FROM chunks WHERE chunk_id IN (SELECT chunk_id FROM chunks WHERE document = ? LIMIT ?)",
        [number, PAGE],
    )
    if cursor.rowcount < PAGE:
        await connection.execute("DELETE FROM documents WHERE number = ?", [number])


async def _delete_page(connection: Connection, title: str, first: int, last: int) -> None:
    """Delete the full text and embeddings of chunks, and record them as removals; their texts stay."""
    rows = await connection.execute_fetchall(
        "SELECT chunk_id, heading, text FROM chunks WHERE chunk_id BETWEEN ? AND ?", [first, last]
    )
    await connection.dialect.delete_fulltext(
        connection, (FulltextRow(row[0], title, row[1], row[2]) for row in rows)
    )
    await reuse.keep_page(connection, first, last)
    for table in ("embeddings", "other_embeddings"):
        await connection.execute(f"DELETE FROM {table} WHERE chunk_id BETWEEN ? AND ?", [first, last])
    await connection.execute(
        "INSERT INTO removals(chunk_id) SELECT chunk_id FROM chunks WHERE chunk_id BETWEEN ? AND ?",
        [first, last],
    )
