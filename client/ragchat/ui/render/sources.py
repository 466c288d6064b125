"""The list of sources below an answer, and passages in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.style import Style
from rich.table import Table
from rich.text import Text

from ragchat.sanitize import one_line, sanitize
from ragchat.uris import location

if TYPE_CHECKING:
    from ragchat.types import Citation, Hit, Turn

_HEADING_CHARACTERS = 60


def sources(turn: Turn) -> Table | None:
    """One row for each cited passage: its number, then place, heading and score. None: nothing is cited."""
    rows = list(_rows(turn))
    if not rows:
        return None
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    # Folded: a cut path is useless.
    table.add_column(overflow="fold")
    for citation, score, unverified in rows:
        table.add_row(Text(f"[{citation.n}]", "citation"), _described(citation, score, unverified))
    return table


def plain_sources(turn: Turn) -> list[str]:
    """The same as plain lines, for a pipe."""
    return [
        f"[{citation.n}] {_described(citation, score, unverified).plain}"
        for citation, score, unverified in _rows(turn)
    ]


def passage(hit: Hit, n: int | None = None) -> Iterator[Text]:
    """A hit with its text, as /sources and /query show it."""
    head = Text(f"[{n or hit.rank}] ", "citation")
    head.append_text(_place_text(hit))
    head.append(f"  {hit.score:.2f}", "score")
    yield head
    yield Text(sanitize(hit.full_text).strip("\n"))


def scores(turn: Turn) -> dict[int, float]:
    """Chunk ids to scores."""
    return {candidate.hit.chunk_id: candidate.hit.score for candidate in turn.trace.candidates}


def _rows(turn: Turn) -> Iterator[tuple[Citation, float | None, bool]]:
    """Each cited passage once: a citation of it, its score, whether a quotation is not in the passage."""
    known = scores(turn)
    by_number: dict[int, list[Citation]] = {}
    for citation in turn.sources:
        by_number.setdefault(citation.n, []).append(citation)
    for _, same in sorted(by_number.items()):
        unverified = any(citation.quote and not citation.verified for citation in same)
        yield same[0], known.get(same[0].chunk_id), unverified


def _described(citation: Citation, score: float | None, unverified: bool) -> Text:
    text = _place_text(citation)
    if score is not None:
        text.append(f"  {score:.2f}", "score")
    if unverified:
        text.append("  (a quotation was not found there)", "warning")
    return text


def _place_text(where: Citation | Hit) -> Text:
    written = location(where.uri, where.start_line, where.end_line, where.title)
    text = Text.assemble((written, Style(link=where.uri) if _is_link(where.uri) else ""))
    if where.heading:
        text.append("  " + one_line(where.heading, _HEADING_CHARACTERS), "heading")
    return text


def _is_link(uri: str) -> bool:
    """Whether the URI is safe in an escape sequence, which ends at the first control character."""
    return uri.startswith("file://") and uri.isascii() and uri.isprintable()
