"""Reading: the text of a document in parts, the place of a citation in it, and its page as it was printed.

No path comes from a request: a file is shown only if it is that of a document in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from anyio import to_thread
from msgspec import UNSET, Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from ragchat.errors import MemoryRefused
from ragchat.formatting import local
from ragchat.grounding.quotes import quoted_lines, quoted_span
from ragchat.memory.client import MemoryClient
from ragchat.memory.matching import DOCUMENT_ID
from ragchat.memory.opening import IMAGES, Original, original_of
from ragchat.sanitize import one_line, sanitize
from ragchat.uris import exact_glob, short_location, short_uri
from ragchat.web.errors import BadRequest, NotFound
from ragchat.web.pages import image, page
from ragchat.web.site import Site, route
from ragcommon.contract.documents import DocumentPart
from ragcommon.contract.errors import DOCUMENT_NOT_FOUND
from ragcommon.text.places import label, page_in

# A browser shows this much at once without delay; the rest is loaded as the user goes on.
PART_TOKENS = 16_000
# Around a cited place: lines before it, and about so much in all.
AROUND, SOURCE_TOKENS = 12, 6_000
# Hits that are searched for a quotation that is no longer where it was.
SOUGHT = 5
MAX_LINE = 2**53


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
    page: int | None  # of the first line, or of the cited place
    note: str = ""
    marked: list[Marked] = []  # the cited lines


async def read(memory: MemoryClient, place: Place) -> ShownPart:
    """A part of a document. Raises what the memory raises."""
    part = await memory.part(place.document_id, place.line, place.end, place.cursor, PART_TOKENS)
    return await _shown(memory, part, begins=not place.cursor)


async def read_cited(memory: MemoryClient, given: Mapping[str, str]) -> ShownPart:
    """The text around a cited place, which is found again if the document has changed since.

    `given` has `id`, `line`, `end`, `quote` and `chunk`, the id of the cited passage.
    """
    place, quote, note, begins = place_of(given), given.get("quote", ""), "", True
    try:
        part = await _around(memory, place.document_id, place.line)
    except MemoryRefused as error:
        if error.word == DOCUMENT_NOT_FOUND or not quote:
            raise
        part = await _around(memory, place.document_id, 1)
    if quote and quoted_span(quote, part.text) is None:
        if found := await _in_its_passage(memory, part, quote, given.get("chunk", "")):
            part, begins = found, False
        elif found := await _elsewhere(memory, part, quote):
            part, note = (
                found,
                "The document has changed since the answer: this is where the quotation is now.",
            )
        else:
            note = "The document no longer holds the quotation."
    shown = await _shown(
        memory, part, begins=begins, cited=(place.line, place.end or place.line), quote=quote
    )
    return replace(shown, note=" ".join(filter(None, (note, shown.note))))


async def _around(memory: MemoryClient, document_id: str, line: int) -> DocumentPart:
    return await memory.part(document_id, max(1, line - AROUND), None, "", SOURCE_TOKENS)


async def _in_its_passage(
    memory: MemoryClient, part: DocumentPart, quote: str, chunk: str
) -> DocumentPart | None:
    """The text from the cited passage on, if the lines before it are too long to be shown."""
    if part.next_cursor is UNSET or not chunk.isdecimal():
        return None
    try:
        found = await memory.part(part.document_id, 1, None, chunk, SOURCE_TOKENS)
    except MemoryRefused:  # The document has other passages now.
        return None
    return found if quoted_span(quote, found.text) else None


async def _elsewhere(memory: MemoryClient, part: DocumentPart, quote: str) -> DocumentPart | None:
    """The text around the quotation in another passage of the document."""
    for hit in (await memory.query(quote, SOUGHT, {"uri": exact_glob(part.uri)})).hits:
        if lines := quoted_lines(quote, hit.text, hit.start_line):
            found = await _around(memory, part.document_id, lines[0])
            return found if quoted_span(quote, found.text) else None
    return None


async def _shown(
    memory: MemoryClient,
    part: DocumentPart,
    *,
    begins: bool,
    cited: tuple[int, int] | None = None,
    quote: str = "",
) -> ShownPart:
    original = await original_of(memory, part.uri, part.machine)
    marked = _marked(part, cited, quote) if cited else []
    first, last = (marked[0].line, marked[-1].line) if marked else (part.start_line, part.end_line)
    return ShownPart(
        part.document_id,
        part.uri,
        one_line(part.title) or short_uri(part.uri),
        short_uri(part.uri, part.title),
        short_location(part.uri, [(first, last)], part.title, part.places),
        local(part.added_at),
        local(part.updated_at),
        one_line(part.written_by or ""),
        part.characters,
        part.start_line,
        begins,
        sanitize(part.text.removesuffix("\n")).split("\n"),
        part.text.endswith("\n") or part.next_cursor is UNSET,
        "" if part.next_cursor is UNSET else part.next_cursor,
        _kind(original),
        page_in(label(part.places, first, last)),
        await _note(original, part),
        marked,
    )


def _marked(part: DocumentPart, cited: tuple[int, int], quote: str) -> list[Marked]:
    """The quotation where it is in its lines; without one, the cited lines; none if it is not there."""
    text = part.text.removesuffix("\n")
    start, end = (quoted_span(quote, text) or (0, 0)) if quote else (0, len(text))
    marked, offset = [], 0
    for number, line in enumerate(text.split("\n"), part.start_line):
        a, b = max(start - offset, 0), min(end - offset, len(line))
        offset += len(line) + 1
        if a < b and (quote or cited[0] <= number <= cited[1]):
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
    content, media_type = await (page(found.path, number) if kind == "page" else image(found.path))
    # The page is made of a file that any program can have written: no browser may guess another type.
    return Response(content, media_type=media_type, headers={"cache-control": "private, max-age=60"})


ROUTES = (
    route("/api/document", document),
    route("/api/source", source),
    route("/api/original", original),
)
