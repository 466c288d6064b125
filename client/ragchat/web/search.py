"""Search while the user types, and the folders, tags and kinds that a search can be limited to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from msgspec import Struct
from starlette.requests import Request

from ragchat.errors import NoDocumentMatches
from ragchat.highlight import Highlight
from ragchat.memory.client import MAX_DOCUMENTS, MemoryClient
from ragchat.memory.matching import filter_of
from ragchat.offline.answer import EMPTY_MEMORY
from ragchat.sanitize import one_line
from ragchat.uris import either_case, passage_location, short_path, short_uri
from ragchat.web.errors import BadRequest
from ragchat.web.markup import Node
from ragchat.web.passages import Passage
from ragchat.web.site import Site, route
from ragcommon.contract.search import Hit, QueryResult
from ragcommon.files.uris import path_in
from ragcommon.text.rules import with_words_replaced

# The first hits, while the user types, and all that is shown if they ask for more.
FIRST, MOST = 10, 50
# What the filters offer of each kind: more would not be read.
OFFERED = 50
_UNFINISHED = re.compile(r"\w{2,}$")


class ShownHit(Struct, frozen=True):
    document_id: str
    chunk_id: int
    title: str
    place: str  # such as "notes/tea.md:3–5"
    heading: str
    line: int
    score: float
    nodes: list[Node]  # the text, with the words of the query marked


class ShownSearch(Struct, frozen=True):
    hits: list[ShownHit]
    notes: list[str]
    more: bool = False  # whether there may be more hits


async def find(memory: MemoryClient, given: Mapping[str, str]) -> ShownSearch:
    """The first hits for `q`, or with `more` MOST, limited by `in`, `tag`, `kind`, `after` and `before`.

    Raises BadRequest for dates, and what the memory raises.
    """
    text = given.get("q", "")
    if not text.strip():
        return ShownSearch([], [])
    try:
        filter = await _filter(memory, given)
    except NoDocumentMatches as error:
        return ShownSearch([], [str(error)])
    top_k = MOST if given.get("more") else FIRST
    found = await memory.query(text, top_k, filter)
    if (last := _UNFINISHED.search(text)) and (last[0] in found.missing or last[0] in found.corrections):
        # Memory does not know the last word: the user may still be typing it.
        longer = await memory.query(f"{text}*", top_k, filter)
        found = longer if longer.hits else found
    shown = with_words_replaced(text, found.corrections) if found.corrections else text
    highlight = Highlight(shown, last[0] if last else "")
    hits = [_shown(hit, highlight) for hit in found.hits]
    return ShownSearch(hits, _notes(found, shown), len(hits) == top_k == FIRST)


def _shown(hit: Hit, highlight: Highlight) -> ShownHit:
    text = hit.full_text.strip("\n")
    passage = Passage(text, {"mark": [*highlight.spans(text)]})
    return ShownHit(
        document_id=hit.document_id,
        chunk_id=hit.chunk_id,
        title=one_line(hit.title) or short_uri(hit.uri),
        place=passage_location(hit),
        heading=one_line(hit.heading),
        line=hit.start_line,
        score=hit.score,
        nodes=passage.code() if hit.is_code else passage.prose(tables=False),
    )


def _notes(found: QueryResult, shown: str) -> list[str]:
    notes = [f"Searched for: {one_line(shown)}"] if found.corrections else []
    notes += [found.notice] if found.notice else []
    if not found.hits:
        notes.append(EMPTY_MEMORY if found.empty else "No passage matches.")
    return notes


async def _filter(memory: MemoryClient, given: Mapping[str, str]) -> dict[str, Any] | None:
    """The filter of the query. Raises BadRequest, NoDocumentMatches, SeveralDocumentsMatch."""
    filter = await filter_of(memory, words) if (words := given.get("in", "").strip()) else {}
    if kind := given.get("kind", "").strip().lstrip("."):
        glob = filter.get("uri", "*")
        filter["uri"] = f"{glob}.{either_case(kind)}" if glob.endswith("*") else glob
    if tag := given.get("tag", "").strip():
        filter["tags"] = [*filter.get("tags", []), tag]
    for name, days in (("after", 0), ("before", 1)):
        if day := given.get(name, ""):
            try:
                moment = datetime.fromisoformat(day).astimezone() + timedelta(days)
            except (ValueError, OverflowError):
                raise BadRequest(f"{name} is not a date such as 2026-01-31") from None
            filter[f"created_{name}"] = moment.isoformat()
    return filter or None


async def search(site: Site, request: Request) -> ShownSearch:
    return await find(site.memory, request.query_params)


async def filters(site: Site, _: Request) -> dict[str, Any]:
    """What occurs most in the first MAX_DOCUMENTS documents."""
    page = await site.memory.documents(MAX_DOCUMENTS)
    paths = [path for document in page.documents if (path := path_in(document.uri))]
    tags = (tag for document in page.documents for tag in document.metadata.get("tags", []))
    names = (PurePosixPath(unquote(document.uri)).suffix.lower().lstrip(".") for document in page.documents)
    return {
        "folders": _most(short_path(path.parent) + "/" for path in paths),
        "tags": _most(map(one_line, tags)),
        "kinds": _most(filter(None, map(one_line, names))),
        "documents": page.total,
        "counted": len(page.documents),
    }


def _most(names: Iterable[str]) -> list[tuple[str, int]]:
    return sorted(Counter(names).most_common(OFFERED))


ROUTES = (route("/api/search", search), route("/api/filters", filters))
