"""The page around every view."""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

STATIC = Path(__file__).with_name("static")
_PAGE = Template((STATIC / "page.html").read_text("utf-8"))
_NEEDS_SCRIPTS = "<noscript><p>This view needs scripts. Search and reading work without.</p></noscript>"


async def view(_: Request) -> Response:
    """The page without content: its script shows the view of the address."""
    return page(_NEEDS_SCRIPTS)


def page(main: str, title: str = "ragchat", status: int = 200) -> HTMLResponse:
    """The page around `main`, which is HTML."""
    content = _PAGE.substitute(title=escape(title), main=main)
    return HTMLResponse(content, status, {"cache-control": "no-store"})
