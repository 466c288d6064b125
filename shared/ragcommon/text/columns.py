"""The rows of a CSV file, its delimiter, and the row that names its columns. Pure."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ragcommon.text.rules import LINE

# Of delimiters that fit equally well, the first one counts: commas are the most likely in cells.
DELIMITERS = "\t;|,"
# Characters from which the delimiter and the header are derived.
MAX_HEAD = 8_000
# Not a month, such as 03.2024.
NUMBER = re.compile(r"(?!(?:0[1-9]|1[0-2])\.(?:19|20)\d\d\Z)[-+]?\d[\d.,]*")
YEARS = range(1900, 2101)
# Of numbers that are compared: Python converts none of thousands of digits.
MAX_DIGITS = 15


class Row(NamedTuple):
    """Where a row begins and ends, its line end included, and its cells."""

    start: int
    end: int
    cells: list[str]


def csv_header(text: str) -> tuple[int, int]:
    """The span of the row that names the columns of a CSV file, with its line end; empty if none does.

    A title, notes, "sep=;" or groups of columns may be above it.
    """
    return _header(text[:MAX_HEAD])


def csv_delimiter(text: str, among: str = DELIMITERS) -> str:
    """The delimiter; "" unless most of the first rows have the same number of cells, more than one."""
    tables = {delimiter: _table(text[:MAX_HEAD], delimiter) for delimiter in among}
    best = max(tables, key=lambda delimiter: _agreeing(tables[delimiter]))
    rows, width = tables[best]
    return best if width and 2 * _agreeing(tables[best]) > len(rows) else ""


def csv_rows(text: str, delimiter: str, *, is_strict: bool = False) -> Iterator[Row]:
    """All rows, also empty ones. Raises csv.Error, if strict also where a quotation is not closed."""
    start = end = 0

    def lines() -> Iterator[str]:
        nonlocal end
        for line in LINE.finditer(text):
            end = line.end()
            yield line[0]

    for cells in csv.reader(lines(), delimiter=delimiter, strict=is_strict):
        yield Row(start, end, cells)
        start = end


@lru_cache(100)
def _header(head: str) -> tuple[int, int]:
    rows, width = max((_table(head, delimiter) for delimiter in DELIMITERS), key=_agreeing)
    for at, row in enumerate(rows):
        cells, below, after = (*(row.cells for row in rows[at : at + 3]), [], [])[:3]
        if _is_preamble(cells, width):
            continue
        names = _names_columns(cells, below)
        if len(cells) >= width:
            if names:
                return row.start, row.end
            break
        # Names of the rows may have no name, or a delimiter end each record. But it is a note, such as
        # "Until:,May", above a single cell, or above a row that names all columns of records with numbers.
        is_note = all(below[-1:]) and _names_columns(below, after) and not _names_columns(after)
        if names and sum(map(bool, below)) > 1 and not is_note:
            return row.start, row.end
    # What looked like a title names the columns if nothing else does.
    is_first = bool(rows) and _names_columns(*(row.cells for row in rows[:2]))
    return (rows[0].start, rows[0].end) if is_first else (0, 0)


def _is_preamble(cells: Sequence[str], width: int) -> bool:
    """Whether it is a comment, or lacks most cells. A table of two columns may leave the first name out."""
    is_index = len(cells) == width and not cells[0] and all(cells[1:])
    return cells[0].startswith(("# ", "##")) or (2 * sum(map(bool, cells)) <= width and not is_index)


def _table(head: str, delimiter: str) -> tuple[list[Row], int]:
    """The rows with text as this delimiter cuts them, and their usual number of cells; 0 if it is one."""
    rows: list[Row] = []
    with suppress(csv.Error):
        for start, end, cells in csv_rows(head, delimiter):
            if any(stripped := [cell.strip() for cell in cells]):
                rows.append(Row(start, end, stripped))
    if len(rows) > 1 and len(head) == MAX_HEAD:
        rows.pop()  # It is cut.
    widths = Counter(len(row.cells) for row in rows if len(row.cells) > 1)
    return rows, max(widths, key=widths.__getitem__, default=0)


def _agreeing(table: tuple[list[Row], int]) -> int:
    rows, width = table
    return sum(len(row.cells) == width for row in rows)


def _names_columns(cells: Sequence[str], below: Sequence[str] = ()) -> bool:
    """Whether there are several cells, and no number; but counting numbers, and years with none below."""
    numbers = [at for at, cell in enumerate(cells) if NUMBER.fullmatch(cell)]
    if len(numbers) == len(cells) or len(cells) < 2:
        return False
    found, under = ([row[at] for at in numbers if at < len(row)] for row in (cells, below))
    steps = _steps(found)
    is_counted = steps == {1} and len(found) > 2 and int(found[0]) < 2 and _steps(under) != {1}
    are_years = bool(steps) and (min(steps) > 0 or max(steps) < 0) and _are_years(found)
    return not numbers or is_counted or (are_years and not _are_years(under))


def _steps(cells: Sequence[str]) -> set[int]:
    """The differences of neighbours; empty unless all are whole numbers."""
    if not all(cell.isdecimal() and len(cell) <= MAX_DIGITS for cell in cells):
        return set()
    return {int(later) - int(earlier) for earlier, later in pairwise(cells)}


def _are_years(cells: Sequence[str]) -> bool:
    return all(cell.isdecimal() and len(cell) <= MAX_DIGITS and int(cell) in YEARS for cell in cells)
