"""The documents: listed, found by their names, read; and the files that they were read from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os.path import commonprefix
from typing import Any
from urllib.parse import quote

from msgspec.structs import asdict

from ragcommon.contract.documents import DocumentFolder, DocumentInfo, DocumentPart
from ragcommon.contract.maintenance import PortableDocument
from ragcommon.files.uris import is_address
from ragmemory.errors import DocumentNotFound, MemoryDamaged
from ragmemory.stores import chunks, journal, parts
from ragmemory.stores.engine import StorePart
from ragmemory.stores.filters import compile_filter
from ragmemory.stores.values import decode_metadata
from ragmemory.stores.writing import REMOVED, STAGED
from ragmemory.types.documents import DocumentOrder, DocumentText, StoredFile

# Columns that are fields of a DocumentInfo; and all that it is made of.
_FIELDS = ("document_id", "uri", "title", "chunks", "characters", "added_at", "updated_at")
_INFO = f"{', '.join(_FIELDS)}, metadata, machine, digest, {journal.WRITTEN_BY} AS written_by"
# Enough to tell whether a text has changed.
_DIGEST_DIGITS = 16
# One document by its id or uri. The uri of one may be the id of another: the id takes precedence.
_NAMED = "hidden = 0 AND (document_id = ?1 OR uri = ?1) ORDER BY document_id = ?1 DESC LIMIT 1"
# A condition on documents, with the parameters of `range_under`.
UNDER = "hidden = 0 AND (uri = ? OR uri > ? AND uri < ?)"


def range_under(place: str) -> list[str]:
    """The parameters of UNDER: the uri of a file or page, or a folder with all that is below it."""
    if is_address(place):  # The addresses below it are other pages.
        return [place, "", ""]
    # A range of the unique index on uri: "0" comes after "/".
    folder = place.rstrip("/")
    return [place, f"{folder}/", f"{folder}0"]


class DocumentStore(StorePart):
    """A document is named by its id or uri."""

    async def page(
        self,
        limit: int,
        offset: int = 0,
        filter: dict[str, Any] | None = None,
        order: DocumentOrder = "uri",
        *,
        descending: bool = False,
    ) -> tuple[list[DocumentInfo], int]:
        """A page of the documents that match a filter, and how many match in all. Raises BadArgument.

        Raises MemoryDamaged if there are no documents although there are passages.
        """
        condition, parameters = compile_filter(filter or {}, self._engine.dialect)
        direction = "DESC" if descending else "ASC"
        order_by = f"ORDER BY {order} {direction}, uri"
        # The page first: sorting would look up the writer of every document.
        rows = await self._engine.read(
            f"SELECT {_INFO} FROM documents WHERE number IN"
            f" (SELECT number FROM documents WHERE hidden = 0 AND {condition} {order_by} LIMIT ? OFFSET ?)"
            f" {order_by}",
            [*parameters, limit, offset],
        )
        [(total,)] = await self._engine.read(
            f"SELECT count(*) FROM documents WHERE hidden = 0 AND {condition}", parameters
        )
        if not total and not filter:
            await self.ensure_empty()
        # After an empty page there are no more, even if a document was added between the two statements.
        return [self._info(row) for row in rows], total if rows or not limit else min(total, offset)

    async def have_chunks(self) -> bool:
        """Whether there are chunks that can be found."""
        rows = await self._engine.read("SELECT 1 FROM documents WHERE hidden = 0 AND chunks > 0 LIMIT 1")
        return bool(rows)

    async def ensure_empty(self) -> None:
        """Raises MemoryDamaged if it only seems to be empty: SQLite may find no rows in a damaged table."""
        # All values of `hidden`: without them SQLite would read its index, which may be intact.
        known = f"SELECT number FROM documents WHERE hidden IN (0, {STAGED}, {REMOVED})"
        if await self._engine.read(f"SELECT 1 FROM chunks WHERE document NOT IN ({known}) LIMIT 1"):
            reason = "there are passages of documents that it does not have"
            raise MemoryDamaged(self._engine.place, reason, "the table documents")

    async def folders(self, place: str) -> tuple[list[DocumentFolder], int]:
        """The folders below a place, and the number of documents in the place itself.

        `place` is "" or ends with a slash. A folder that holds nothing but one folder is left out: the inner
        one stands for it.
        """
        under = "TRUE" if not place else "uri > ?1 AND uri < ?2"
        rows = await self._engine.read(
            "SELECT substr(rest, 1, instr(rest, '/')), count(*), min(uri), max(uri) FROM"
            f" (SELECT uri, substr(uri, length(?1) + 1) AS rest FROM documents WHERE hidden = 0 AND {under})"
            " AS inside GROUP BY 1 ORDER BY 1",
            [place, f"{place[:-1]}0"] if place else [""],
        )
        # What is common to the first and the last uri is common to all between them.
        folders = [
            DocumentFolder(re.sub("[^/]*$", "", commonprefix([first, last])), number)  # noqa: RUF071
            for folder, number, first, last in rows
            if folder
        ]
        return folders, sum(number for folder, number, *_ in rows if not folder)

    async def find(self, document: str) -> DocumentInfo:
        """One document by its id or uri. Raises DocumentNotFound."""
        rows = await self._engine.read(f"SELECT {_INFO} FROM documents WHERE {_NAMED}", [document])
        if not rows:
            raise DocumentNotFound(document)
        return self._info(rows[0])

    async def part(
        self, document: str, lines: tuple[int, int | None], first_chunk: int, size: int
    ) -> DocumentPart:
        """Some lines of a document: see `parts.read`. Raises DocumentNotFound, BadArgument."""
        info = await self.find(document)
        async with self._engine.reading() as connection:
            part = await parts.read(connection, info.document_id, lines, first_chunk, size)
        return DocumentPart(**asdict(info), **part._asdict())

    async def whole(self, document: str) -> DocumentText:
        """A document by its id or uri, with all that is stored of its text. Raises DocumentNotFound."""
        while True:
            rows = await self._engine.read(
                f"SELECT {_INFO}, number, digest, stamp,"
                f" (SELECT max(seq) FROM journal WHERE uri = documents.uri AND {journal.UNDOABLE}),"
                " (SELECT blocks FROM outlines WHERE outlines.document_id = documents.document_id)"
                f" FROM documents WHERE {_NAMED}",
                [document],
            )
            if not rows:
                raise DocumentNotFound(document)
            *columns, number, digest, stamp, version, outline = rows[0]
            info = self._info(columns)
            async with self._engine.reading() as connection:
                text, places = await chunks.text_of(connection, number)
            if len(text) != info.characters or chunks.text_digest(text) != digest:
                # Another process has written it between the two reads; or the file is damaged.
                if await self._is_current(info.document_id, digest):
                    raise MemoryDamaged(self._engine.place, "a text is not what was stored", info.uri)
                continue
            return DocumentText(info, text, digest, version or 0, stamp, places, outline or "")

    async def read(self, document: str) -> tuple[DocumentInfo, str]:
        """A document and its text. Raises DocumentNotFound."""
        info = await self.find(document)
        texts = await self._column(
            "SELECT text FROM documents JOIN chunks ON document = number WHERE document_id = ?"
            " ORDER BY chunk_id",
            [info.document_id],
        )
        return info, "".join(texts)

    async def named(self, words: str, limit: int) -> list[DocumentInfo]:
        """The documents whose uri or title contains `words`, in either case of ASCII letters.

        Documents of exactly this title or file name come first, then the most recently changed.
        """
        rows = await self._engine.read(
            f"SELECT {_INFO} FROM documents WHERE hidden = 0 AND (instr(lower(uri), lower(?1)) > 0"
            " OR instr(lower(uri), lower(?2)) > 0 OR instr(lower(title), lower(?1)) > 0)"
            " ORDER BY lower(title) = lower(?1) OR substr(uri, length(uri) - length(?2)) = '/' || ?2 DESC,"
            " updated_at DESC, uri LIMIT ?3",
            [words, quote(words), limit],  # in a file's URI the words are encoded
        )
        return [self._info(row) for row in rows]

    async def ids(self, prefix: str) -> list[str]:
        """The ids that begin with `prefix`, most recently changed first."""
        return await self._column(
            "SELECT document_id FROM documents WHERE hidden = 0 AND substr(document_id, 1, length(?1)) = ?1"
            " ORDER BY updated_at DESC, document_id",
            [prefix],
        )

    async def holding(self, phrases: Sequence[str], document_id: str = "") -> list[str]:
        """The ids of the documents in which every phrase occurs, ordered by uri; or of this one alone."""
        dialect = self._engine.dialect
        conditions = [
            "number IN (SELECT document FROM chunks WHERE chunk_id IN"
            f" (SELECT rowid FROM fulltext WHERE {dialect.fulltext_condition}))"
        ] * len(phrases)
        return await self._column(
            f"SELECT document_id FROM documents WHERE {' AND '.join(['hidden = 0', *conditions])}"
            " AND ? IN ('', document_id) ORDER BY uri",
            [*(dialect.fulltext_query([phrase]) for phrase in phrases), document_id],
        )

    async def after(self, number: int, uris: Sequence[str] = ()) -> tuple[int, str, PortableDocument] | None:
        """The document with the next higher number, that number and its uri; None if there is none.

        With `uris`, only these documents.
        """
        among, parameters = self._engine.dialect.among("uri", uris) if uris else ("TRUE", [])
        async with self._engine.reading() as connection:
            rows = await connection.execute_fetchall(
                "SELECT number, uri, added_at, updated_at, metadata FROM documents"
                f" WHERE number > ? AND hidden = 0 AND {among} ORDER BY number LIMIT 1",
                [number, *parameters],
            )
            for found, uri, added_at, updated_at, metadata in rows:
                text, places = await chunks.text_of(connection, found)
                decoded = decode_metadata(metadata, self._engine.place, f"the metadata of {uri}")
                return found, uri, PortableDocument(text, decoded, added_at, updated_at, places)
        return None

    async def files(self, uris: Sequence[str]) -> dict[str, StoredFile]:
        """What is stored of these files."""
        condition, parameters = self._engine.dialect.among("uri", uris)
        rows = await self._engine.read(
            f"SELECT uri, document_id, chunks, stamp, digest, machine FROM documents"
            f" WHERE hidden = 0 AND {condition}",
            parameters,
        )
        return {row[0]: StoredFile(*row[1:]) for row in rows}

    async def file(self, uri: str) -> StoredFile | None:
        """What is stored of this file."""
        return (await self.files([uri])).get(uri)

    async def cuts(self, numbers: Sequence[int]) -> dict[int, list[chunks.Cut]]:
        """How documents are cut into chunks, by document number."""
        condition, parameters = self._engine.dialect.among("document", numbers)
        rows = await self._engine.read(
            "SELECT document, start_line, end_line, length(text), heading, context, surroundings, places,"
            f" headings FROM chunks WHERE {condition} ORDER BY chunk_id",
            parameters,
        )
        cuts: dict[int, list[chunks.Cut]] = {number: [] for number in numbers}
        for number, *rest in rows:
            cuts[number].append(chunks.Cut(*rest))
        return cuts

    async def set_stamps(self, stamps: Mapping[str, tuple[str, bytes]]) -> None:
        """Set the stamps of documents, by uri, if their text still has this digest.

        This machine has the files.
        """
        async with self._engine.transaction() as connection:
            await connection.executemany(
                "UPDATE documents SET stamp = ?, machine = ? WHERE uri = ? AND digest = ? AND hidden = 0",
                ((stamp, self._engine.machine, uri, digest) for uri, (stamp, digest) in stamps.items()),
            )

    async def uris_under(self, place: str, machine: str) -> list[str]:
        """The uris of all documents of a file or below a folder that a machine has loaded."""
        return await self._column(
            f"SELECT uri FROM documents WHERE {UNDER} AND machine = ? ORDER BY uri",
            [*range_under(place), machine],
        )

    async def _is_current(self, document_id: str, digest: bytes) -> bool:
        """Whether a document still has the text with this digest."""
        return bool(
            await self._engine.read(
                "SELECT 1 FROM documents WHERE document_id = ? AND digest = ? AND hidden = 0",
                [document_id, digest],
            )
        )

    def _info(self, row: Sequence[Any]) -> DocumentInfo:
        """From the columns of _INFO. Raises MemoryDamaged."""
        *columns, metadata, machine, digest, written_by = row
        return DocumentInfo(
            **dict(zip(_FIELDS, columns, strict=True)),
            metadata=decode_metadata(metadata, self._engine.place, "the metadata of a document"),
            written_by=written_by,
            machine="" if machine == self._engine.machine else machine,
            digest=digest.hex()[:_DIGEST_DIGITS],
        )
