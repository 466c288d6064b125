"""The list of sources below an answer, and passages in full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.style import Style
from rich.table import Table
from rich.text import Text

from ragchat.sanitize import one_line, sanitize
from ragchat.uris import short_location
from ragcommon.text.places import label, page_in, short_path

if TYPE_CHECKING:
    from ragchat.grounding.types import Citation
    from ragchat.turn.types import Turn
    from ragcommon.contract.search import Hit

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
    for citations, score, unverified in rows:
        table.add_row(Text(f"[{citations[0].n}]", "citation"), _described(citations, score, unverified))
    return table


def plain_sources(turn: Turn) -> list[str]:
    """The same as plain lines, for a pipe."""
    return [
        f"[{citations[0].n}] {_described(citations, score, unverified).plain}"
        for citations, score, unverified in _rows(turn)
    ]


def passage(hit: Hit, numbers: Sequence[int] = ()) -> Iterator[Text]:
    """A hit with its text, as /sources and /query show it."""
    head = Text("".join(f"[{n}] " for n in numbers or [hit.rank]), "citation")
    head.append_text(_place_text(hit, [(hit.start_line, hit.end_line)]))
    head.append(f"  {hit.score:.2f}", "score")
    yield head
    yield Text(sanitize(hit.full_text).strip("\n"))


def quoted_ranges(citations: Sequence[Citation]) -> list[tuple[int, int]]:
    """The lines of the quotations; the lines of the passage if none is quoted."""
    found = [
        (citation.quote_start_line, citation.quote_end_line)
        for citation in citations
        if citation.quote_start_line is not None and citation.quote_end_line is not None
    ]
    return found or [(citations[0].start_line, citations[0].end_line)]


def _rows(turn: Turn) -> Iterator[tuple[Sequence[Citation], float | None, bool]]:
    """For each cited passage, its citations, its score, and whether it does not hold a quotation."""
    scores = {candidate.hit.chunk_id: candidate.hit.score for candidate in turn.answer.candidates}
    for same in turn.answer.cited:
        unverified = any(citation.verified is False for citation in same)
        yield same, scores.get(same[0].chunk_id), unverified


def _described(citations: Sequence[Citation], score: float | None, unverified: bool) -> Text:
    text = _place_text(citations[0], quoted_ranges(citations))
    if score is not None:
        text.append(f"  {score:.2f}", "score")
    if unverified:
        text.append("  (a quotation was not found there)", "warning")
    return text


def _place_text(where: Citation | Hit, lines: Sequence[tuple[int, int]]) -> Text:
    written = short_location(where.uri, lines, where.title, where.places)
    text = Text(written, Style(link=_link(where, lines) or None))
    if where.heading and short_path(where.heading) not in written:  # Places of paragraphs begin with it.
        text.append("  " + one_line(where.heading, _HEADING_CHARACTERS), "heading")
    return text


def link_of(citation: Citation) -> str:
    """The URI of the file that a citation links to; "" if it is not in a file."""
    return _link(citation, [citation.cited_lines])


def _link(where: Citation | Hit, lines: Sequence[tuple[int, int]]) -> str:
    """The URI of a file; of a PDF with the page, which browsers show and other viewers ignore.

    "" if it is not in a file, or unsafe in an escape sequence, which ends at the first control character.
    """
    if not (where.uri.startswith("file://") and where.uri.isascii() and where.uri.isprintable()):
        return ""
    page = page_in(label(where.places, *lines[0])) if where.uri.lower().endswith(".pdf") else None
    return f"{where.uri}#page={page}" if page else where.uri
