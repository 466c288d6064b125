"""The versions of a document: its state after each write. An undo is a write too, and what it undid stays.

A version has the number of its write in the journal. With each write the journal keeps the document before
it, so an earlier version is read from the write that replaced it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragcommon.contract.history import Origin, Version
from ragmemory.errors import DocumentNotFound
from ragmemory.stores import chunks, hidden, journal
from ragmemory.stores.engine import StorePart
from ragmemory.stores.values import decode_metadata
from ragmemory.types.history import Previous

# Texts that are in memory at a time.
_TEXTS = 64


class VersionStore(StorePart):
    """The versions of the documents of one memory."""

    async def uri_of(self, document: str) -> str:
        """The uri of a document that was ever written, by its id or uri; the id takes precedence.

        Raises DocumentNotFound.
        """
        async with self._engine.reading() as connection:
            for sql in (
                "SELECT uri FROM documents WHERE document_id = ? AND hidden = 0",
                "SELECT uri FROM documents WHERE uri = ? AND hidden = 0",
                "SELECT uri FROM journal WHERE uri = ? LIMIT 1",
                "SELECT uri FROM journal WHERE document_id = ? LIMIT 1",
            ):
                for [uri] in await connection.execute_fetchall(sql, [document]):
                    return str(uri)
        raise DocumentNotFound(document)

    async def newest(self, uri: str, limit: int) -> list[Version]:
        """The newest versions of a document, the current one first; a removal is a version without text."""
        versions: list[Version] = []
        async with self._engine.reading() as connection:
            rows = await connection.execute_fetchall(
                "SELECT characters FROM documents WHERE uri = ? AND hidden = 0", [uri]
            )
            # The size of the text after the write of a row; the next write, the row before it here, keeps it.
            characters = next((row[0] for row in rows), None)
            exists: bool | None = characters is not None  # after the write of a row; None: not known
            before = journal.AFTER_ALL
            while page := await connection.execute_fetchall(
                "SELECT seq, at, action, client, session, host, write_group, before_text,"
                " before_document, (SELECT characters FROM documents WHERE number = before_document)"
                " FROM journal WHERE uri = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
                [uri, before, min(_TEXTS, limit - len(versions))],
            ):
                for seq, at, action, client, session, host, group, text, document, count in page:
                    existed = action != "added"
                    if action == "restored":
                        # If the undo after it keeps no text, that one undid a removal, and this one an
                        # addition. Earlier releases kept none of updates either.
                        exists = text is None if exists is None else exists
                        action = "updated" if exists else "removed"
                        existed = text is not None or None
                    exists = existed
                    size = 0 if action == "removed" else characters
                    origin = Origin(client, session, group, host)
                    versions.append(Version(seq, at, action, origin, size, current=not versions))
                    # `length` of SQLite would end at a NUL character.
                    characters = count if document is not None else None if text is None else len(text)
                before = seq
        return versions

    async def replaced_by(self, uri: str, version: int) -> int | None:
        """The write that replaced a version of a document; None for the current one."""
        [(seq,)] = await self._engine.read(
            "SELECT min(seq) FROM journal WHERE uri = ? AND seq > ?", [uri, version]
        )
        return None if seq is None else int(seq)

    async def before_writes(self, seqs: Sequence[int]) -> dict[int, Previous]:
        """The documents before some writes, by the entry of the write.

        Those that did not exist, or whose texts are no longer kept, are left out.
        """
        async with self._engine.reading() as connection:
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
            metadata = decode_metadata(before.metadata, self._engine.place, f"entry {seq} of the journal")
            places = chunks.decode_places(before.places or "")
            text, places, digest = texts.get(seq, (before.text, places, None))
            documents[seq] = Previous(text, metadata, before.added_at, digest, places)
        return documents
