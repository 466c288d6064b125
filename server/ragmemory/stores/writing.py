"""What is written in one transaction. Called with the write lock held; begins and commits nothing itself."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from ragmemory.errors import EmbedderMismatch, NotStored, RagMemoryError, UndoConflict
from ragmemory.stores import journal
from ragmemory.stores.fulltext import searchable
from ragmemory.types import Draft, Forgotten, Injected, Origin, Status, Write

if TYPE_CHECKING:
    import aiosqlite

_FULLTEXT = "INSERT INTO fulltext(rowid, title, heading, text) VALUES(?, ?, ?, ?)"
# A contentless FTS5 table forgets a row only when it is told what the row held.
_FULLTEXT_DELETE = "INSERT INTO fulltext(fulltext, rowid, title, heading, text) VALUES('delete', ?, ?, ?, ?)"


logger = logging.getLogger(__name__)

_OF_THE_FILE = frozenset(
    (
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
        *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
        *(sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_PROTOCOL),
    )
)

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


async def find(connection: aiosqlite.Connection, uris: Sequence[str]) -> dict[str, Known]:
    """What the store holds under these uris."""
    # Not through json_each: it cuts a text at its first NUL, and older releases stored such uris.
    rows = await connection.execute_fetchall(
        "SELECT uri, number, document_id, title, digest, metadata, chunks, added_at"
        f" FROM documents WHERE uri IN ({', '.join('?' * len(uris))})",
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
        if self.rewritten or self.known is None:
            return len(self.write.chunks or ())
        return self.known.chunks


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
        await settle_embedder(connection, *embedder)
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
        elif missing == "everything" and write.chunks is None:
            outcomes.append(None)
        else:
            last_number += old is None
            step = _Step(write, old, missing == "everything", old.number if old else last_number)
            steps.append(step)
            outcomes.append(Injected(draft.document_id, draft.uri, step.status, step.chunks))
    if steps:
        await _write(connection, steps, at, undo_depth)
    return outcomes


async def _write(connection: aiosqlite.Connection, steps: list[_Step], at: datetime, undo_depth: int) -> None:
    texts = await _texts(connection, [step.known for step in steps if step.known])
    await journal.record(connection, (_line(step, texts) for step in steps), at, undo_depth)
    await _clear(connection, [step.known for step in steps if step.known and step.rewritten], texts)
    await connection.executemany(
        "INSERT INTO documents(number, document_id, uri, title, digest, metadata, chunks, characters,"
        " created, added_at, updated_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT(number) DO UPDATE SET"
        " title = excluded.title, digest = excluded.digest, metadata = excluded.metadata,"
        " chunks = excluded.chunks, characters = excluded.characters, created = excluded.created,"
        " updated_at = excluded.updated_at",
        (_document_row(step, at) for step in steps),
    )
    await _write_chunks(connection, [step for step in steps if step.rewritten])


def _line(step: _Step, texts: Texts) -> journal.Line:
    draft, known, undoes = step.write.draft, step.known, step.write.undoes
    if undoes is not None:
        return journal.Line("restored", draft.document_id, draft.uri, step.write.origin, None, undoes)
    before = known and journal.Before(_joined(texts, known), known.metadata, known.added_at)
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


async def _write_chunks(connection: aiosqlite.Connection, steps: list[_Step]) -> None:
    rows = await connection.execute_fetchall("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'")
    last_id = next((int(row[0]) for row in rows), 0)
    # Where the ids of each document's chunks begin.
    firsts = list(accumulate((step.chunks for step in steps), initial=last_id + 1))

    def chunk_rows() -> Iterator[tuple[object, ...]]:
        for first, step in zip(firsts, steps, strict=False):
            text = step.write.draft.text
            for chunk_id, chunk in enumerate(step.write.chunks or (), first):
                part = text[chunk.start : chunk.end]
                yield chunk_id, step.number, chunk.heading, chunk.start_line, chunk.end_line, part

    def fulltext_rows() -> Iterator[tuple[object, ...]]:
        for first, step in zip(firsts, steps, strict=False):
            title, text = searchable(step.write.draft.title), step.write.draft.text
            for chunk_id, chunk in enumerate(step.write.chunks or (), first):
                yield chunk_id, title, searchable(chunk.heading), searchable(text[chunk.start : chunk.end])

    embeddings = (embedding for step in steps for embedding in step.write.embeddings)
    await connection.executemany("INSERT INTO chunks VALUES(?, ?, ?, ?, ?, ?)", chunk_rows())
    await connection.executemany(
        "INSERT INTO embeddings VALUES(?, ?)",
        enumerate(embeddings, last_id + 1),
    )
    await connection.executemany(_FULLTEXT, fulltext_rows())


Texts = dict[int, list[tuple[int, str, str]]]  # number → (chunk_id, heading, text)


async def _texts(connection: aiosqlite.Connection, documents: Sequence[Known]) -> Texts:
    rows = await connection.execute_fetchall(
        "SELECT document, chunk_id, heading, text FROM chunks"
        " WHERE document IN (SELECT value FROM json_each(?)) ORDER BY chunk_id",
        [msgspec.json.encode([known.number for known in documents]).decode()],
    )
    texts: Texts = {known.number: [] for known in documents}
    for number, *rest in rows:
        texts[number].append((rest[0], rest[1], rest[2]))
    return texts


def _joined(texts: Texts, known: Known) -> str:
    return "".join(text for _, _, text in texts[known.number])


async def _clear(connection: aiosqlite.Connection, documents: Sequence[Known], texts: Texts) -> None:
    """Delete the chunks of documents, with all that hangs on them."""
    if not documents:
        return
    await connection.executemany(
        _FULLTEXT_DELETE,
        (
            (chunk_id, searchable(known.title), searchable(heading), searchable(text))
            for known in documents
            for chunk_id, heading, text in texts[known.number]
        ),
    )
    await connection.executemany(
        "DELETE FROM chunks WHERE document = ?", [(known.number,) for known in documents]
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
        before = journal.Before(_joined(texts, known), known.metadata, known.added_at)
        line = journal.Line("removed", known.document_id, uri, origin, before)
    else:
        line = journal.Line("restored", known.document_id, uri, origin, None, undoes)
    await journal.record(connection, [line], at, undo_depth)
    await _clear(connection, [known], texts)
    await connection.execute("DELETE FROM documents WHERE number = ?", [known.number])
    return Forgotten(known.document_id, uri, known.chunks)


async def settle_embedder(connection: aiosqlite.Connection, identity: str, dimensions: int) -> None:
    """Record whose embeddings these are. Raises EmbedderMismatch if another's are there already."""
    stored = await embedder(connection)
    if stored is None:
        values = [("embedder", identity), ("dimensions", str(dimensions))]
        await connection.executemany("INSERT INTO meta VALUES(?, ?)", values)
    elif stored != (identity, dimensions):
        raise EmbedderMismatch(*stored, identity, dimensions)


async def embedder(connection: aiosqlite.Connection) -> tuple[str, int] | None:
    """The identity and the dimensions of the embedder that filled this memory; None before the first."""
    rows = await connection.execute_fetchall("SELECT key, value FROM meta")
    values = {row[0]: row[1] for row in rows}
    return (values["embedder"], int(values["dimensions"])) if "embedder" in values else None
