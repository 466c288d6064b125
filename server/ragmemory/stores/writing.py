"""What is written in one transaction. Called with the write lock held; begins and commits nothing itself."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from ragmemory.errors import NotStored, RagMemoryError, UndoConflict
from ragmemory.stores import chunks, journal, meta
from ragmemory.stores.chunks import DocumentChunks
from ragmemory.types import Draft, Forgotten, Injected, Origin, Status, Write

if TYPE_CHECKING:
    import aiosqlite

logger = logging.getLogger(__name__)

_OF_THE_FILE = frozenset(
    (
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
        *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
        *(sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_PROTOCOL),
    )
)

# Chunks written or removed in one transaction: more would keep other writers waiting. A longer document is
# hidden first, and removed page by page: see `stores.hidden`.
PAGE = 400
# Values of documents.hidden; 0: visible.
BUILDING, REMOVED = 1, 2

Outcome = Injected | Exception | None


class Known(NamedTuple):
    """What the store holds under a uri."""

    uri: str
    number: int
    document_id: str
    title: str
    digest: bytes
    metadata: str
    chunks: int
    added_at: str

    @property
    def is_long(self) -> bool:
        """Whether it takes several transactions to remove it."""
        return self.chunks > PAGE


async def find(connection: aiosqlite.Connection, uris: Sequence[str]) -> dict[str, Known]:
    """What the store holds under these uris."""
    # Not through json_each: it cuts a text at its first NUL, and older releases stored such uris.
    rows = await connection.execute_fetchall(
        "SELECT uri, number, document_id, title, digest, metadata, chunks, added_at"
        f" FROM documents WHERE uri IN ({', '.join('?' * len(uris))}) AND hidden = 0",
        uris,
    )
    return {row[0]: Known(*row) for row in rows}


def difference(draft: Draft, known: Known | None) -> Literal["everything", "metadata", "nothing"]:
    """What of a draft is not in the store yet. The title counts as text: it is embedded and indexed."""
    if known is None or known.digest != draft.digest or known.title != draft.title:
        return "everything"
    return "nothing" if known.metadata == draft.metadata else "metadata"


class _Step(NamedTuple):
    """One document of a batch that is really written."""

    write: Write
    known: Known | None
    rewritten: bool  # its text and chunks, not its metadata alone
    number: int

    @property
    def status(self) -> Status:
        return "updated" if self.known else "added"

    @property
    def chunks(self) -> int:
        if not self.rewritten and self.known is not None:
            return self.known.chunks
        return self.write.built.chunks if self.write.built else len(self.write.chunks or ())


async def write_each(
    connection: aiosqlite.Connection,
    writes: Sequence[Write],
    embedder: tuple[str, int] | None,
    at: datetime,
    undo_depth: int,
) -> list[Outcome]:
    """Like `write_batch`, but a write that fails leaves nothing behind and its error is its outcome.

    Slower: several statements a document. Raises what concerns the whole file.
    """
    outcomes: list[Outcome] = []
    for write in writes:
        await connection.execute("SAVEPOINT one_write")
        try:
            outcomes += await write_batch(connection, [write], embedder, at, undo_depth)
        except Exception as error:
            if concerns_the_file(error):
                raise
            if not isinstance(error, RagMemoryError):
                logger.warning("%s could not be stored", write.draft.uri, exc_info=error)
            await connection.execute("ROLLBACK TO one_write")
            is_foreign = isinstance(error, sqlite3.Error)
            outcomes.append(NotStored(write.draft.uri, str(error)) if is_foreign else error)
        await connection.execute("RELEASE one_write")
    return outcomes


def concerns_the_file(error: Exception) -> bool:
    """Whether the error is SQLite's about the file or the disk, so that no other write would succeed."""
    if isinstance(error, MemoryError):
        return True  # a damaged page states a length that is out of all bounds
    # The low byte is the primary code: https://www.sqlite.org/rescode.html
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_THE_FILE


async def write_batch(
    connection: aiosqlite.Connection,
    writes: Sequence[Write],
    embedder: tuple[str, int] | None,
    at: datetime,
    undo_depth: int,
) -> list[Outcome]:
    """Write documents of different uris; the outcomes are in the same order.

    `embedder` is the identity and the dimensions behind the embeddings. Raises EmbedderMismatch.

    None stands for a write that came without chunks and needs them after all, because the document was
    changed or removed since the caller looked; an UndoConflict for an undo that came too late.
    """
    if embedder and any(write.embeddings for write in writes):
        await meta.require_embedder(connection, *embedder)
    known = await find(connection, [write.draft.uri for write in writes])
    [(last_number,)] = await connection.execute_fetchall("SELECT ifnull(max(number), 0) FROM documents")
    steps: list[_Step] = []
    outcomes: list[Outcome] = []
    for write in writes:
        draft, old = write.draft, known.get(write.draft.uri)
        missing = difference(draft, old)
        undoes = write.undoes
        if undoes is not None and not await journal.is_last_write(connection, undoes):
            outcomes.append(UndoConflict(undoes))
        elif missing == "nothing" and old and write.undoes is None:
            outcomes.append(Injected(draft.document_id, draft.uri, "unchanged", old.chunks))
        elif missing == "everything" and not await _has_chunks(connection, write):
            outcomes.append(None)
        else:
            rewritten = missing == "everything"
            if rewritten and write.built:
                number = write.built.number
            elif old and not (rewritten and old.is_long):
                number = old.number
            else:
                number = last_number = last_number + 1
            step = _Step(write, old, rewritten, number)
            steps.append(step)
            outcomes.append(Injected(draft.document_id, draft.uri, step.status, step.chunks))
    if steps:
        await _write(connection, steps, at, undo_depth)
    return outcomes


