"""Read a document in parts: some of its lines, in pages of a bounded size."""

from __future__ import annotations

from collections.abc import AsyncIterator
from io import StringIO
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from ragcommon.text.places import Place, within
from ragmemory.errors import BadArgument
from ragmemory.stores.chunks import joined_places
from ragmemory.stores.engine import Connection

# Bytes of a usual chunk, to guess how many fill a part.
_CHUNK_BYTES = 600


class Part(NamedTuple):
    text: str
    start_line: int  # from 1; it may have begun in the part before
    end_line: int  # inclusive
    places: list[Place]  # those of its lines
    next_cursor: str | UnsetType  # the chunk with which the next part begins


class _Chunk(NamedTuple):
    chunk_id: int
    line: int  # the line of its first character
    text: str
    places: str  # as they are stored


async def read(
    connection: Connection,
    document_id: str,
    lines: tuple[int, int | None],
    first_chunk: int,
    size: int,
) -> Part:
    """The text of some lines, from a chunk on, until it has `size` bytes of UTF-8; at least of one chunk.

    Places count as text.

    `lines` are the first and the last, from 1; the last may be None. `first_chunk` is 0, or the cursor of the
    part before. Raises BadArgument for lines and a cursor that the document does not have.
    """
    first, last = lines
    texts: list[str] = []
    places: list[str] = []
    start_line, next_cursor = 0, None
    async for chunk in _chunks(connection, document_id, first_chunk, size // _CHUNK_BYTES + 2):
        if first_chunk not in (0, chunk.chunk_id) and not texts:
            break
        if last is not None and chunk.line > last:
            break
        text = clipped(chunk.text, first - chunk.line, None if last is None else last + 1 - chunk.line)
        size -= len(text.encode()) + len(chunk.places.encode())
        if texts and size < 0:
            next_cursor = str(chunk.chunk_id)
            break
        if text:
            start_line = start_line or max(chunk.line, first)
            texts.append(text)
            places.append(chunk.places)
    if not texts and first_chunk:
        raise BadArgument("cursor", "the document has changed since the page before; begin again without it")
    if not texts:
        raise BadArgument("start_line", "is after the last line of the document")
    text = "".join(texts)
    end_line = start_line + text.count("\n", 0, -1)
    found = within(joined_places(places), start_line, end_line)
    return Part(text, start_line, end_line, list(found), next_cursor or UNSET)


def clipped(text: str, start: int, end: int | None) -> str:
    """The lines of a text from number `start` to before number `end`, from 0; the first ones may be missing.

    Lines end with a line feed alone, as everywhere in memory.
    """
    lines = list(StringIO(text))
    return "".join(lines[max(start, 0) : None if end is None else max(end, 0)])


async def _chunks(connection: Connection, document_id: str, first: int, batch: int) -> AsyncIterator[_Chunk]:
    """The chunks of a document from an id on, read `batch` at a time."""
    while rows := await connection.execute_fetchall(
        "SELECT chunk_id, start_line, text, places FROM chunks"
        " WHERE document = (SELECT number FROM documents WHERE document_id = ? AND hidden = 0)"
        " AND chunk_id >= ? ORDER BY chunk_id LIMIT ?",
        [document_id, first, batch],
    ):
        for chunk_id, line, text, places in rows:
            blank = text[: len(text) - len(text.lstrip())]
            # The stored line is that of its first character that is not white space, if it has one.
            yield _Chunk(chunk_id, line - blank.count("\n") if len(blank) < len(text) else line, text, places)
        if len(rows) < batch:
            return
        first = rows[-1][0] + 1
