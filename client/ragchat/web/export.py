"""A conversation as one HTML file with its sources, without scripts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from ragchat.sanitize import one_line, sanitize
from ragchat.sessions.types import Session
from ragchat.turn.types import Turn
from ragchat.web.markup import html
from ragchat.web.showing import turn_document
from ragcommon.text.rules import EXPORT_MARK


def export_html(session: Session) -> str:
    title = escape(one_line(session.title))
    turns = "".join(part for number, turn in enumerate(session.turns) for part in _turn(turn, f"t{number}"))
    file = Path(__file__).with_name("export.html")
    return f"{Template(file.read_text('utf-8')).substitute(title=title, turns=turns)}{EXPORT_MARK}\n"


def _turn(turn: Turn, id: str) -> Iterator[str]:
    shown = turn_document(turn)
    texts = {one.hit.chunk_id: one.hit.full_text for one in turn.answer.candidates}
    yield f'<article id="{id}">\n<h2>{_text(turn.question)}</h2>\n'
    yield html(shown["nodes"], partial(_cite, id=id))
    yield f"<p>{_text(shown['before'])}</p>\n" if shown["before"] else ""
    for card in shown["cards"]:
        yield f"<p>{_cite(card['n'], id)} {_text(card['location'])} {_text(card['headings'])}</p>\n"
        yield f'<blockquote class="text">{html(card["nodes"])}</blockquote>\n'
    yield f"<p>{_text(shown['after'])}</p>\n" if shown["after"] else ""
    yield from _sources(shown["sources"], texts, id)
    yield f"<p><small>{_text(shown['summary'])}, {_text(turn.created_at)}</small></p>\n</article>\n"


def _sources(sources: Sequence[dict[str, Any]], texts: dict[int, str], id: str) -> Iterator[str]:
    """Each cited passage once, with its text."""
    for source in {one["n"]: one for one in reversed(sources)}.values():
        yield f'<details id="{id}-{source["n"]}"><summary>[{source["n"]}] {_text(source["location"])}'
        yield f" {_text(source['heading'])} &lt;{_text(source['uri'])}&gt;</summary>"
        yield f'<blockquote class="text">{_text(texts.get(source["chunk_id"], source["quote"]))}</blockquote>'
        yield "</details>\n"


def _cite(n: int, id: str) -> str:
    return f'<a href="#{id}-{n}">[{n}]</a>'


def _text(text: str) -> str:
    return escape(sanitize(text))
