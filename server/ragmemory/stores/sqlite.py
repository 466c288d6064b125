"""The store: one SQLite file with documents, chunks, embeddings, full text and journal.

Two connections: a long write never keeps a query waiting (WAL: readers see the last commit). Any number of
processes may have the same file open. Rank and score are made elsewhere; this only finds rows again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
import msgspec
from anyio import to_thread

from ragconfig.readable import Readable, readable
from ragmemory.errors import DocumentNotFound, MemoryDamaged, MemoryFull, MemoryReadOnly, MemoryUnusable
from ragmemory.stores import connection as connections
from ragmemory.stores import hidden, journal, reembedding, verifying, writing
from ragmemory.stores.filters import Condition
from ragmemory.stores.fulltext import fulltext_query
from ragmemory.stores.schema import MIGRATIONS
from ragmemory.stores.sharing import SharedLock
from ragmemory.types import (
    Built,
    Changes,
    Chunk,
    DocumentInfo,
    Draft,
    Embedding,
    Entry,
    Forgotten,
    Hit,
    Mark,
    Metadata,
    Origin,
    Previous,
    Stats,
    Verified,
    Write,
)

if TYPE_CHECKING:
    import sqlite3

    import aiosqlite

logger = logging.getLogger(__name__)

# The highest integer of SQLite.
MOST_INTEGER = 2**63 - 1
_INFO = "document_id, uri, title, chunks, characters, added_at, updated_at, metadata"


class Store:
    """Every method raises MemoryUnusable, MemoryBusy, MemoryDamaged or NotAMemory if the file does not work.

    A file that cannot be written because the disk is full or read-only is opened for reading alone. A write
    then tries to open it again, and raises MemoryFull or MemoryReadOnly. `read_only`: nothing is written.
    """

    def __init__(self, path: Path, busy_seconds: float, undo_depth: int, *, read_only: bool = False) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._undo_depth = undo_depth
        self._read_only = read_only
        self._openings = 0
        self._is_open = False
        self._use = SharedLock()
        self._file: connections.Identity | None = None
        self._companions: dict[Path, connections.Identity | None] = {}
        # Without a writer the file is open for reading alone, in the way that `_readable` says.
        self._writer: aiosqlite.Connection | None = None
        self._reader: aiosqlite.Connection
        self._readable: Readable | None = None
        self._writing = anyio.Lock()
        self._damage: str | None = None  # its place, once it was looked for

    async def open(self) -> None:
        """Open the file, or make it. Raises also MemoryTooNew."""
        # A connection whose opening is cancelled half-way would leave its thread behind.
        with anyio.CancelScope(shield=True):
            try:
                await self._open()
            except MemoryDamaged as error:
                raise await self._located(error) from error

    async def _open(self) -> None:
        if self._read_only:
            await self._open_to_read()
            return
        try:
            await self._open_to_write()
        except (MemoryFull, MemoryReadOnly) as error:
            await self._open_to_read()
            logger.warning("%s It is opened for reading alone.", error)

    async def _open_to_write(self) -> None:
        with self._mapped():
            connections.create_private(self.path)
            async with AsyncExitStack() as undo:
                writer = await connections.connect(self.path, self._busy_seconds)
                undo.push_async_callback(writer.close)
                await connections.prepare(writer, self.path, self._busy_seconds)
                reader = await connections.connect(self.path, self._busy_seconds, read_only=True)
                undo.pop_all()
        self._opened(reader, writer)

    async def _open_to_read(self) -> None:
        async with AsyncExitStack() as undo:
            with self._mapped():
                way = await to_thread.run_sync(readable, self.path, len(MIGRATIONS))
                undo.callback(way.close)
                reader = await connections.connect(way.uri, self._busy_seconds)
                undo.push_async_callback(reader.close)
                if way.is_private:
                    await connections.prepare(reader, self.path, self._busy_seconds)
                else:
                    await connections.check(reader, self.path)
                await reader.execute("PRAGMA query_only = ON")
            undo.pop_all()
        self._opened(reader, None, way)

    def _opened(
        self, reader: aiosqlite.Connection, writer: aiosqlite.Connection | None, way: Readable | None = None
    ) -> None:
        self._reader, self._writer, self._readable = reader, writer, way
        self._file = connections.identity(self.path)
        self._companions = connections.companions(self.path)
        self._openings += 1
        self._is_open = True

    async def close(self) -> None:
        """Close both connections, after what is under way."""
        async with self._use.exclusive():
            await self._close()

    async def _close(self) -> None:
        self._is_open = False
        try:
            await connections.close(self._reader)
        finally:
            if self._writer is not None:
                await connections.close(self._writer)
            if self._readable is not None:
                self._readable.close()

    @property
    def is_writable(self) -> bool:
        """False while the file is open for reading alone."""
        return self._writer is not None

    def is_replaced(self) -> bool:
        """Whether another file, or none, lies where this one was opened, or it changed unseen by SQLite."""
        if not self._is_open or self._file != connections.identity(self.path):
            return True
        return self._readable is not None and self._readable.is_outdated()

    async def reopen(self) -> None:
        """Go on with the file that lies there now. Raises what `open` does."""
        async with self._use.exclusive():
            is_another = self._file != connections.identity(self.path)
            if self._is_open:
                await self._close()
            if is_another:
                # SQLite leaves the replaced file's write-ahead log behind, and would play it into the new.
                connections.remove_companions(self._companions)
            await self.open()

    async def _ensure_writer(self) -> None:
        """Open the file for writing if it was opened for reading alone. Raises MemoryFull, MemoryReadOnly."""
        if self._writer is not None or not self._is_open:
            return
        if self._read_only:
            raise MemoryReadOnly(str(self.path), "memory.read_only is set")
        async with self._use.exclusive():
            if self._is_open and self._writer is None:
                reader, way = self._reader, self._readable
                with anyio.CancelScope(shield=True):
                    await self._open_to_write()
                    await connections.close(reader)
                    if way is not None:
                        way.close()

    # Writing

    async def write(self, writes: Sequence[Write], embedder: tuple[str, int] | None) -> list[writing.Outcome]:
        """Write documents of different uris in one transaction; on return they are on the disk.

        `embedder` is the identity and the dimensions behind the embeddings, None if there are none.
        An outcome is None where chunks turned out to be needed, an error where this one write failed: an
        UndoConflict where an undo came too late, EmbedderMismatch, NotStored.
        """
        arguments = writes, embedder, datetime.now(UTC), self._undo_depth
        async with self._transaction() as connection:
            try:
                return await writing.write_batch(connection, *arguments)
            except Exception as error:
                if writing.concerns_the_file(error):
                    raise
            # One of them failed: the others must not fail with it.
            await connection.execute("ROLLBACK")
            await connection.execute("BEGIN IMMEDIATE")
            return await writing.write_each(connection, *arguments)

    async def remove(self, uri: str, origin: Origin, undoes: int | None = None) -> Forgotten | None:
        """Delete a document; None if there is no such one. Raises UndoConflict."""
        async with self._transaction() as connection:
            return await writing.remove(connection, uri, origin, datetime.now(UTC), self._undo_depth, undoes)

    # Writing long documents: see `stores.hidden`

    async def begin(self, draft: Draft) -> Built:
        """Make a hidden document, to which chunks are added."""
        async with self._transaction() as connection:
            return await hidden.begin(connection, draft, datetime.now(UTC))

    async def add(
        self,
        built: Built,
        draft: Draft,
        chunks: Sequence[Chunk],
        embeddings: Sequence[Embedding],
        embedder: str,
    ) -> Built | None:
        """Add the next chunks, a page at most; `embedder` is the identity behind the embeddings.

        None if the hidden document is gone: the file was replaced. Raises EmbedderMismatch.
        """
        async with self._transaction() as connection:
            return await hidden.add(connection, built, draft, chunks, embeddings, embedder, datetime.now(UTC))

    async def abandon(self, built: Built) -> None:
        """Give up a hidden document, unless it is visible by now."""
        async with self._transaction() as connection:
            await hidden.abandon(connection, built)

    async def sweep(self) -> bool:
        """Remove a page of what is hidden for good; False if there is nothing left to remove."""
        async with self._reading() as connection:
            if not await hidden.has_garbage(connection, datetime.now(UTC)):
                return False
        async with self._transaction() as connection:
            return await hidden.sweep(connection, datetime.now(UTC))

    async def hidden_chunks(self) -> list[tuple[int, int]]:
        """Ranges of chunk ids, first and last, that the index follows but no reader may see."""
        async with self._reading() as connection:
            return await hidden.ranges(connection)

    # Making the embeddings anew

    async def begin_reembedding(self) -> None:
        """Nothing is gathered yet."""
        async with self._using_writer() as connection:
            await reembedding.begin(connection)

    async def gather(self, chunk_ids: Sequence[int], embeddings: Sequence[Embedding]) -> None:
        """Keep new embeddings aside until the switch."""
        async with self._transaction("DEFERRED") as connection:
            await reembedding.gather(connection, chunk_ids, embeddings)

    async def switch_embeddings(self, mark: Mark, identity: str) -> int | None:
        """Put what was gathered up to the mark in place, at once; how many there are now.

        None where chunks were added after the mark: gather these, too.
        """
        async with self._transaction() as connection:
            return await reembedding.switch(connection, mark, identity, datetime.now(UTC))

    # Following

    async def version(self) -> tuple[int, int]:
        """Differs from the last one when anything was committed since, by whomever."""
        async with self._reading() as connection:
            return self._openings, await connections.pragma(connection, "data_version")

    async def fingerprint(self) -> str:
        """Names what an index is derived from: this memory, its embedder, and when all was embedded anew."""
        rows = await self._read("SELECT key, value FROM meta ORDER BY key")
        return " ".join(f"{key}={value}" for key, value in rows)

    async def has_passed(self, mark: Mark) -> bool:
        """Whether this store ever was at the mark, and so can go on from it."""
        async with self._reading() as connection:
            if mark == Mark():
                return True
            # Pages of hidden documents are written without a line in the journal.
            [(last_id,)] = await connection.execute_fetchall(
                "SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'chunks'"
            )
            is_held = await journal.holds(connection, mark.entry, mark.entry_at)
            return is_held and mark.chunk_id <= last_id

    async def changes_since(self, mark: Mark, limit: int, upto: int = MOST_INTEGER) -> Changes:
        """At most `limit` chunks added after the mark, up to the id `upto`, and all removals.

        Fewer than `limit`: that was all.

        Chunks are read before removals, so a chunk that goes in between is in both lists and ends up removed.
        """
        # All of one file: between two uses it may be another.
        async with self._reading() as connection:
            rows = list(
                await connection.execute_fetchall(
                    "SELECT chunk_id, title, heading, text, vector"
                    " FROM chunks JOIN documents ON number = document LEFT JOIN embeddings USING(chunk_id)"
                    " WHERE chunk_id > ? AND chunk_id <= ? AND (hidden = 0 OR vector IS NOT NULL)"
                    " ORDER BY chunk_id LIMIT ?",
                    [mark.chunk_id, upto, limit],
                )
            )
            removals = list(
                await connection.execute_fetchall(
                    "SELECT seq, chunk_id FROM removals WHERE seq > ?", [mark.removal]
                )
            )
            _, dimensions = await writing.embedder(connection) or ("", 0)
            # Last of all: whoever has come to this line has all of the above.
            entry = await journal.last(connection)
        return Changes(
            mark=Mark(
                rows[-1][0] if rows else mark.chunk_id,
                removals[-1][0] if removals else mark.removal,
                *entry,
            ),
            chunk_ids=[row[0] for row in rows],
            titles=[row[1] for row in rows],
            headings=[row[2] for row in rows],
            texts=[row[3] for row in rows],
            # One that is lost or cut off is like no text at all: the chunk is still found by its words.
            embeddings=[
                row[4] if row[4] is not None and len(row[4]) == 2 * dimensions else bytes(2 * dimensions)
                for row in rows
            ],
            removed=[row[1] for row in removals],
        )

    # Finding

    async def find(self, uris: Sequence[str]) -> dict[str, writing.Known]:
        """What is stored under these uris."""
        async with self._reading() as connection:
            return await writing.find(connection, uris)

    async def allowed(self, filter: Condition) -> list[int]:
        """The ids, ascending, of the chunks whose documents pass the filter."""
        condition, parameters = filter
        rows = await self._read(
            "SELECT chunk_id FROM chunks WHERE document IN"
            f" (SELECT number FROM documents WHERE hidden = 0 AND {condition}) ORDER BY chunk_id",
            parameters,
        )
        return [row[0] for row in rows]

    async def holding(self, phrases: Sequence[str], prefixes: Sequence[str]) -> set[int]:
        """The ids of the chunks that hold every phrase word for word and a word for every prefix."""
        rows = await self._read(
            "SELECT rowid FROM fulltext WHERE fulltext MATCH ?", [fulltext_query(phrases, prefixes)]
        )
        return {row[0] for row in rows}

    async def hits(self, scores: dict[int, float]) -> tuple[list[Hit], MemoryDamaged | None]:
        """The chunks with these ids in this order; a chunk that was removed in the meantime is left out.

        A chunk that cannot be read is left out, too, and the error is returned. It is raised if none can be.
        """
        try:
            return _ranked(await self._passages(scores)), None
        except MemoryDamaged as error:
            damage = error
        passages: list[list[Any]] = []
        for chunk_id, score in scores.items():
            with suppress(MemoryDamaged):
                passages += await self._passages({chunk_id: score})
        if not passages:
            raise damage
        logger.warning("Passages were left out of an answer. %s %s", damage, damage.hint)
        return _ranked(passages), damage

    async def _passages(self, scores: dict[int, float]) -> list[list[Any]]:
        """The fields of a hit without its rank, for each chunk that is found."""
        rows = await self._read(
            "SELECT chunk_id, document_id, uri, title, heading, start_line, end_line, text, metadata"
            " FROM chunks JOIN documents ON number = document"
            " WHERE chunk_id IN (SELECT value FROM json_each(?)) AND hidden = 0",
            [msgspec.json.encode(list(scores)).decode()],
        )
        found = {row[0]: row for row in rows}
        present = [found[chunk_id] for chunk_id in scores if chunk_id in found]
        return [[scores[row[0]], *self._decoded(row)] for row in present]

    # Looking

    async def documents(self, limit: int, offset: int, uri_glob: str) -> tuple[list[DocumentInfo], int]:
        """A page of the documents whose uri matches, by uri; and how many match in all."""
        rows = await self._read(
            f"SELECT {_INFO} FROM documents WHERE hidden = 0 AND uri GLOB ? ORDER BY uri LIMIT ? OFFSET ?",
            [uri_glob, limit, offset],
        )
        [(total,)] = await self._read(
            "SELECT count(*) FROM documents WHERE hidden = 0 AND uri GLOB ?", [uri_glob]
        )
        return [DocumentInfo(*self._decoded(row)) for row in rows], total

    async def document(self, document: str) -> DocumentInfo:
        """One document by its id or uri. Raises DocumentNotFound."""
        # The uri of one may be the id of another: an id names one document for certain.
        rows = await self._read(
            f"SELECT {_INFO} FROM documents WHERE hidden = 0 AND (document_id = ?1 OR uri = ?1)"
            " ORDER BY document_id = ?1 DESC",
            [document],
        )
        if not rows:
            raise DocumentNotFound(document)
        return DocumentInfo(*self._decoded(rows[0]))

    async def document_ids(self, prefix: str) -> list[str]:
        """The ids that begin so, of the documents last changed first."""
        rows = await self._read(
            "SELECT document_id FROM documents WHERE hidden = 0 AND substr(document_id, 1, length(?1)) = ?1"
            " ORDER BY updated_at DESC, document_id",
            [prefix],
        )
        return [row[0] for row in rows]

    async def text(self, document_id: str) -> str:
        """The whole text of a document."""
        async with self._reading() as connection:
            rows = await connection.execute_fetchall(
                "SELECT number FROM documents WHERE document_id = ?", [document_id]
            )
            return "".join([await writing.text(connection, row[0]) for row in rows])

    async def journal(self, limit: int) -> list[Entry]:
        """The newest entries of the journal, newest first."""
        async with self._reading() as connection:
            return await journal.entries(connection, limit)

    async def last_write(self) -> tuple[Entry, Previous | None] | None:
        """The last write that is not undone, and the document before it: see `journal.last_write`."""
        async with self._reading() as connection:
            last = await journal.last_write(connection)
            if last is None:
                return None
            entry, before = last
            if before is None:
                return entry, None
            text = before.text
            if before.document is not None:
                text = await writing.text(connection, before.document)
            place = f"entry {entry.seq} of the journal"
            return entry, Previous(text, self._metadata(before.metadata, place), before.added_at)

    async def embedder(self) -> tuple[str, int] | None:
        """The identity and the dimensions of the embedder that filled this memory; None before the first."""
        async with self._reading() as connection:
            return await writing.embedder(connection)

    async def stats(self) -> Stats:
        """Counts and sizes."""
        [row] = await self._read(
            "SELECT count(*), ifnull(sum(chunks), 0), ifnull(sum(characters), 0) FROM documents"
            " WHERE hidden = 0"
        )
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        identity, dimensions = await self.embedder() or ("", 0)
        return Stats(str(self.path), *(*row, size, identity, dimensions))

    async def verify(self, on_progress: verifying.OnProgress) -> Verified:
        """Check the whole file; it need not be open, nor fit to be opened."""
        return await verifying.verify(self.path, self._busy_seconds, on_progress)

    def _mapped(self) -> AbstractContextManager[None]:
        return connections.mapped_errors(self.path, self._busy_seconds)

    async def _read(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        async with self._reading() as connection:
            return list(await connection.execute_fetchall(sql, parameters))

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[aiosqlite.Connection]:
        async with self._using():
            yield self._reader

    @asynccontextmanager
    async def _transaction(
        self, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE"
    ) -> AsyncIterator[aiosqlite.Connection]:
        async with (
            self._using_writer() as connection,
            connections.transaction(connection, self._busy_seconds, kind),
        ):
            yield connection

    @asynccontextmanager
    async def _using_writer(self) -> AsyncIterator[aiosqlite.Connection]:
        await self._ensure_writer()
        async with self._using(), self._writing:
            if self._writer is None:  # reopened meanwhile
                raise MemoryUnusable(str(self.path), "it was opened again for reading alone")
            yield self._writer

    @asynccontextmanager
    async def _using(self) -> AsyncIterator[None]:
        """Until the end it is neither closed nor reopened; between two uses, it may be."""
        async with self._use.shared():
            if not self._is_open:
                raise MemoryUnusable(str(self.path), "what lies there now could not be opened")
            try:
                with self._mapped():
                    yield
            except MemoryDamaged as error:
                raise await self._located(error) from error
            if self._readable is not None and self._readable.is_outdated():
                raise MemoryUnusable(str(self.path), "another process wrote to it while it was read")

    async def _located(self, error: MemoryDamaged) -> MemoryDamaged:
        """The error with the place of the damage, if that is found within a second."""
        if error.place:
            return error
        if self._damage is None:
            self._damage = await verifying.place_of_damage(self.path)
        return MemoryDamaged(error.path, error.reason, self._damage)

    def _decoded(self, row: sqlite3.Row) -> list[Any]:
        """The row with its last column, the metadata, read from JSON. Raises MemoryDamaged."""
        return [*row[:-1], self._metadata(row[-1], "the metadata of a document")]

    def _metadata(self, stored: str, place: str) -> Metadata:
        try:
            return msgspec.json.decode(stored, type=Metadata)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise MemoryDamaged(str(self.path), str(error), place) from error


def _ranked(passages: Sequence[Sequence[Any]]) -> list[Hit]:
    return [Hit(rank, *fields) for rank, fields in enumerate(passages, 1)]
