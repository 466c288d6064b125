"""Cards: the shown windows, verbatim, with their locations. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragchat.answer import Card
from ragchat.grounding.pieces import Span
from ragchat.grounding.types import Citation
from ragchat.offline.windows import Window, lines_of, path_of
from ragchat.uris import kind_of, short_names
from ragcommon.contract.search import Hit
from ragcommon.text.places import location
from ragcommon.text.rules import is_row, table_header

ELLIPSIS = "…"

# Places whose texts do not go on in the next one.
_PARTED = re.compile(r"(?:.* )?(?:message|slide|record|note) \d+(?: (?:\(OCR\)|¶ \d+))?$")
# The heading of a file in an archive or of an attachment.
_FILE = re.compile(r".*\S\.(?!\d+$)\w{1,5}")
# Characters between two parts of a passage that are shown: an ellipsis would tell less.
_MAX_FILLED = 100
# Blank lines that take too much of the screen; between functions there are two.
_PAGE_BREAK = re.compile(r"\n(?:[ \t]*\n){3,}")


def make_cards(windows: Sequence[Window], first: int = 1) -> tuple[list[Card], list[Citation]]:
    """The cards, numbered from `first`, and a citation of the best piece of each passage in them.

    Windows of one passage, and of adjacent passages of a document, share a card.
    """
    groups: list[list[Window]] = []
    for window in windows:
        group = next((group for group in groups if any(_is_adjacent(window, one) for one in group)), [])
        if not group:
            groups.append(group)
        group.append(window)
    names = short_names([(group[0].hit.uri, group[0].hit.title) for group in groups])
    made = [_card(n, group, name) for n, (group, name) in enumerate(zip(groups, names, strict=True), first)]
    return [card for card, _ in made], [citation for _, citations in made for citation in citations]


def _is_adjacent(window: Window, other: Window) -> bool:
    """Whether two windows are from adjacent passages of one document, or from the same passage.

    A heading between them that would not be shown parts them. A list has its own card.
    """
    first, second = sorted((window, other), key=lambda one: (one.hit.start_line, one.first))
    one, two = first.hit, second.hit
    tops = {hit.heading.partition(" > ")[0] for hit in (one, two) if not hit.format_uri}
    are_files = len(tops) > 1 and any(map(_FILE.fullmatch, tops))
    are_parted = are_files or (one is not two and any(_PARTED.match(name) for _, name in one.places))
    are_parted |= bool(first.list_end or second.list_end)
    if one.document_id != two.document_id or two.start_line > one.end_line + 2 or are_parted:
        return False
    between = _between(one, first.span[1], two, second.span[0]).strip()
    return not between or path_of(first.evidence, first.last) == path_of(second.evidence, second.first)


def _card(n: int, windows: Sequence[Window], name: str) -> tuple[Card, list[Citation]]:
    best = windows[0]
    ordered = sorted(windows, key=lambda window: (window.hit.start_line, window.hit.chunk_id, window.first))
    parts: list[tuple[Hit, int, int]] = []
    citations = []
    for window in ordered:
        for start, stop in _spans(window):
            if parts and parts[-1][0] is window.hit and start <= parts[-1][2]:
                start, stop = parts[-1][1], max(stop, parts.pop()[2])
            parts.append((window.hit, start, stop))
        top = window.evidence.pieces[window.best]
        own = lines_of(window.hit, top.start, top.end)
        quote = window.hit.full_text[top.start : top.end].strip()
        citations.append(Citation.of(n, window.hit, quote, lines=own))
    citations.insert(0, citations.pop(ordered.index(best)))
    hit, piece = best.hit, best.evidence.pieces[best.best]
    text, marked = "", (0, 0)
    before: tuple[Hit, int] | None = None
    for of, start, stop in parts:
        part = _PAGE_BREAK.sub("\n\n", of.full_text[start:stop])
        if stop < len(of.context) and f"\n{part}\n" in f"\n{text}\n":
            continue  # the header of the table, once
        text += _gap(*before, of, start) if before else ""
        if of is hit and start <= piece.start < stop:
            first = len(text + _PAGE_BREAK.sub("\n\n", of.full_text[start : piece.start]))
            marked = first, first + piece.end - piece.start
        text, before = text + part, (of, stop)
    if best.list_end > (end := lines_of(hit, *best.span)[1]):
        text += _left_out(hit, end, best.list_end + 1).rstrip()
    lines = lines_of(hit, piece.start, piece.end)
    # The lines of the whole card; the page, paragraph or row of the best piece.
    if not hit.places:
        lines = lines_of(ordered[0].hit, *ordered[0].span)[0], lines_of(ordered[-1].hit, *ordered[-1].span)[1]
    where, heading = kind_of(hit.uri) + location(name, [lines], hit.places), path_of(best.evidence, best.best)
    return Card(n, where, heading, text, marked, best.score, hit.chunk_id, hit.is_code), citations


def _spans(window: Window) -> list[Span]:
    """What is shown of a passage: the window, preceded by the header of its table."""
    hit, (start, end) = window.hit, window.span
    first, last = _header(hit, start, window.pieces[0].end)
    if last <= first:
        return [(start, end)]
    return [(first, end)] if start <= last + 1 and not hit.context else [(first, last), (start, end)]


def _header(hit: Hit, start: int, end: int) -> Span:
    """The span of the header of the table with a row at `start`; empty if there is none."""
    text = hit.full_text
    if hit.context:
        return 0, len(hit.context.rstrip())
    if hit.is_csv:
        return 0, len(text[: hit.columns[1]].rstrip())
    return table_header(text, start) if is_row(text[start:end]) else (0, 0)


def _gap(hit: Hit, end: int, other: Hit, start: int) -> str:
    """What is shown between two parts of a document: an ellipsis with line numbers, or empty lines."""
    last, first = lines_of(hit, end, end)[0], lines_of(other, start, start)[0]
    if end < len(hit.context):
        # The header of a table that began in an earlier passage: its lines are known in a CSV file only.
        last = hit.context.count("\n") if hit.is_csv else first
        return "\n" if first - last == 1 else _left_out(hit, last, first)
    between = _between(hit, end, other, start).strip()
    if between and (hit is not other or len(between) > _MAX_FILLED):
        return _left_out(hit, last, first)
    return hit.full_text[end:start] if hit is other else "\n" * max(1, first - last)


def _between(hit: Hit, end: int, other: Hit, start: int) -> str:
    """The text between two places of a document, as far as these passages have it, with "?" for others."""
    if hit is other:
        return hit.full_text[end:start]
    missing = "?" * (other.start_line - hit.end_line > 2)
    return hit.full_text[end:] + missing + other.full_text[len(other.context) : start]


def _left_out(hit: Hit, last: int, first: int) -> str:
    """An ellipsis for what is between two lines, with the numbers of the lines where there are some."""
    if not hit.format_uri or hit.places or first - last < 2:
        return f"\n{ELLIPSIS}\n"
    named = f"line {last + 1}" if first - last == 2 else f"lines {last + 1}–{first - 1}"
    return f"\n{ELLIPSIS} {named}\n"
