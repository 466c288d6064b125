"""The rows of chunks: their texts, embeddings and full text. Called with the write lock held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import accumulate, zip_longest
from typing import NamedTuple

import msgspec

from ragcommon.text.places import Place, within
from ragmemory.stores import meta, reuse
from ragmemory.stores.engine import Connection, FulltextRow
from ragmemory.types.writes import Chunk, Document, Embedding

COLUMNS = (
    *("chunk_id", "document", "heading", "start_line", "end_line"),
    *("text", "context", "surroundings", "places", "headings"),
)
# Columns with what a chunk is embedded and searched by: title, heading, surroundings, text.
SEARCHED = "title, heading, surroundings, context || text"


class DocumentChunks(NamedTuple):
    """Some or all chunks of one document."""

    number: int
    document: Document
    chunks: Sequence[Chunk]
    embeddings: Sequence[Embedding]
    inputs: Sequence[bytes]  # the digests of what was embedded; empty: not stored


async def insert(
    connection: Connection, parts: Sequence[DocumentChunks], table: meta.Table = "embeddings"
) -> int:
    """Insert chunks with full text, and embeddings into `table`. The ids have no gaps; return the first.

    With `other_embeddings` there are empty ones in `embeddings`: an index reads only chunks that have any.
    """
    last_id = await connection.dialect.last_chunk_id(connection)
    # The first chunk id of each document.
    firsts = list(accumulate((len(part.chunks) for part in parts), initial=last_id + 1))

    def chunk_rows() -> Iterator[tuple[object, ...]]:
        for first, part in zip(firsts, parts, strict=False):
            for chunk_id, chunk in enumerate(part.chunks, first):
                text, cut = part.document.text[chunk.start : chunk.end], cut_of(part.document, chunk)
                yield (
                    *(chunk_id, part.number, cut.heading, cut.start_line, cut.end_line),
                    *(text, cut.context, cut.surroundings, cut.places, cut.headings),
                )

    def fulltext_rows() -> Iterator[FulltextRow]:
        for first, part in zip(firsts, parts, strict=False):
            title, text = part.document.title, part.document.text
            for chunk_id, chunk in enumerate(part.chunks, first):
                yield FulltextRow(chunk_id, title, chunk.heading, text[chunk.start : chunk.end])

    def embedding_rows() -> Iterator[tuple[object, ...]]:
        embedded = (pair for part in parts for pair in zip_longest(part.embeddings, part.inputs))
        for chunk_id, pair in enumerate(embedded, last_id + 1):
            yield chunk_id, *pair

    await connection.insert_many("chunks", COLUMNS, chunk_rows())
    await connection.insert_many(table, ("chunk_id", "vector", "input"), embedding_rows())
    if table != "embeddings":
        empty = ((row[0], b"") for row in embedding_rows())
        await connection.insert_many("embeddings", ("chunk_id", "vector"), empty)
    await connection.dialect.insert_fulltext(connection, fulltext_rows())
    return last_id + 1


class Cut(NamedTuple):
    """How a chunk was cut from its document: all that is stored of it except its text, as it is stored."""

    start_line: int
    end_line: int
    characters: int
    heading: str
    context: str
    surroundings: str
    places: str
    headings: str


def cut_of(document: Document, chunk: Chunk) -> Cut:
    """The cut of a new chunk."""
    return Cut(
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        characters=chunk.end - chunk.start,
        heading=chunk.heading,
        context=chunk.context,
        surroundings=chunk.surroundings,
        places=encode_places(within(document.places, chunk.start_line, chunk.end_line)),
        headings=encode_places(chunk.headings),
    )


# Document number → (chunk_id, heading, text, places) of each chunk, in order.
Texts = dict[int, list[tuple[int, str, str, str]]]


async def texts_of(connection: Connection, numbers: Sequence[int]) -> Texts:
    """The chunks of some documents, by document number."""
    condition, parameters = connection.dialect.among("document", numbers)
    rows = await connection.execute_fetchall(
        f"SELECT document, chunk_id, heading, text, places FROM chunks WHERE {condition} ORDER BY chunk_id",
        parameters,
    )
    texts: Texts = {number: [] for number in numbers}
    for number, *rest in rows:
        texts[number].append(tuple(rest))
    return texts


async def delete(connection: Connection, titles: dict[int, str], texts: Texts) -> None:
    """Delete all chunks of some documents, with embeddings and full text; `titles` are by document number."""
    await connection.dialect.delete_fulltext(
        connection,
        (
            FulltextRow(chunk_id, title, heading, text)
            for number, title in titles.items()
            for chunk_id, heading, text, _ in texts[number]
        ),
    )
    await reuse.keep(connection, list(titles))
    await connection.executemany("DELETE FROM chunks WHERE document = ?", [[number] for number in titles])


async def text_of(connection: Connection, number: int) -> tuple[str, list[Place]]:
    """The whole text of a document, also of a hidden one, and its places."""
    rows = await connection.execute_fetchall(
        "SELECT text, places FROM chunks WHERE document = ? ORDER BY chunk_id", [number]
    )
    return "".join(row[0] for row in rows), joined_places(row[1] for row in rows)


def encode_places(places: Sequence[Place]) -> str:
    """The stored form of places."""
    return msgspec.json.encode(places).decode() if places else ""


def decode_places(stored: str) -> list[Place]:
    """Places from their stored form. Raises msgspec.DecodeError."""
    return msgspec.json.decode(stored, type=list[Place]) if stored else []


def joined_places(stored: Iterable[str]) -> list[Place]:
    """The places of a document, from those of all its chunks. Raises msgspec.DecodeError."""
    return list(dict.fromkeys(place for places in stored for place in decode_places(places)))


def text_digest(text: str) -> bytes:
    """The digest of a document's text."""
    return sha256(text.encode()).digest()
