"""Tables that are wider than the screen: each cell of a row with the name of its column. Pure."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from ragchat.highlight import Highlight
from ragchat.offline.cards import ELLIPSIS
from ragchat.sanitize import one_line
from ragcommon.contract.search import Hit
from ragcommon.text.columns import csv_delimiter, csv_rows
from ragcommon.text.places import DIVIDER
from ragcommon.text.rules import LINE, is_row, is_rule

# A row of fewer columns is easy to read as it is.
MIN_COLUMNS = 4
# Characters of the cells of a row that are shown: of the best row, and of one of many others, two lines.
MAX_CELLS = 500
MIN_CELLS = 160
# A longer cell, such as an address, is shown if there is room; fewer characters of it tell nothing.
LONG_CELL = 100
MIN_CELL = 60


class TableRow(NamedTuple):
    """A row of a table, or a line between its rows, and its cells."""

    start: int
    end: int
    cells: Sequence[str]


class NamedRow(NamedTuple):
    """Where a row ends, and the cells that have a value, each with the name of its column."""

    end: int
    cells: Sequence[tuple[str, str]]


def named_rows(text: str, hit: Hit | None, width: int) -> dict[int, NamedRow]:
    """The rows of wide tables in the text of a card of `hit`, by where they begin.

    Those above the first row, such as the header, have no cells.
    """
    found: dict[int, NamedRow] = {}
    for header, *rows in _csv(text, hit) if hit and hit.is_csv else _markdown(text):
        names = header.cells
        widest = max(sum(cell_len(cell) + 3 for cell in row.cells) for row in (header, *rows))
        first = next((at for at, row in enumerate(rows) if _is_record(text, row, len(names))), None)
        if len(names) < MIN_COLUMNS or widest <= width or first is None:
            continue
        found |= {row.start: NamedRow(row.end, []) for row in (header, *rows[:first])}
        for row in rows[first:]:
            if _is_record(text, row, len(names)):
                cells = [(name, value) for name, value in zip(names, row.cells, strict=True) if value]
                found[row.start] = NamedRow(row.end, cells)
    return found


def _is_record(text: str, row: TableRow, columns: int) -> bool:
    """Whether a row has all cells of its table, and is not the rule below the header."""
    return len(row.cells) == columns and any(row.cells) and not is_rule(text[row.start : row.end])


def csv_header_in(text: str, hit: Hit) -> tuple[int, int]:
    """The span of the row that names the columns in the text of a card of a CSV file; empty without it."""
    names = hit.full_text[slice(*hit.columns)].rstrip()
    start = text.find(names)
    return (start, start + len(names)) if start >= 0 else (0, 0)


def _csv(text: str, hit: Hit) -> Iterator[list[TableRow]]:
    start, end = csv_header_in(text, hit)
    if start < end:
        delimiter = csv_delimiter(hit.full_text) or ","
        with suppress(csv.Error):
            rows = list(csv_rows(text[start:], delimiter))
            yield [TableRow(start + row.start, start + row.end, [*map(one_line, row.cells)]) for row in rows]


def _markdown(text: str) -> Iterator[list[TableRow]]:
    table: list[TableRow] = []
    lines = [found.span() for found in LINE.finditer(text)]
    for (start, end), below in pairwise([*lines, (len(text), len(text))]):
        line = text[start:end]
        is_header = is_row(line) and is_rule(text[slice(*below)])
        if table and (is_header or not (is_row(line) or line.startswith(ELLIPSIS))):
            yield table
            table = []
        if table or is_header:
            cells = DIVIDER.split(line.strip()[1:-1])
            table.append(TableRow(start, end, [one_line(cell.replace("\\|", "|")) for cell in cells]))
    if table:
        yield table


def room_of_others(rows: Iterable[NamedRow], room: float) -> float:
    """The characters of the cells of each row but the best one, which has `room`, of the rows of a card."""
    count = sum(bool(row.cells) for row in rows)
    return min(room, max(MIN_CELLS, 5 * room / max(1, count)))


def with_names(row: NamedRow, highlight: Highlight, room: float, *, is_best: bool) -> Text:
    """A row as one line of at most about `room` characters; cells in the best row stand out if they match.

    The first cell is shown, then those with words of the question, then others from the left, long ones last.
    Its style is "row", also "best row", and "cut" if something is left out.
    """
    matches = {at: any(highlight.spans(": ".join(cell))) for at, cell in enumerate(row.cells)}
    is_long = {at: len(value) > LONG_CELL for at, (_, value) in enumerate(row.cells)}
    kept: dict[int, Text] = {}
    is_cut = False
    for at in sorted(matches, key=lambda at: (at > 0, is_long[at], not matches[at], at)):
        name, value = row.cells[at]
        name = f"{name}: " if name else ""
        most = (room if at else room / 2) - len(name)
        if at == 0 or len(value) <= most or (matches[at] and most >= MIN_CELL):
            part = _cut(value, most, highlight)
            is_cut |= part != value
            kept[at] = matching(name + part, highlight)
            room -= len(kept[at])
        if at in kept and is_best and matches[at]:
            kept[at].stylize("best")
    text = Text(" · ").join(kept.get(at, Text(ELLIPSIS)) for at in matches if at in kept or at - 1 in kept)
    text.stylize("best row" if is_best else "row")
    if is_cut or len(kept) < len(row.cells):
        text.stylize("cut")
    return text


def matching(line: str, highlight: Highlight) -> Text:
    """A line in which the words of the question stand out."""
    text = Text()
    for part, stands_out in highlight.parts(line):
        text.append(part, "match" if stands_out else "")
    return text


def _cut(value: str, most: float, highlight: Highlight) -> str:
    """The part of at most `most` characters, and an ellipsis at its ends, with most words of the question."""
    if len(value) <= most:
        return value
    size = max(1, int(most))
    found = [start for start, _ in highlight.spans(value)] or [0]
    first = max(found, key=lambda start: sum(start <= other < start + size * 3 // 4 for other in found))
    begin = max(0, first - size // 4)
    space = value.find(" ", begin, first)
    start = space + 1 if begin and space >= 0 else begin
    return ELLIPSIS * (start > 0) + value[start : start + size] + ELLIPSIS * (start + size < len(value))
