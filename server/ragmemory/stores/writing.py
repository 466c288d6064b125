"""Writing and removing documents. Called with the write lock held."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Literal, NamedTuple

from ragcommon.contract.documents import Forgotten, Injected, Status
from ragcommon.contract.history import Origin
from ragmemory.errors import RagMemoryError, StaleVersion, UndoConflict
from ragmemory.stores import chunks, journal, meta, outlines
from ragmemory.stores.chunks import DocumentChunks
from ragmemory.stores.engine import Connection, Engine, one_of
from ragmemory.types.writes import Document, Write

logger = logging.getLogger(__name__)

# Maximum number of chunks per transaction: more would keep other writers waiting. A longer document is
# hidden, then removed page by page: see `stores.hidden`.
PAGE = 400
# Values of documents.hidden; 0: visible.
STAGED, REMOVED = 1, 2

# The differences for which a document is split and embedded.
REWRITTEN = ("everything", "chunks")

Outcome = Injected | Exception | None


class StoredDocument(NamedTuple):
    """A document in the store, without its text."""

    uri: str
    number: int
    document_id: str
    title: str
    digest: bytes
    metadata: str
    chunks: int
    added_at: str
    updated_at: str
    first_places: str  # those of its first chunk, as they are stored
    stamp: str = ""
    machine: str = ""

    @property
    def is_long(self) -> bool:
        """Whether it takes several transactions to remove it."""
        return self.chunks > PAGE


async def find(connection: Connection, uris: Sequence[str]) -> dict[str, StoredDocument]:
    """The visible documents with these uris."""
    condition, parameters = one_of("uri", uris)
    rows = await connection.execute_fetchall(
        "SELECT uri, number, document_id, title, digest, metadata, chunks, added_at, updated_at,"
        " coalesce((SELECT places FROM chunks WHERE document = documents.number ORDER BY chunk_id LIMIT 1),"
        f" ''), stamp, machine FROM documents WHERE {condition} AND hidden = 0",
        parameters,
    )
    return {row[0]: StoredDocument(*row) for row in rows}


def difference(
    document: Document, stored: StoredDocument | None
) -> Literal["everything", "chunks", "metadata", "nothing"]:
    """Which part of a document is not stored yet. The title counts as text: it is embedded and indexed.

    So do places: an earlier release may have found others in the same file. "chunks": it cut the same text
    otherwise.
    """
    if stored is None or stored.digest != document.digest or stored.title != document.title:
        return "everything"
    if document.places and (stored.first_places or document.places[0][0] == 1):
        first = chunks.encode_places(document.places[:1])
        if not stored.first_places.startswith(first.removesuffix("]")):
            return "everything"
    is_same = stored.metadata == document.metadata
    if document.is_outdated:
        return "chunks" if is_same else "everything"
    return "nothing" if is_same else "metadata"


class _Step(NamedTuple):
    """A document of a batch that has to be written."""

    write: Write
    stored: StoredDocument | None
    rewritten: bool  # its text and chunks, not its metadata alone
    number: int
    only_chunks: bool = False  # an undo would bring back the same text: this is no version of it

    @property
    def status(self) -> Status:
        if self.only_chunks:
            return "unchanged"
        return "updated" if self.stored else "added"

    @property
    def chunks(self) -> int:
        if not self.rewritten and self.stored is not None:
            return self.stored.chunks
        return self.write.staged.chunks if self.write.staged else len(self.write.chunks or ())


class Writing(NamedTuple):
    """Writes and removes documents in one transaction, `at` a time."""

    connection: Connection
    at: datetime
    undo_depth: int

    async def write_each(
        self, writes: Sequence[Write], embedder: tuple[str, int] | None, engine: Engine
    ) -> list[Outcome]:
        """Like `write_batch`, but a failed write is rolled back, and its error is its outcome.

        Slower: several statements for each document. Raises errors that concern the whole memory.
        """
        outcomes: list[Outcome] = []
        for write in writes:
            await self.connection.execute("SAVEPOINT one_write")
            try:
                outcomes += await self.write_batch([write], embedder)
            except Exception as error:
                if engine.concerns_all(error):
                    raise
                if not isinstance(error, RagMemoryError):
                    logger.warning("%s could not be stored", write.document.uri, exc_info=error)
                await self.connection.execute("ROLLBACK TO one_write")
                outcomes.append(engine.error_of_write(error, write.document.uri))
            await self.connection.execute("RELEASE one_write")
        return outcomes

    async def write_batch(self, writes: Sequence[Write], embedder: tuple[str, int] | None) -> list[Outcome]:
        """Write documents with different uris; the outcomes are in the same order.

        `embedder` is the identity and dimensions of the embeddings. Raises EmbedderMismatch.

        An outcome is None if the write has no chunks but needs them, because the document was changed or
        removed since the caller compared it; an UndoConflict if an undo came too late, a StaleVersion if an
        edit did.
        """
        table: meta.Table = "embeddings"
        if embedder and any(write.embeddings for write in writes):
            table = await meta.require_embedder(self.connection, *embedder)
        stored = await find(self.connection, [write.document.uri for write in writes])
        [(last_number,)] = await self.connection.execute_fetchall(
            "SELECT coalesce(max(number), 0) FROM documents"
        )
        new_numbers = count(last_number + 1)
        conflicts = await _conflicts(self.connection, writes)
        steps: list[_Step] = []
        outcomes: list[Outcome] = []
        for write in writes:
            document, old = write.document, stored.get(write.document.uri)
            missing = difference(document, old)
            if document.uri in conflicts:
                outcomes.append(conflicts[document.uri])
            elif missing == "nothing" and old and write.undoes is None:
                outcomes.append(Injected(document.document_id, document.uri, "unchanged", old.chunks))
            elif missing in REWRITTEN and not await _has_chunks(self.connection, write):
                outcomes.append(None)
            else:
                steps.append(step := _step(write, old, new_numbers, missing))
                outcomes.append(Injected(document.document_id, document.uri, step.status, step.chunks))
        if steps:
            await self._write(steps, table)
            await _finish_edits(self.connection, [step.write for step in steps])
        return outcomes

    async def remove(
        self, removals: Mapping[str, int | None], origin: Origin, machine: str | None
    ) -> list[Forgotten]:
        """Delete documents: by uri, the entry that this undoes. Raises UndoConflict.

        With `machine`, those that it has loaded. One that does not exist is left out, which also completes an
        undo.
        """
        connection = self.connection
        stored = await find(connection, list(removals))
        absent = [undoes for uri, undoes in removals.items() if uri not in stored and undoes is not None]
        await journal.mark_undone(connection, absent)
        documents = [one for one in stored.values() if machine in (None, one.machine)]
        if not documents:
            return []
        texts = await _texts(connection, documents)
        entries = []
        for one in documents:
            undoes = removals[one.uri]
            action = "removed" if undoes is None else "restored"
            before = _undo_data(texts, one) if self._keeps_text(undoes) else None
            entries.append(journal.NewEntry(action, one.document_id, one.uri, origin, before, undoes))
        await journal.record(connection, entries, self.at, self.undo_depth)
        await _delete_chunks(connection, documents, texts)
        await _delete_documents(connection, documents)
        return [Forgotten(one.document_id, one.uri, one.chunks) for one in documents]

    async def _write(self, steps: list[_Step], table: meta.Table) -> None:
        connection, moment = self.connection, journal.iso(self.at)
        replaced = [step.stored for step in steps if step.stored and step.number != step.stored.number]
        old = [step.stored for step in steps if step.stored]
        texts = await _texts(connection, old)
        entries = (entry for step in steps for entry in self._entries(step, texts))
        await journal.record(connection, entries, self.at, self.undo_depth)
        await _delete_chunks(
            connection, [step.stored for step in steps if step.stored and step.rewritten], texts
        )
        await _delete_documents(connection, replaced)
        await connection.executemany(
            "INSERT INTO documents(number, document_id, uri, title, digest, metadata, chunks, characters,"
            " created, added_at, updated_at, stamp, machine) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT(number) DO UPDATE SET"
            " document_id = excluded.document_id, uri = excluded.uri, hidden = 0,"
            " title = excluded.title, digest = excluded.digest, metadata = excluded.metadata,"
            " chunks = excluded.chunks, characters = excluded.characters, created = excluded.created,"
            " added_at = excluded.added_at, updated_at = excluded.updated_at, stamp = excluded.stamp,"
            " machine = excluded.machine",
            (_document_row(step, moment) for step in steps),
        )
        await chunks.insert(
            connection,
            [
                DocumentChunks(step.number, write.document, write.chunks, write.embeddings, write.inputs)
                for step in steps
                if (write := step.write).chunks and step.rewritten
            ],
            table,
        )

    def _entries(self, step: _Step, texts: chunks.Texts) -> Iterator[journal.NewEntry]:
        """The entry of a write, and before it those of the earlier versions that come with it."""
        document, stored, undoes = step.write.document, step.stored, step.write.undoes
        if step.only_chunks:
            return
        written = document.document_id, document.uri, step.write.origin
        action = step.status if undoes is None else "restored"
        before = _undo_data(texts, stored) if stored and self._keeps_text(undoes) else None
        for one in step.write.earlier if not stored else ():
            yield journal.NewEntry(action, *written, before)
            action, before = "updated", _given_data(one)
        yield journal.NewEntry(action, *written, before, undoes)

    def _keeps_text(self, undoes: int | None) -> bool:
        """Whether the journal keeps the text before a write: an undo drops none beyond the depth."""
        return undoes is None or self.undo_depth > 0


async def _conflicts(connection: Connection, writes: Sequence[Write]) -> dict[str, Exception]:
    """The errors of undos and edits that come too late, by uri."""
    undone = [write.undoes for write in writes if write.undoes is not None]
    edited = [write.document.uri for write in writes if write.edit]
    undoable = await journal.undoable(connection, undone)
    versions = await journal.current_versions(connection, edited)
    conflicts: dict[str, Exception] = {}
    for write in writes:
        uri = write.document.uri
        if write.undoes is not None and write.undoes not in undoable:
            conflicts[uri] = UndoConflict(write.undoes)
        elif write.edit and write.edit.version != (current := versions.get(uri, 0)):
            conflicts[uri] = StaleVersion(uri, write.edit.version, current)
    return conflicts


def _step(write: Write, stored: StoredDocument | None, new_numbers: Iterator[int], missing: str) -> _Step:
    """What to write. A long document that is rewritten gets another number; any other keeps its own."""
    rewritten = missing in REWRITTEN
    if rewritten and write.staged:
        number = write.staged.number
    elif stored and not (rewritten and stored.is_long):
        number = stored.number
    else:
        number = next(new_numbers)
    only_chunks = missing == "chunks" and write.undoes is None and write.edit is None
    return _Step(write, stored, rewritten, number, only_chunks)


async def _finish_edits(connection: Connection, writes: Sequence[Write]) -> None:
    edits = [(write.document, write.edit) for write in writes if write.edit]
    await outlines.save(
        connection,
        [outlines.StoredOutline(one.document_id, one.digest, edit.outline) for one, edit in edits],
    )
    # Last, so that an earlier failure leaves the files unchanged.
    for _, edit in edits:
        if edit.replace_file:
            await edit.replace_file()


async def _has_chunks(connection: Connection, write: Write) -> bool:
    if write.staged is None:
        return write.chunks is not None
    # It no longer exists if the file was replaced, or if a sweep considered its process killed.
    return bool(
        await connection.execute_fetchall(
            f"SELECT 1 FROM documents WHERE number = ? AND uri = ? AND hidden = {STAGED}",
            [write.staged.number, write.staged.uri],
        )
    )


def _given_data(write: Write) -> journal.UndoData:
    document = write.document
    places = chunks.encode_places(document.places)
    return journal.UndoData(document.text, document.metadata, write.added_at, places=places)


def _document_row(step: _Step, moment: str) -> tuple[object, ...]:
    document = step.write.document
    added_at = step.stored.added_at if step.stored else step.write.added_at or moment
    updated_at = step.write.updated_at or moment
    if step.stored and step.only_chunks:
        updated_at = step.stored.updated_at
    # A stamp is that of a file on the machine of this process, which in SQLite has no name. An edit keeps it.
    stored = step.stored if step.write.edit or not document.stamp else None
    machine = document.machine or (stored.machine if stored else "")
    created = document.created
    if created is None:
        created = datetime.fromisoformat(added_at).timestamp()
    own = step.number, document.document_id, document.uri, document.title, document.digest, document.metadata
    times = created, added_at, updated_at
    return (*own, step.chunks, len(document.text), *times, document.stamp, machine)


def _undo_data(texts: chunks.Texts, stored: StoredDocument) -> journal.UndoData:
    """What undo needs. The text of a long document is not copied: its chunks are kept."""
    if stored.is_long:
        return journal.UndoData("", stored.metadata, stored.added_at, stored.number)
    rows = texts[stored.number]
    places = chunks.encode_places(chunks.joined_places(row[3] for row in rows))
    return journal.UndoData("".join(row[2] for row in rows), stored.metadata, stored.added_at, places=places)


async def _texts(connection: Connection, documents: Sequence[StoredDocument]) -> chunks.Texts:
    return await chunks.texts_of(connection, [stored.number for stored in documents if not stored.is_long])


async def _delete_chunks(
    connection: Connection, documents: Sequence[StoredDocument], texts: chunks.Texts
) -> None:
    """Delete the chunks of documents; long documents are hidden instead."""
    if not documents:
        return
    short = {stored.number: stored.title for stored in documents if not stored.is_long}
    await chunks.delete(connection, short, texts)
    for stored in documents:
        if stored.is_long:
            await _hide(connection, stored.number)


async def _hide(connection: Connection, number: int) -> None:
    """Hide a document from all readers; `stores.hidden` removes it later."""
    # A document without pages was written in one transaction, so its chunk ids have no gaps.
    await connection.execute(
        "INSERT INTO pages(first, last, document) SELECT min(chunk_id), max(chunk_id), document FROM chunks"
        " WHERE document = ?1 AND NOT EXISTS (SELECT 1 FROM pages WHERE document = ?1) GROUP BY document",
        [number],
    )
    await connection.execute(
        f"UPDATE documents SET hidden = {REMOVED}, document_id = ?1, uri = ?1 WHERE number = ?2",
        [hidden_name(), number],
    )


def hidden_name() -> str:
    """A random uri and id for a hidden document."""
    return f"hidden:{os.urandom(16).hex()}"


async def _delete_documents(connection: Connection, documents: Sequence[StoredDocument]) -> None:
    """Delete the rows of documents without chunks; hidden documents stay."""
    if not documents:
        return
    await connection.executemany(
        "DELETE FROM documents WHERE number = ? AND hidden = 0", [(stored.number,) for stored in documents]
    )
