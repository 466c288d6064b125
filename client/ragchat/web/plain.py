"""Search and reading as HTML, for browsers without scripts; the script shows the same addresses itself."""

from __future__ import annotations

from html import escape

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragchat.console import describe
from ragchat.sanitize import sanitize
from ragchat.web.page import page

TOP_K = 20


async def search(request: Request) -> Response:
    """`/search?q=…`: the hits, each with a link to its place."""
    text = request.query_params.get("q", "")
    form = (
        '<form action="/search" role="search"><label>Search <input type="search" name="q" '
        f'value="{escape(text)}" autofocus></label> <button>Search</button></form>'
    )
    if not text.strip():
        return page(form, "Search")
    try:
        found = await request.app.state.site.memory.query(text, TOP_K)
    except Exception as error:
        return page(form + f'<p class="error">{escape(describe(error).message)}</p>', "Search", 500)
    hits = "".join(
        f'<li><a href="/document?id={escape(hit.document_id)}#L{hit.start_line}">'
        f"{escape(sanitize(hit.title or hit.uri))}</a> {escape(sanitize(hit.heading))}"
        f"<blockquote>{escape(sanitize(hit.text))}</blockquote></li>"
        for hit in found.hits
    )
    return page(form + (f'<ol class="hits">{hits}</ol>' if hits else "<p>Nothing was found.</p>"), "Search")


async def document(request: Request) -> Response:
    """`/document?id=…#L12`: the text of a document, each line with a place to go to."""
    try:
        shown = await request.app.state.site.memory.show(request.query_params.get("id", ""))
    except Exception as error:
        return page(f'<p class="error">{escape(describe(error).message)}</p>', "Document", 404)
    lines = "".join(
        f'<li id="L{number}">{escape(sanitize(line)) or " "}</li>'
        for number, line in enumerate(shown.text.split("\n"), 1)
    )
    heading = escape(sanitize(shown.title or shown.uri))
    return page(f'<h1>{heading}</h1><ol class="lines">{lines}</ol>', shown.title or shown.uri)


ROUTES = (Route("/search", search), Route("/document", document))
