"""Cards on a terminal: one line with the location, then the text verbatim."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from ragchat.grounding.pieces import paragraph_spans
from ragchat.highlight import Highlight
from ragchat.offline.answer import markdown_of
from ragchat.offline.cards import ELLIPSIS
from ragchat.sanitize import one_line, sanitize
from ragchat.ui.render.sources import link_of
from ragchat.ui.render.tables import (
    MAX_CELLS,
    NamedRow,
    csv_header_in,
    matching,
    named_rows,
    room_of_others,
    with_names,
)
from ragcommon.text.rules import counted, is_row, table_header

if TYPE_CHECKING:
    from rich.console import Console

    from ragchat.answer import Answer, Card
    from ragchat.ui.render.screen import Screen
    from ragcommon.contract.search import Hit

# Rows for a line before the cards, one after them, the summary, an empty one, the prompt and the toolbar.
_RESERVED_ROWS = 6
# Marks a line that most likely holds the answer, where there is no bold.
MARK, NO_MARK = "▸ ", "  "
_MIN_ROWS = 3
# Characters of a card, in full rows, if not all cards fit. On 80 x 24 this leaves room for a second one.
_MAX_CHARACTERS = 1100
# In the row of a table, all but the first character of these only aligns its columns.
_PADDING = re.compile(r" {2,}|(?<=--)-{2,}")


class Row(NamedTuple):
    """A row on the screen."""

    text: Text
    is_best: bool = False  # it most likely holds the answer
    is_header: bool = False  # of the table with the best row
    is_named: bool = False  # of a row of a wide table, whose cells have the names of their columns
    is_cut: bool = False  # of such a row without some of its cells


def show_cards(
    screen: Screen, cards: Sequence[Card], answer: Answer, highlight: Highlight, *, is_whole: bool = False
) -> tuple[int, bool]:
    """Show as many of these cards of an answer as fit on the screen, on a pipe or if `is_whole` all.

    Returns how many these are, and whether one of them is cut. A pipe gets Markdown.
    """
    if not screen.out.is_terminal:
        screen.show(*map(markdown_of, cards))
        return len(cards), False
    shown, is_cut = _fitting(screen.out, cards, answer, highlight, is_whole=is_whole)
    screen.show(*(line for lines in shown for line in lines))
    return len(shown), is_cut


def _fitting(
    console: Console, cards: Sequence[Card], answer: Answer, highlight: Highlight, *, is_whole: bool
) -> tuple[list[list[Text]], bool]:
    """The lines of as many cards as fit on the screen, with an empty line after each, and whether one is cut.

    If not all fit as they are, empty lines are left out, and each card is cut around its best row.
    """
    room = console.height - _RESERVED_ROWS
    cited = {one.n: one for one in reversed(answer.sources)}
    hits = {one.hit.chunk_id: one.hit for one in answer.candidates}

    def rows_of(card: Card, room: float = inf if is_whole else MAX_CELLS) -> Sequence[Row]:
        return [*_rows(console, card, highlight, hits.get(card.chunk_id), room)]

    whole = [rows_of(card) for card in cards]
    do_fit = is_whole or sum(len(rows) + 2 for rows in whole) <= room
    shown, is_cut = list[list[Text]](), False
    for card, rows in zip(cards, whole, strict=True):
        link = link_of(cited[card.n]) if card.n in cited else ""
        if not do_fit:
            rows = _without_empty(rows)
            if shown and room - 1 < min(len(rows), _MIN_ROWS):
                break
            most = room if card is cards[-1] else min(room, _MAX_CHARACTERS // console.width)
            limit = max(most - 1, _MIN_ROWS)
            if len(rows) > limit and any(row.is_named for row in rows):
                rows = _without_empty(rows_of(card, min(MAX_CELLS, max(1, limit - 3) * console.width)))
            is_cut, rows = is_cut or len(rows) > limit, _around_best(rows, limit)
            room -= len(rows) + 1
        is_cut |= any(row.is_cut for row in rows)
        lines = [_place(card, link, console.width), *(row.text for row in rows)]
        shown.append([*lines, Text()] if do_fit else lines)
    if shown and not do_fit:
        shown[-1].append(Text())
    return shown, is_cut


def _without_empty(rows: Sequence[Row]) -> Sequence[Row]:
    return [row for row in rows if row.text.plain.strip()]


def _place(card: Card, link: str, width: int) -> Text:
    """`[1] notes.md:12–18  Setup › Ports` on one line; a name is cut in the middle, see also `_cut_path`."""
    line = Text(f"[{card.n}] ", "citation")
    line.append(_cut(one_line(card.location), width - line.cell_len), Style(link=link or None))
    headings, room = one_line(card.headings), width - line.cell_len - 2
    if headings and room > _MIN_ROWS:
        line.append(f"  {_cut_path(headings, room)}", "heading")
    return line


def _cut_path(headings: str, width: int) -> str:
    """Headings cut to at most `width` columns; the last one, which names the place, is cut last."""
    above, sign, last = headings.rpartition(" › ")
    room = width - cell_len(sign + last)
    return _cut(above, room) + sign + last if sign and room > 0 else _cut(last, width)


def _cut(text: str, width: int) -> str:
    """`text` cut in the middle to at most `width` columns."""
    half = len(text) // 2
    first, last = text[:half], text[half:]
    cut = ""
    while cell_len(first + cut + last) > width and (first or last):
        cut = "…"
        first, last = (first[:-1], last) if len(first) > len(last) else (first, last[1:])
    return first + cut + last


def _rows(console: Console, card: Card, highlight: Highlight, hit: Hit | None, room: float) -> Iterator[Row]:
    """The rows of a card of `hit` on the screen. `room`: for the cells of a row of a wide table."""
    mark = NO_MARK if console.color_system is not None else MARK
    width = max(1, console.width - len(NO_MARK))
    named = {} if card.is_code else named_rows(card.text, hit, width)
    header = _header(card, hit)
    paragraphs = list(_paragraphs(card, highlight, header, named, room))
    are_wide = any(line.cell_len > width and is_row(line.plain) for lines in paragraphs for line in lines)
    for lines in paragraphs:
        lines = [_unpadded(line) if are_wide and is_row(line.plain) else line for line in lines]
        for line in [_joined(lines)] if any(line.cell_len > width for line in lines) else lines:
            bare = _without_indent(line)
            indent = min(len(line) - len(bare), width // 2)
            for row in bare.wrap(console, width - indent):
                styles = {span.style for span in row.spans}
                is_best, is_named = (not styles.isdisjoint((name, "best row")) for name in ("best", "row"))
                text = Text((mark if is_best else NO_MARK) + " " * indent).append_text(row)
                yield Row(text, is_best, "header" in styles, is_named, "cut" in styles)


def _paragraphs(
    card: Card, highlight: Highlight, header: range, named: Mapping[int, NamedRow], room: float
) -> Iterator[list[Text]]:
    """The lines of a card with their styles; those of a wrapped paragraph together."""
    ends = {} if card.is_code else dict(paragraph_spans(card.text))
    lines, of_others = list[Text](), room_of_others(named.values(), room)
    start = end = of_row = 0
    for line in card.text.split("\n"):
        if row := named.get(start):
            of_row = row.end
            if lines:
                yield lines
                lines = []
            if row.cells:
                is_best = start < card.best[1] and card.best[0] < row.end
                yield [with_names(row, highlight, room if is_best else of_others, is_best=is_best)]
        if start < of_row:
            start += len(line) + 1
            continue
        text = matching(sanitize(line), highlight)
        # The style stays at its characters, also where signs are removed, tabs expanded and lines wrapped.
        text.stylize("best", *(len(sanitize(line[: max(at - start, 0)])) for at in card.best))
        if start in header:
            text.stylize("header")
        text.expand_tabs()
        lines.append(text)
        end = ends.get(start, end)
        start += len(line) + 1
        if start > end:
            yield lines
            lines = []


def _header(card: Card, hit: Hit | None) -> range:
    """Where the lines of the header above the best row of a table are in the text of a card of `hit`."""
    text, (start, end) = card.text, card.best
    if hit is not None and hit.is_csv:
        return range(csv_header_in(text, hit)[1])
    if not is_row(text[start:end]):
        return range(0)
    return range(*table_header(text, text.rfind("\n", 0, start) + 1, gaps=(ELLIPSIS,)))


def _unpadded(row: Text) -> Text:
    """A row of a table without the spaces and dashes that align its columns."""
    padding = (range(found.start() + 1, found.end()) for found in _PADDING.finditer(row.plain))
    parts = row.divide(at for span in padding for at in (span.start, span.stop))
    return Text().join(parts[::2])


def _joined(lines: Sequence[Text]) -> Text:
    """The lines of a paragraph as one; wrapped a second time, each would leave a word or two in a row."""
    joined = lines[0].copy()
    for line in lines[1:]:
        joined.rstrip()
        if joined.plain.endswith("‐"):  # the hyphen with which programs for man pages divide a word
            joined.right_crop()
        elif not joined.plain.endswith("-"):
            joined.append(" ")
        joined.append_text(_without_indent(line))
    return joined


def _without_indent(line: Text) -> Text:
    return line[len(line) - len(line.plain.lstrip()) :]


def _around_best(rows: Sequence[Row], room: int) -> Sequence[Row]:
    """The rows around the best one that fit into `room`, with the number of those left out on each side."""
    if len(rows) <= room:
        return rows
    marked = [place for place, row in enumerate(rows) if row.is_best] or [0]
    # Two rows count what is left out. The best row is near the top, so that its context follows.
    shown = max(1, room - 2)
    is_named = rows[marked[0]].is_named
    before = 0 if is_named else shown // 3  # The rows above are about something else.
    # In a long part, the row with most words of the question is best.
    is_long = len(marked) > shown - before
    best = max(marked, key=lambda place: _matches(rows[place])) if is_long else marked[0]
    first = best if is_named else max(0, min(best - before, len(rows) - shown))
    header = [row for row in rows[:first] if row.is_header and not is_named][: room // 3]
    if header:
        shown = max(1, shown - len(header))
        first = max(0, min(best - shown // 3, len(rows) - shown))
    above = [row for row in rows[:first] if is_named or not row.is_header]
    return [*header, *_left_out(above), *rows[first : first + shown], *_left_out(rows[first + shown :])]


def _matches(row: Row) -> int:
    return sum(span.style == "match" for span in row.text.spans)


def _left_out(rows: Sequence[Row]) -> Sequence[Row]:
    """A row that counts these rows; a single row is shown instead, as it needs no more room."""
    if len(rows) < 2:
        return rows
    return [Row(Text(f"{NO_MARK}… {counted(len(rows), 'more line')}", "heading"))]
