"""The row of a CSV file that names its columns. Pure."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

# Of delimiters that fit equally well, the first one counts: commas are the most likely in cells.
DELIMITERS = "\t;|,"
# Characters from which the delimiter and the header are derived.
MAX_HEAD = 8_000
# Not a month, such as 03.2024.
NUMBER = re.compile(r"(?!(?:0[1-9]|1[0-2])\.(?:19|20)\d\d\Z)[-+]?\d[\d.,]*")
YEARS = range(1900, 2101)


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


@lru_cache(100)
def _header(head: str) -> tuple[int, int]:
    rows, width = max((_table(head, delimiter) for delimiter in DELIMITERS), key=_agreeing)
    # A title may have the delimiters of a row, without its cells.
    first = next((at for at, row in enumerate(rows) if len(row.cells) == width < 2 * _filled(row)), 0)
    for at in (first, 0):
        if rows and _names_columns(*(row.cells for row in rows[at : at + 2])):
            return rows[at].start, rows[at].end
    return 0, 0


def _table(head: str, delimiter: str) -> tuple[list[Row], int]:
    """The rows with text as this delimiter cuts them, and their usual number of cells; 0 if it is one."""
    rows = [row for row in _rows(head, delimiter) if _filled(row)]
    widths = Counter(len(row.cells) for row in rows if len(row.cells) > 1)
    return rows, max(widths, key=widths.__getitem__, default=0)


def _agreeing(table: tuple[list[Row], int]) -> int:
    rows, width = table
    return sum(len(row.cells) == width for row in rows)


def _rows(head: str, delimiter: str) -> Iterator[Row]:
    lines = head.splitlines(keepends=True)
    ends = [0, *accumulate(map(len, lines))]
    reader, above = csv.reader(lines, delimiter=delimiter), 0
    with suppress(csv.Error):
        for cells in reader:
            yield Row(ends[above], ends[reader.line_num], [cell.strip() for cell in cells])
            above = reader.line_num


def _filled(row: Row) -> int:
    return sum(map(bool, row.cells))


def _names_columns(cells: Sequence[str], below: Sequence[str] = ()) -> bool:
    """Whether there are several cells, and no number; but counting numbers, and years with none below."""
    numbers = [at for at, cell in enumerate(cells) if NUMBER.fullmatch(cell)]
    if len(numbers) == len(cells) or len(cells) < 2:
        return False
    found, under = ([row[at] for at in numbers if at < len(row)] for row in (cells, below))
    if not all(map(str.isdecimal, found)):
        return False
    steps = {int(later) - int(earlier) for earlier, later in pairwise(found)}
    is_ordered = len(found) > 1 and (min(steps) > 0 or max(steps) < 0)
    return not numbers or steps == {1} or (is_ordered and _are_years(found) and not _are_years(under))


def _are_years(cells: Sequence[str]) -> bool:
    return all(cell.isdecimal() and int(cell) in YEARS for cell in cells)
