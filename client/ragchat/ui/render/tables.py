"""Tables that are wider than the screen: each cell of a row with the name of its column. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from ragchat.offline.cards import ELLIPSIS
from ragchat.sanitize import one_line
from ragcommon.contract.search import Hit
from ragcommon.text.columns import csv_delimiter, csv_rows
from ragcommon.text.places import DIVIDER
from ragcommon.text.rules import LINE, is_row, is_rule

# With fewer columns, a row is read at once.
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


def named_rows(text: str, hit: Hit | None, width: int) -> dict[int, TableRow]:
    """The rows of wide tables in the text of a card of `hit`, by where they begin.

    Their cells are "name: value". Those above the first row, such as the header, have none.
    """
    found: dict[int, TableRow] = {}
    for header, *rows in _csv(text, hit) if hit and hit.is_csv else _markdown(text):
        widest = max(sum(cell_len(cell) + 3 for cell in row.cells) for row in (header, *rows))
        count = len(header.cells)
        first = next((at for at, row in enumerate(rows) if _is_record(text, row, count)), None)
        if count < MIN_COLUMNS or widest <= width or first is None:
            continue
        found |= {row.start: row._replace(cells=[]) for row in (header, *rows[:first])}
        for row in rows[first:]:
            if _is_record(text, row, count):
                named = zip(header.cells, row.cells, strict=True)
                cells = [f"{name}: {value}" if name else value for name, value in named if value]
                found[row.start] = row._replace(cells=cells)
    return found


def _is_record(text: str, row: TableRow, columns: int) -> bool:
    """Whether a row has all cells of its table, and is not the rule below the header."""
    return len(row.cells) == columns and any(row.cells) and not is_rule(text[row.start : row.end])


def _csv(text: str, hit: Hit) -> Iterator[list[TableRow]]:
    names = hit.full_text[slice(*hit.columns)].rstrip()
    start = text.find(names) if names else -1
    if start >= 0:
        delimiter = csv_delimiter(hit.full_text) or ","
        rows = csv_rows(text[start:], delimiter)
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


def room_of_others(rows: Iterable[TableRow], room: float) -> float:
    """The characters of the cells of each row but the best one, which has `room`, of the rows of a card."""
    count = sum(bool(row.cells) for row in rows)
    return min(room, max(MIN_CELLS, 5 * room / max(1, count)))


def shortened(cells: Sequence[Text], room: float) -> Iterator[Text]:
    """As many cells as fit: the first, then those with words of the question, then others from the left.

    Of a longer one with such a word, the part around that word.
    """
    kept: dict[int, Text] = {}

    def order(at: int) -> tuple[bool, bool, bool, int]:
        return at > 0, len(cells[at]) > LONG_CELL, not cells[at].spans, at

    for at in sorted(range(len(cells)), key=order):
        cell = cells[at]
        if len(cell) > room > MIN_CELL and cell.spans:
            size = int(room)
            begin = max(0, cell.spans[-1].start - size // 2)
            start = cell.plain.find(" ", begin) + 1 if begin else 0
            cell = cell[start : start + size].append(ELLIPSIS * (start + size < len(cell)))
            if start:
                name = re.match(r"(?:[^:]*: )?", cells[at].plain)
                cell = cells[at][: name.end() if name else 0].append(ELLIPSIS).append_text(cell)
        if at == 0 or len(cell) <= room or cell is not cells[at]:
            kept[at] = cell
            room -= len(cell)
    for at in range(len(cells)):
        if at in kept or at - 1 in kept:
            yield kept.get(at, Text(ELLIPSIS))
