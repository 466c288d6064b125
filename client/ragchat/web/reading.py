"""Reading: the text of a document in parts, the place of a citation in it, and its page as it was printed.

No path comes from a request: a file is shown only if it is that of a document in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from anyio import to_thread
from msgspec import UNSET, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from ragchat.errors import DocumentUnknown, MemoryRefused
from ragchat.formatting import local
from ragchat.grounding.quotes import quoted_span
from ragchat.memory.client import MemoryClient
from ragchat.memory.matching import DOCUMENT_ID
from ragchat.memory.opening import IMAGES, Original, original_of
from ragchat.sanitize import one_line, sanitize
from ragchat.uris import exact_glob, short_location, short_uri
from ragchat.web.errors import BadRequest, NotFound
from ragchat.web.pages import drawn_page, image
from ragchat.web.site import Site, route
from ragcommon.contract.documents import DocumentPart
from ragcommon.text.places import page_in

# A browser shows this much at once without delay; the rest is loaded as the user goes on.
PART_TOKENS = 16_000
# Around a cited place: lines before it, and about so much in all.
AROUND, SOURCE_TOKENS = 12, 6_000
# Hits that are searched for a quotation that is no longer where it was.
SOUGHT = 5
MAX_LINE = 2**53
# With this word the memory refuses a line or a cursor that the document does not have.
_INVALID = "INVALID_PARAMS"
_CHANGED = "The document has changed since the part before this one was shown."


class Place(Struct, frozen=True):
    """A document and some of its lines, from 1."""

    document_id: str
    line: int = 1
    end: int | None = None
    cursor: str = ""  # of the part before


class Marked(Struct, frozen=True):
    """A line, some of which is quoted."""

    line: int
    before: str
    quoted: str
    after: str


class ShownPart(Struct, frozen=True):
    """Some lines. `next` leads to what follows; "" if that is all that was asked for."""

    document_id: str
    uri: str
    title: str
    name: str
    place: str  # such as "thesis.pdf p. 12"
    added: str
    updated: str
    written_by: str
    characters: int
    start_line: int
    begins: bool  # whether the first line is whole, rather than the rest of one
    lines: list[str]
    ends: bool  # whether the last line is whole
    next: str
    original: str  # what can be shown of the file: "page", "image", or ""
    pages: list[tuple[int, int]]  # of a PDF: first lines, and their page
    note: str = ""
    marked: list[Marked] = []  # the cited lines


async def read(memory: MemoryClient, place: Place) -> ShownPart:
    """A part of a document. Raises NotFound for a line after its last one, and what the memory raises."""
    try:
        part = await memory.part(place.document_id, place.line, place.end, place.cursor, PART_TOKENS)
    except MemoryRefused as error:
        if error.word != _INVALID or (place.line == 1 and not place.cursor):
            raise
        if place.cursor:
            raise MemoryRefused(error.word, _CHANGED, "Open it again.") from error
        raise NotFound("such line: the document is shorter") from error
    return await _shown(memory, part, begins=not place.cursor)


async def read_cited(memory: MemoryClient, given: Mapping[str, str]) -> ShownPart:
    """The text around a cited place, which is found again if the document has changed since.

    `given` has `id`, `line`, `end`, `quote` and `chunk`, the id of the cited passage.
    """
    place, quote = place_of(given), given.get("quote", "")
    passage = await _passage(memory, place.document_id, given.get("chunk", ""))
    if quote and not (passage and quoted_span(quote, passage.text)):
        around = await _around(memory, place)
        is_here = quoted_span(quote, around.text) is not None
        passage = None if is_here else await _elsewhere(memory, around, quote)
    part, begins = await _around_passage(memory, passage) if passage else (await _around(memory, place), True)
    shown = await _shown(memory, part, begins=begins, span=_cited(part, place, passage, quote))
    note = ""
    if quote and not shown.marked:
        note = "The document no longer holds the quotation."
    elif quote and shown.marked[0].line != place.line:
        note = "The document has changed since the answer: this is where the quotation is now."
    return replace(shown, note=" ".join(filter(None, (note, shown.note))))


class _Passage(NamedTuple):
    document_id: str
    chunk: str
    text: str
    line: int


async def _passage(memory: MemoryClient, document_id: str, chunk: str) -> _Passage | None:
    """A passage by its id; None if the document has it no more."""
    if not chunk.isdecimal():
        return None
    try:
        found = await memory.part(document_id, 1, None, chunk, 1)
    except DocumentUnknown:
        raise
    except MemoryRefused:
        return None
    return _Passage(document_id, chunk, found.text, found.start_line)


async def _elsewhere(memory: MemoryClient, part: DocumentPart, quote: str) -> _Passage | None:
    """The passage of the document that holds the quotation now."""
    for hit in (await memory.query(quote, SOUGHT, {"uri": exact_glob(part.uri)})).hits:
        if quoted_span(quote, hit.text):
            return _Passage(part.document_id, str(hit.chunk_id), hit.text, hit.text_line)
    return None


async def _around(memory: MemoryClient, place: Place) -> DocumentPart:
    """The text around a line, or the beginning of the document, if that has fewer lines now."""
    first = max(1, place.line - AROUND)
    try:
        return await memory.part(place.document_id, first, None, "", SOURCE_TOKENS)
    except MemoryRefused as error:
        if isinstance(error, DocumentUnknown) or first == 1:
            raise
    return await memory.part(place.document_id, 1, None, "", SOURCE_TOKENS)


async def _around_passage(memory: MemoryClient, passage: _Passage) -> tuple[DocumentPart, bool]:
    """The text around a passage; if its line is too long, from the passage on. Whether it begins a line."""
    around = await _around(memory, Place(passage.document_id, passage.line))
    if passage.text.strip() in around.text:
        return around, True
    return await memory.part(passage.document_id, 1, None, passage.chunk, SOURCE_TOKENS), False


def _cited(part: DocumentPart, place: Place, passage: _Passage | None, quote: str) -> tuple[int, int]:
    """Where what is cited begins and ends in the text: the quotation, the passage, or the lines."""
    if quote:
        return quoted_span(quote, part.text) or (0, 0)
    if passage and (start := part.text.find(passage.text.strip())) >= 0:
        return start, start + len(passage.text.strip())
    lines = [f"{line}\n" for line in part.text.split("\n")]
    first, last = place.line - part.start_line, (place.end or place.line) - part.start_line
    return sum(map(len, lines[:first])), sum(map(len, lines[: last + 1]))


async def _shown(
    memory: MemoryClient, part: DocumentPart, *, begins: bool, span: tuple[int, int] = (0, 0)
) -> ShownPart:
    original = await original_of(memory, part.uri, part.machine)
    marked = _marked(part, *span)
    first, last = (marked[0].line, marked[-1].line) if marked else (part.start_line, part.end_line)
    return ShownPart(
        document_id=part.document_id,
        uri=part.uri,
        title=one_line(part.title) or short_uri(part.uri),
        name=short_uri(part.uri, part.title),
        place=short_location(part.uri, [(first, last)], part.title, part.places),
        added=local(part.added_at),
        updated=local(part.updated_at),
        written_by=one_line(part.written_by or ""),
        characters=part.characters,
        start_line=part.start_line,
        begins=begins,
        lines=sanitize(part.text.removesuffix("\n")).split("\n"),
        ends=part.text.endswith("\n") or part.next_cursor is UNSET,
        next="" if part.next_cursor is UNSET else part.next_cursor,
        original=_kind(original),
        pages=[(line, page) for line, name in part.places if (page := page_in(name))],
        note=await _note(original, part),
        marked=marked,
    )


def _marked(part: DocumentPart, start: int, end: int) -> list[Marked]:
    marked, offset = [], 0
    for number, line in enumerate(part.text.split("\n"), part.start_line):
        a, b = max(start - offset, 0), min(end - offset, len(line))
        offset += len(line) + 1
        if a < b:
            marked.append(Marked(number, *map(sanitize, (line[:a], line[a:b], line[b:]))))
    return marked


def _kind(original: Original | None) -> str:
    if original is None or original.absence:
        return ""
    return "page" if original.suffix == ".pdf" else "image" if original.suffix in IMAGES else ""


async def _note(original: Original | None, part: DocumentPart) -> str:
    """What the user should know of the file; "" if it is as memory has it."""
    if original is None:
        return ""
    name = short_uri(part.uri)
    if original.absence:
        return f"{name} {original.absence}."
    try:
        written = (await to_thread.run_sync(original.path.stat)).st_mtime
    except OSError:
        return ""
    # To the second: the clocks of file systems are coarser than ours.
    if int(written) <= int(datetime.fromisoformat(part.updated_at).timestamp()):
        return ""
    moment = datetime.fromtimestamp(written, UTC).isoformat()
    return f"{name} was written again on {local(moment)}; memory has the text of {local(part.updated_at)}."


def place_of(given: Mapping[str, str]) -> Place:
    """Raises BadRequest, NotFound."""
    document_id = given.get("id", "")
    if not DOCUMENT_ID.fullmatch(document_id):
        raise NotFound("document of that id")
    line = _number(given, "line") or 1
    end = _number(given, "end")
    cursor = given.get("cursor", "")
    if cursor and not cursor.isdecimal():
        raise BadRequest("cursor is not one of a part before")
    return Place(document_id, line, None if end is None else max(line, end), cursor)


def _number(given: Mapping[str, str], name: str) -> int | None:
    """Raises BadRequest."""
    text = given.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < len(str(MAX_LINE)) and int(text)):
        raise BadRequest(f"{name} is not a number from 1")
    return int(text)


async def document(site: Site, request: Request) -> ShownPart:
    return await read(site.memory, place_of(request.query_params))


async def source(site: Site, request: Request) -> ShownPart:
    return await read_cited(site.memory, request.query_params)


async def original(site: Site, request: Request) -> Response:
    """The page of a PDF, or an image, of the document `id`. Raises NotFound, PageUnusable."""
    place = place_of(request.query_params)
    number = _number(request.query_params, "page") or 1
    part = await site.memory.part(place.document_id, 1, None, "", 1)
    found = await original_of(site.memory, part.uri, part.machine)
    kind = _kind(found)
    if found is None or not kind:
        raise NotFound("file of this document that can be shown")
    content, media_type = await (drawn_page(found.path, number) if kind == "page" else image(found.path))
    # The page is made of a file that any program can have written: no browser may guess another type.
    return Response(content, media_type=media_type, headers={"cache-control": "private, max-age=60"})


ROUTES = (
    route("/api/document", document),
    route("/api/source", source),
    route("/api/original", original),
)