async def _has_chunks(connection: aiosqlite.Connection, write: Write) -> bool:
    if write.built is None:
        return write.chunks is not None
    # It is gone if the file was replaced, or if it was taken for one that a killed process left behind.
    return bool(
        await connection.execute_fetchall(
            f"SELECT 1 FROM documents WHERE number = ? AND uri = ? AND hidden = {BUILDING}",
            [write.built.number, write.built.uri],
        )
    )


async def _write(connection: aiosqlite.Connection, steps: list[_Step], at: datetime, undo_depth: int) -> None:
    replaced = [step.known for step in steps if step.known and step.number != step.known.number]
    old = [step.known for step in steps if step.known]
    texts = await _texts(connection, old)
    await journal.record(connection, (_line(step, texts) for step in steps), at, undo_depth)
    await _delete_chunks(connection, [step.known for step in steps if step.known and step.rewritten], texts)
    await _delete_documents(connection, replaced)
    await connection.executemany(
        "INSERT INTO documents(number, document_id, uri, title, digest, metadata, chunks, characters,"
        " created, added_at, updated_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT(number) DO UPDATE SET"
        " document_id = excluded.document_id, uri = excluded.uri, hidden = 0,"
        " title = excluded.title, digest = excluded.digest, metadata = excluded.metadata,"
        " chunks = excluded.chunks, characters = excluded.characters, created = excluded.created,"
        " added_at = excluded.added_at, updated_at = excluded.updated_at",
        (_document_row(step, at) for step in steps),
    )
    await chunks.insert(
        connection,
        [
            DocumentChunks(step.number, step.write.draft, step.write.chunks, step.write.embeddings)
            for step in steps
            if step.rewritten and step.write.chunks
        ],
    )


def _line(step: _Step, texts: chunks.Texts) -> journal.Line:
    draft, known, undoes = step.write.draft, step.known, step.write.undoes
    if undoes is not None:
        return journal.Line("restored", draft.document_id, draft.uri, step.write.origin, None, undoes)
    before = known and _before(texts, known)
    return journal.Line(step.status, draft.document_id, draft.uri, step.write.origin, before)


def _document_row(step: _Step, at: datetime) -> tuple[object, ...]:
    draft = step.write.draft
    added_at = step.known.added_at if step.known else step.write.added_at or journal.iso(at)
    created = draft.created
    if created is None:
        created = datetime.fromisoformat(added_at).timestamp()
    return (
        *(step.number, draft.document_id, draft.uri, draft.title, draft.digest, draft.metadata),
        *(step.chunks, len(draft.text), created, added_at, journal.iso(at)),
    )


def _before(texts: chunks.Texts, known: Known) -> journal.Before:
    """What undo needs of a document. The text of a long one is not copied: its chunks are kept."""
    if known.is_long:
        return journal.Before("", known.metadata, known.added_at, known.number)
    text = "".join(text for _, _, text in texts[known.number])
    return journal.Before(text, known.metadata, known.added_at)


async def _texts(connection: aiosqlite.Connection, documents: Sequence[Known]) -> chunks.Texts:
    return await chunks.texts_of(connection, [known.number for known in documents if not known.is_long])


async def _delete_chunks(
    connection: aiosqlite.Connection, documents: Sequence[Known], texts: chunks.Texts
) -> None:
    """Delete the chunks of documents; long documents are hidden instead."""
    if not documents:
        return
    short = {known.number: known.title for known in documents if not known.is_long}
    await chunks.delete(connection, short, texts)
    for known in documents:
        if known.is_long:
            await _hide(connection, known.number)


async def _hide(connection: aiosqlite.Connection, number: int) -> None:
    """Take a document out of everyone's sight; `stores.hidden` removes it later."""
    # Without pages it was written in one transaction, which leaves no gaps.
    await connection.execute(
        "INSERT INTO pages SELECT min(chunk_id), max(chunk_id), document FROM chunks"
        " WHERE document = ?1 AND NOT EXISTS (SELECT 1 FROM pages WHERE document = ?1) GROUP BY document",
        [number],
    )
    await connection.execute(
        f"UPDATE documents SET hidden = {REMOVED}, document_id = ?1, uri = ?1 WHERE number = ?2",
        [hidden_name(), number],
    )


def hidden_name() -> str:
    """A uri and id for a hidden document."""
    return f"hidden:{os.urandom(16).hex()}"


async def _delete_documents(connection: aiosqlite.Connection, documents: Sequence[Known]) -> None:
    """Delete the rows of documents whose chunks are deleted, but not of hidden ones."""
    if not documents:
        return
    await connection.executemany(
        "DELETE FROM documents WHERE number = ? AND hidden = 0", [(known.number,) for known in documents]
    )


async def remove(
    connection: aiosqlite.Connection,
    uri: str,
    origin: Origin,
    at: datetime,
    undo_depth: int,
    undoes: int | None = None,
) -> Forgotten | None:
    """Delete a document. None if there is no such one; an undo is done then, too. Raises UndoConflict."""
    known = (await find(connection, [uri])).get(uri)
    if known is None:
        if undoes is not None:
            await journal.mark_undone(connection, undoes)
        return None
    texts = await _texts(connection, [known])
    if undoes is None:
        line = journal.Line("removed", known.document_id, uri, origin, _before(texts, known))
    else:
        line = journal.Line("restored", known.document_id, uri, origin, None, undoes)
    await journal.record(connection, [line], at, undo_depth)
    await _delete_chunks(connection, [known], texts)
    await _delete_documents(connection, [known])
    return Forgotten(known.document_id, uri, known.chunks)
