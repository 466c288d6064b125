"""Search and reading as HTML, for browsers without scripts; the script shows the same addresses itself."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragchat.console import describe
from ragchat.web.errors import error_status
from ragchat.web.markup import html
from ragchat.web.page import page
from ragchat.web.reading import Marked, ShownPart, place_of, read, read_cited
from ragchat.web.search import ShownHit, find

_FIELDS = {"in": "In", "tag": "Tag", "kind": "Kind", "after": "From", "before": "Until"}
_DAYS = ("after", "before")


async def search(request: Request) -> Response:
    """`/search?q=…`: the hits, each with a link to its place."""
    given = request.query_params
    form = _form(given)
    try:
        found = await find(request.app.state.site.memory, given)
    except Exception as error:
        return page(form + _failure(error), "Search", error_status(error))
    notes = "".join(f"<p>{escape(note)}</p>" for note in found.notes)
    hits = "".join(map(_hit, found.hits))
    return page(form + notes + (f'<ol class="hits">{hits}</ol>' if hits else ""), "Search")


async def document(request: Request) -> Response:
    """`/document?id=…&line=12#L12`: some lines of a document, each with a place to go to.

    With `chunk`, those around that passage.
    """
    given, memory = request.query_params, request.app.state.site.memory
    try:
        shown = await (read_cited(memory, given) if given.get("chunk") else read(memory, place_of(given)))
    except Exception as error:
        return page(_failure(error), "Document", error_status(error))
    marked = {one.line: one for one in shown.marked}
    lines = "".join(
        _line(number, line, marked.get(number)) for number, line in enumerate(shown.lines, shown.start_line)
    )
    about = f"<p>{escape(shown.name)}, {shown.characters:,} characters, changed {escape(shown.updated)}</p>"
    note = f"<p>{escape(shown.note)}</p>" if shown.note else ""
    links = _links(shown)
    content = f'<ol class="lines" start="{shown.start_line}">{lines}</ol>'
    return page(f"<h1>{escape(shown.title)}</h1>{about}{note}{links}{content}{links}", shown.title)


ROUTES = (Route("/search", search), Route("/document", document))


def _form(given: Mapping[str, str]) -> str:
    fields = "".join(
        f' <label>{label} <input name="{name}" type="{"date" if name in _DAYS else "text"}"'
        f' value="{escape(given.get(name, ""))}"></label>'
        for name, label in _FIELDS.items()
    )
    return (
        '<form class="search" action="/search" role="search"><p><label>Search <input type="search" name="q" '
        f'value="{escape(given.get("q", ""))}" autofocus></label> <button>Search</button></p>'
        f"<p>{fields}</p></form>"
    )


def _hit(hit: ShownHit) -> str:
    where = {"id": hit.document_id, "line": hit.line, "chunk": hit.chunk_id}
    heading = f" {escape(hit.heading)}" if hit.heading else ""
    return (
        f'<li><a href="/document?{escape(urlencode(where))}#L{hit.line}">'
        f"{escape(hit.title)}</a> <small>{escape(hit.place)}</small>{heading}"
        f'<blockquote class="text">{html(hit.nodes)}</blockquote></li>'
    )


def _line(number: int, line: str, marked: Marked | None) -> str:
    text = escape(line) or " "
    if marked:
        text = f"{escape(marked.before)}<mark>{escape(marked.quoted)}</mark>{escape(marked.after)}"
    return f'<li id="L{number}">{text}</li>'


def _links(shown: ShownPart) -> str:
    """To the beginning, to what follows, and to the search in this document."""
    pages: list[tuple[str, dict[str, str]]] = []
    if shown.start_line > 1 or not shown.begins:
        pages.append(("Beginning", {}))
    if shown.next:
        name = "Go on reading" if shown.ends else "The last line goes on: go on reading"
        pages.append((name, {"cursor": shown.next}))
    places = "".join(
        f' <a href="/document?{escape(urlencode({"id": shown.document_id, **more}))}">{name}</a>'
        for name, more in pages
    )
    here = escape(urlencode({"in": shown.uri}))
    return f'<p>{places} <a href="/search?{here}">Search in this document</a></p>'


def _failure(error: Exception) -> str:
    failure = describe(error)
    return f'<p class="error">{escape(f"{failure.message} {failure.hint}".strip())}</p>'
