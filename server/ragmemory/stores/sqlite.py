"""The store: one SQLite file with documents, chunks, embeddings, full text and journal.

Each method is one transaction or one read of `MemoryFile`; the statements are in the other modules here.
Scores and ranks are computed elsewhere.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from msgspec.structs import asdict

from ragconfig import wal
from ragconfig.places import file_name, location
from ragmemory.errors import DocumentNotFound, MemoryDamaged
from ragmemory.stores import (
    backup,
    changes,
    chunks,
    code,
    hidden,
    ingestions,
    journal,
    meta,
    outlines,
    parts,
    reembedding,
    repairing,
    reuse,
    sources,
    verifying,
    versions,
    writing,
)
from ragmemory.stores.file import MemoryFile
from ragmemory.stores.filters import Condition
from ragmemory.stores.fulltext import fulltext_query
from ragmemory.stores.outlines import StoredOutline
from ragmemory.types import (
    Changes,
    Checkpoint,
    Chunk,
    CodeFile,
    Document,
    DocumentInfo,
    DocumentOrder,
    DocumentPart,
    DocumentText,
    Embedding,
    Entry,
    Forgotten,
    Hit,
    Ingestion,
    Metadata,
    Origin,
    Passage,
    PortableDocument,
    Previous,
    Selection,
    Source,
    StagedDocument,
    Stats,
    StoredFile,
    SyncOutcome,
    Verified,
    Version,
    Write,
)

if TYPE_CHECKING:
    import sqlite3


logger = logging.getLogger(__name__)

_INFO = "document_id, uri, title, chunks, characters, added_at, updated_at, metadata"


class Store(MemoryFile):
    """Raises what `MemoryFile` raises."""

    def __init__(self, path: Path, busy_seconds: float, undo_depth: int, *, read_only: bool = False) -> None:
        super().__init__(path, busy_seconds, read_only=read_only)
        self._undo_depth = undo_depth

    # Write

    async def write(self, writes: Sequence[Write], embedder: tuple[str, int] | None) -> list[writing.Outcome]:
        """Write documents with different uris in one transaction; on return they are on the disk.

        `embedder` is the identity and dimensions of the embeddings, None if there are none. An outcome is
        None if the write has no chunks but needs them, an error if this write alone failed: UndoConflict,
        EmbedderMismatch, NotStored.
        """
        arguments = writes, embedder, datetime.now(UTC), self._undo_depth
        async with self._transaction() as connection:
            try:
                return await writing.write_batch(connection, *arguments)
            except Exception as error:
                if writing.concerns_the_file(error):
                    raise
            # One write failed: repeat the others without it.
            await connection.execute("ROLLBACK")
            await connection.execute("BEGIN IMMEDIATE")
            return await writing.write_each(connection, *arguments, self.path)

    async def remove(self, removals: Mapping[str, int | None], origin: Origin) -> list[Forgotten]:
        """Delete those of some documents that exist: by uri, the entry that this undoes.

        Raises UndoConflict; then nothing is deleted.
        """
        async with self._transaction() as connection:
            return await writing.remove(connection, removals, origin, datetime.now(UTC), self._undo_depth)

    # Write long documents: see `stores.hidden`

    async def begin(self, document: Document) -> StagedDocument:
        """Create a hidden document, to which chunks are added."""
        async with self._transaction() as connection:
            return await hidden.begin(connection, document, datetime.now(UTC))

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
        async with self._transaction() as connection:
            return await hidden.add(
                connection, staged, document, chunks, embeddings, inputs, embedder, datetime.now(UTC)
            )

    async def abandon(self, staged: StagedDocument) -> None:
        """Abandon a hidden document, unless it is visible by now."""
        async with self._transaction() as connection:
            await hidden.abandon(connection, staged)

    async def sweep(self) -> bool:
        """Remove a page of garbage; False if there is none."""
        async with self._reading() as connection:
            if not await hidden.has_garbage(connection, datetime.now(UTC)):
                return False
        async with self._transaction() as connection:
            return await hidden.sweep(connection, datetime.now(UTC))

    async def hidden_chunks(self) -> list[tuple[int, int]]:
        """Ranges of chunk ids, first and last, that an index holds but no search may return."""
        async with self._reading() as connection:
            return await hidden.ranges(connection)

    # Ingestions: see `stores.ingestions`

    async def begin_ingestion(self, job: Ingestion) -> Ingestion:
        """Store a new job, or return the one that runs for the same request."""
        async with self._transaction() as connection:
            return await ingestions.begin(connection, job, time.time())

    async def save_ingestion(self, job: Ingestion) -> bool:
        """Store the progress of a job. False if another process has cancelled it or taken it over."""
        async with self._transaction() as connection:
            return await ingestions.save(connection, job, time.time())

    async def cancel_ingestion(self, job: Ingestion) -> None:
        """Mark the job of another process as cancelled."""
        async with self._transaction() as connection:
            await ingestions.cancel(connection, job)

    async def take_over_ingestions(self, run_id: str, silent_seconds: float) -> list[Ingestion]:
        """Take over the jobs that another process has not saved for some time."""
        async with self._transaction() as connection:
            now = time.time()
            return await ingestions.take_over(connection, run_id, now, now - silent_seconds)

    async def set_stamps(self, stamps: Mapping[str, tuple[str, bytes]]) -> None:
        """Set the stamps of documents, by uri, if their text still has this digest."""
        async with self._transaction() as connection:
            await ingestions.set_stamps(connection, stamps)

    async def last_beat(self, run_id: str) -> float | None:
        """When the longest silent job of another process was saved; None if no other process has one."""
        async with self._reading() as connection:
            return await ingestions.last_beat(connection, run_id)

    async def running_ingestions(self) -> list[Ingestion]:
        """The jobs that run in any process."""
        async with self._reading() as connection:
            return await ingestions.running(connection)

    async def ingestions(self, limit: int) -> list[Ingestion]:
        """The newest jobs, newest first."""
        async with self._reading() as connection:
            return await ingestions.newest(connection, limit)

    async def ingestion(self, job_id: str) -> Ingestion | None:
        """One job."""
        async with self._reading() as connection:
            return await ingestions.find(connection, job_id)

    async def files(self, uris: Sequence[str]) -> dict[str, StoredFile]:
        """What is stored of these files."""
        async with self._reading() as connection:
            return await ingestions.files(connection, uris)

    async def uris_under(self, place: str) -> list[str]:
        """The uris of all documents of a file or below a folder."""
        async with self._reading() as connection:
            return await ingestions.uris_under(connection, place)

    # Blocks: see `stores.outlines`

    async def document_text(self, document: str) -> DocumentText:
        """A document by its id or uri, with all that is stored of its text. Raises DocumentNotFound."""
        while True:
            rows = await self._read(
                f"SELECT {_INFO}, number, digest, stamp,"
                f" (SELECT max(seq) FROM journal WHERE uri = documents.uri AND {journal.UNDOABLE}),"
                " (SELECT blocks FROM outlines WHERE outlines.document_id = documents.document_id)"
                " FROM documents WHERE hidden = 0 AND (document_id = ?1 OR uri = ?1)"
                " ORDER BY document_id = ?1 DESC LIMIT 1",
                [document],
            )
            if not rows:
                raise DocumentNotFound(document)
            *columns, number, digest, stamp, version, outline = rows[0]
            info = DocumentInfo(*self._decoded(columns))
            async with self._reading() as connection:
                text, places = await chunks.text_of(connection, number)
            if len(text) != info.characters or sha256(text.encode()).digest() != digest:
                # Another process has written it between the two reads; or the file is damaged.
                if await self.is_current(info.document_id, digest):
                    raise MemoryDamaged(str(self.path), "a text is not what was stored", info.uri)
                continue
            return DocumentText(info, text, digest, version or 0, stamp, places, outline or "")

    async def is_current(self, document_id: str, digest: bytes) -> bool:
        """Whether a document still has the text with this digest."""
        return bool(
            await self._read(
                "SELECT 1 FROM documents WHERE document_id = ? AND digest = ? AND hidden = 0",
                [document_id, digest],
            )
        )

    async def current_version(self, uri: str) -> int:
        """The number of the last version of a document, also of its removal; 0 if there is none."""
        async with self._reading() as connection:
            return (await journal.current_versions(connection, [uri])).get(uri, 0)

    async def outlines(self, document_ids: Sequence[str]) -> list[StoredOutline]:
        """The outlines of those of some documents that have one."""
        async with self._reading() as connection:
            return await outlines.find(connection, document_ids)

    async def save_outlines(self, new: Sequence[StoredOutline]) -> None:
        """Store outlines, except those of texts that are not the current ones."""
        async with self._transaction() as connection:
            await outlines.save(connection, new)

    async def documents_holding(self, phrases: Sequence[str], document_id: str = "") -> list[str]:
        """The ids of the documents in which every phrase occurs, ordered by uri; or of this one alone."""
        conditions = [
            "number IN (SELECT document FROM chunks WHERE chunk_id IN"
            " (SELECT rowid FROM fulltext WHERE fulltext MATCH ?))"
        ] * len(phrases)
        rows = await self._read(
            f"SELECT document_id FROM documents WHERE {' AND '.join(['hidden = 0', *conditions])}"
            " AND ? IN ('', document_id) ORDER BY uri",
            [*(fulltext_query([phrase], []) for phrase in phrases), document_id],
        )
        return [row[0] for row in rows]

    # Sources: see `stores.sources`

    async def sources(self) -> list[Source]:
        """All sources by uri, with the numbers of their documents."""
        async with self._reading() as connection:
            return await sources.listed(connection)

    async def change_sources(self, added: str | None, removed: Sequence[str]) -> None:
        """Add a source and remove others."""
        async with self._transaction() as connection:
            if added is not None:
                await sources.add(connection, added, journal.iso(datetime.now(UTC)))
            await sources.remove(connection, removed)

    async def note_sync(self, outcomes: Mapping[str, SyncOutcome]) -> None:
        """Record the outcomes of a sync, by uri, of those that are sources."""
        async with self._transaction() as connection:
            await sources.note_sync(connection, outcomes, journal.iso(datetime.now(UTC)))

    # Reembed

    async def begin_reembedding(self, identity: str) -> int:
        """Begin to collect new embeddings, or continue; return how many there are already."""
        async with self._transaction() as connection:
            return await reembedding.begin(connection, identity)

    async def not_reembedded(self, after: int, limit: int) -> list[reembedding.Missing]:
        """The next chunks, by id, without a new embedding."""
        async with self._reading() as connection:
            return await reembedding.missing(connection, after, limit)

    async def collect_embeddings(self, identity: str, new: Sequence[reembedding.New]) -> bool:
        """Store new embeddings until the switch; False if another process has ended this reembedding.

        Raises EmbedderMismatch.
        """
        async with self._transaction() as connection:
            return await reembedding.collect(connection, identity, new)

    async def switch_embeddings(self, identity: str, after: int) -> bool | None:
        """Switch to the collected embeddings; False if another process has ended this reembedding.

        None if there are chunks after the one with the id `after`: collect these as well.
        """
        async with self._transaction() as connection:
            return await reembedding.switch(connection, identity, after, datetime.now(UTC))

    async def discard_embeddings(self) -> None:
        """Delete the embeddings of a former reembedding, or of one that was not completed."""
        async with self._transaction() as connection:
            await reembedding.discard(connection)

    # Follow

    async def version(self) -> tuple[int, int]:
        """A version of the file's content, which every commit of any process changes."""
        async with self._reading() as connection:
            return self._openings, await wal.pragma(connection, "data_version")

    async def fingerprint(self) -> str:
        """Identifies what an index is derived from: the memory, its embedder, and the last reembedding."""
        async with self._reading() as connection:
            return await meta.fingerprint(connection)

    async def has_passed(self, checkpoint: Checkpoint) -> bool:
        """Whether this store was ever at the checkpoint, so that an index can continue from it."""
        async with self._reading() as connection:
            return await changes.has_passed(connection, checkpoint)

    async def changes_since(self, checkpoint: Checkpoint, limit: int, upto: int = changes.MAX_ID) -> Changes:
        """At most `limit` chunks added after the checkpoint, up to the id `upto`, and all removals.

        Fewer chunks than `limit` mean that there are no more.
        """
        # One use of the file: between two uses the file may be replaced.
        async with self._reading() as connection:
            return await changes.since(connection, checkpoint, limit, upto)

    # Search

    async def find(self, uris: Sequence[str]) -> dict[str, writing.StoredDocument]:
        """The documents stored under these uris."""
        async with self._reading() as connection:
            return await writing.find(connection, uris)

    async def embedded(self, uris: Sequence[str]) -> list[reuse.Embedded]:
        """What was embedded of some documents, with the embeddings."""
        async with self._reading() as connection:
            return await reuse.embedded(connection, uris)

    async def embeddings_of(self, inputs: Sequence[bytes]) -> dict[bytes, Embedding]:
        """The embeddings that are stored for these digests of what was embedded."""
        async with self._reading() as connection:
            return await reuse.find(connection, inputs)

    async def allowed(self, filter: Condition) -> list[int]:
        """The ids, ascending, of the chunks whose documents match the filter."""
        condition, parameters = filter
        rows = await self._read(
            "SELECT chunk_id FROM chunks WHERE document IN"
            f" (SELECT number FROM documents WHERE hidden = 0 AND {condition}) ORDER BY chunk_id",
            parameters,
        )
        return [row[0] for row in rows]

    async def holding(self, phrases: Sequence[str], prefixes: Sequence[str]) -> set[int]:
        """The ids of the chunks that contain every phrase, and a word with every prefix."""
        rows = await self._read(
            "SELECT rowid FROM fulltext WHERE fulltext MATCH ?", [fulltext_query(phrases, prefixes)]
        )
        return {row[0] for row in rows}

    async def with_words(self, candidates: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """For each key the first candidate that is a word of any chunk, not only a form of its stem."""
        chosen: dict[str, str] = {}
        for word, others in candidates.items():
            for other in others:
                sql = "SELECT 1 FROM fulltext WHERE fulltext MATCH ? LIMIT 1"
                if await self._read(sql, [fulltext_query([other], [])]):
                    chosen[word] = other
                    break
        return chosen

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
            "SELECT chunk_id, document_id, uri, title, heading, start_line, end_line, text, context,"
            " places, surroundings, metadata FROM chunks JOIN documents ON number = document"
            " WHERE chunk_id IN (SELECT value FROM json_each(?)) AND hidden = 0",
            [msgspec.json.encode(list(scores)).decode()],
        )
        found = {row[0]: row for row in rows}
        present = [found[chunk_id] for chunk_id in scores if chunk_id in found]
        return [self._hit(scores[row[0]], row) for row in present]

    # Source code: see `stores.code`

    async def code_defining(self, name: str) -> list[tuple[CodeFile, str]]:
        """The headings of source code that mention a name: see `code.defining`."""
        async with self._reading() as connection:
            return await code.defining(connection, name)

    async def code_holding(self, name: str, most_characters: int) -> tuple[list[CodeFile], bool]:
        """The first files of source code that hold a name: see `code.holding`."""
        async with self._reading() as connection:
            return await code.holding(connection, name, most_characters)

    async def texts(self, document_ids: list[str]) -> dict[str, str]:
        """The whole texts of some documents, by their ids."""
        async with self._reading() as connection:
            return await code.texts(connection, document_ids)

    async def code_counts(self) -> dict[str, int]:
        """The number of files of source code by language."""
        async with self._reading() as connection:
            return await code.counts(connection)

    # Read

    async def documents(
        self,
        limit: int,
        offset: int,
        filter: Condition,
        order: DocumentOrder = "uri",
        *,
        descending: bool = False,
    ) -> tuple[list[DocumentInfo], int]:
        """A page of the documents that match the filter, in an order, and how many match in all."""
        condition, parameters = filter
        direction = "DESC" if descending else "ASC"
        rows = await self._read(
            f"SELECT {_INFO} FROM documents WHERE hidden = 0 AND {condition}"
            f" ORDER BY {order} {direction}, uri LIMIT ? OFFSET ?",
            [*parameters, limit, offset],
        )
        [(total,)] = await self._read(
            f"SELECT count(*) FROM documents WHERE hidden = 0 AND {condition}", parameters
        )
        return [DocumentInfo(*self._decoded(row)) for row in rows], total

    async def document(self, document: str) -> DocumentInfo:
        """One document by its id or uri. Raises DocumentNotFound."""
        # The uri of one document may be the id of another: the id takes precedence.
        rows = await self._read(
            f"SELECT {_INFO} FROM documents WHERE hidden = 0 AND (document_id = ?1 OR uri = ?1)"
            " ORDER BY document_id = ?1 DESC",
            [document],
        )
        if not rows:
            raise DocumentNotFound(document)
        return DocumentInfo(*self._decoded(rows[0]))

    async def document_part(
        self, document: str, lines: tuple[int, int | None], first_chunk: int, size: int
    ) -> DocumentPart:
        """Some lines of a document: see `parts.read`. Raises DocumentNotFound, BadArgument."""
        info = await self.document(document)
        async with self._reading() as connection:
            part = await parts.read(connection, info.document_id, lines, first_chunk, size)
        return DocumentPart(**asdict(info), **part._asdict())

    async def named(self, words: str, limit: int) -> list[DocumentInfo]:
        """The documents whose uri or title contains `words`, in either case of ASCII letters.

        Documents of exactly this title or file name come first, then the most recently changed.
        """
        rows = await self._read(
            f"SELECT {_INFO} FROM documents WHERE hidden = 0 AND (instr(lower(uri), lower(?1))"
            " OR instr(lower(uri), lower(?2)) OR instr(lower(title), lower(?1)))"
            " ORDER BY lower(title) = lower(?1) OR substr(uri, -length(?2) - 1) = '/' || ?2 DESC,"
            " updated_at DESC, uri LIMIT ?3",
            [words, quote(words), limit],  # in a file's URI the words are encoded
        )
        return [DocumentInfo(*self._decoded(row)) for row in rows]

    async def document_ids(self, prefix: str) -> list[str]:
        """The ids that begin with `prefix`, most recently changed first."""
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
            return "".join([(await chunks.text_of(connection, row[0]))[0] for row in rows])

    async def around(self, chunk_id: int, before: int, after: int) -> list[Passage]:
        """A chunk between its neighbours: see `chunks.around`."""
        async with self._reading() as connection:
            return await chunks.around(connection, chunk_id, before, after)

    async def turns_around(self, chunk_ids: Sequence[int], distance: int) -> dict[int, dict[int, str]]:
        """What is around the turns of conversations: see `chunks.turns_around`."""
        async with self._reading() as connection:
            return await chunks.turns_around(connection, chunk_ids, distance)

    async def journal(self, limit: int, before: int | None = None) -> list[Entry]:
        """The newest entries of the journal, newest first; those before an entry, by its number."""
        async with self._reading() as connection:
            return await journal.entries(connection, limit, before)

    async def change(
        self, selection: Selection, since: datetime | None = None
    ) -> tuple[list[Entry], list[str]]:
        """The writes that an undo undoes, newest first: see `journal.change`."""
        async with self._reading() as connection:
            return await journal.change(connection, selection, since)

    async def not_writes(self, seqs: Sequence[int]) -> list[int]:
        """Those of some numbers that no write has: see `journal.not_writes`."""
        async with self._reading() as connection:
            return await journal.not_writes(connection, seqs)

    async def is_undone(self, seq: int) -> bool:
        """Whether the write with this number is undone."""
        async with self._reading() as connection:
            return await journal.is_undone(connection, seq)

    async def documents_before(self, seqs: Sequence[int]) -> dict[int, Previous]:
        """The documents before some writes, by the entry of the write.

        Those that did not exist, or whose texts are no longer kept, are left out.
        """
        async with self._reading() as connection:
            kept = await journal.undo_data(connection, seqs)
            texts = {
                seq: (
                    *await chunks.text_of(connection, before.document),
                    await hidden.digest_of(connection, before.document),
                )
                for seq, before in kept.items()
                if before.document is not None
            }
        documents: dict[int, Previous] = {}
        for seq, before in kept.items():
            metadata = self._metadata(before.metadata, f"entry {seq} of the journal")
            places = chunks.decode_places(before.places or "")
            text, places, digest = texts.get(seq, (before.text, places, None))
            documents[seq] = Previous(text, metadata, before.added_at, digest, places)
        return documents

    async def document_after(self, number: int) -> tuple[int, PortableDocument] | None:
        """The document with the next higher number, and that number; None if there is none."""
        async with self._reading() as connection:
            rows = await connection.execute_fetchall(
                "SELECT number, uri, added_at, updated_at, metadata FROM documents"
                " WHERE number > ? AND hidden = 0 ORDER BY number LIMIT 1",
                [number],
            )
            for found, uri, added_at, updated_at, metadata in rows:
                text, places = await chunks.text_of(connection, found)
                decoded = self._metadata(metadata, f"the metadata of {uri}")
                return found, PortableDocument(text, decoded, added_at, updated_at, places)
        return None

    async def uri_of(self, document: str) -> str:
        """The uri of a document that was ever written, by its id or uri. Raises DocumentNotFound."""
        async with self._reading() as connection:
            uri = await versions.uri_of(connection, document)
        if uri is None:
            raise DocumentNotFound(document)
        return uri

    async def versions(self, uri: str, limit: int) -> list[Version]:
        """The newest versions of a document, the current one first: see `stores.versions`."""
        async with self._reading() as connection:
            return await versions.newest(connection, uri, limit)

    async def replaced_by(self, uri: str, version: int) -> int | None:
        """The write that replaced a version of a document; None for the current one."""
        async with self._reading() as connection:
            return await versions.replaced_by(connection, uri, version)

    async def embedder(self) -> tuple[str, int] | None:
        """Identity and dimensions of the embedder of this memory; None before the first embedding."""
        async with self._reading() as connection:
            return await meta.embedder(connection)

    async def embedders(self) -> dict[str, int]:
        """That embedder, and the one that is to replace it: see `meta.embedders`."""
        async with self._reading() as connection:
            return await meta.embedders(connection)

    async def stats(self) -> Stats:
        """Counts and sizes."""
        [(documents, chunks, characters)] = await self._read(
            "SELECT count(*), ifnull(sum(chunks), 0), ifnull(sum(characters), 0) FROM documents"
            " WHERE hidden = 0"
        )
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        async with self._reading() as connection:
            values = await meta.values(connection)
        return Stats(
            str(self.path),
            *(documents, chunks, characters, size),
            embedder=values.get("embedder", ""),
            dimensions=int(values.get("dimensions", "0")),
            next_embedder=values.get("next_embedder", ""),
            kept_embedder=values.get("kept_embedder", ""),
            kept_bytes=int(values.get("kept_bytes", "0")),
        )

    async def backup(self, target: Path, *, force: bool, on_progress: backup.OnProgress) -> int:
        """Copy the file, and return the bytes of the copy: see `stores.backup`."""
        async with self._reading():
            return await backup.backup(self.path, target, force=force, on_progress=on_progress)

    async def verify(self, on_progress: verifying.OnProgress) -> Verified:
        """Check the whole file, even if it cannot be opened."""
        return await verifying.verify(self.path, self._busy_seconds, on_progress)

    # Repair: see `stores.repairing`

    async def repair_fulltext(self) -> None:
        """Build the full text again."""
        async with self._transaction() as connection:
            await repairing.fulltext(connection)

    async def repair_references(self) -> None:
        """Build SQLite's indexes again, and delete derived rows that belong to nothing."""
        async with self._transaction() as connection:
            await repairing.references(connection)

    async def without_embedding(self, after: int, dimensions: int) -> tuple[int, list[reembedding.Missing]]:
        """Of the next chunks those without a sound embedding; and the last id that was read, or 0."""
        async with self._reading() as connection:
            return await repairing.without_embedding(connection, after, dimensions)

    async def put_embeddings(self, identity: str, new: Sequence[reembedding.New]) -> None:
        """Replace embeddings by those of the same embedder. Raises EmbedderMismatch."""
        async with self._transaction() as connection:
            await meta.require_embedder(connection, identity, len(new[0].vector) // 2)
            await repairing.put(connection, new)

    async def invalidate_indexes(self) -> None:
        """Have every index built again from the file."""
        async with self._transaction() as connection:
            await meta.put(connection, {"reembedded": journal.iso(datetime.now(UTC))})

    async def _read(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        async with self._reading() as connection:
            return list(await connection.execute_fetchall(sql, parameters))

    def _decoded(self, row: Sequence[Any]) -> list[Any]:
        """The row with its last column, the metadata, read from JSON. Raises MemoryDamaged."""
        return [*row[:-1], self._metadata(row[-1], "the metadata of a document")]

    def _hit(self, score: float, row: Sequence[Any]) -> list[Any]:
        """The fields of a hit without its rank. Raises MemoryDamaged."""
        *fields, context, stored, surroundings, metadata = row
        uri, title, start, end = row[2], row[3], row[5], row[6]
        try:
            places = chunks.decode_places(stored)
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
            raise MemoryDamaged(str(self.path), str(error), "the places of a chunk") from error
        where = location(file_name(uri, title), [(start, end)], places)
        return [
            score,
            *fields,
            self._metadata(metadata, "the metadata of a document"),
            context,
            where,
            places,
            surroundings,
        ]

    def _metadata(self, stored: str, place: str) -> Metadata:
        try:
            return msgspec.json.decode(stored, type=Metadata)
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:  # TypeError: NULL
            raise MemoryDamaged(str(self.path), str(error), place) from error


def _ranked(passages: Sequence[Sequence[Any]]) -> list[Hit]:
    return [Hit(rank, *fields) for rank, fields in enumerate(passages, 1)]
