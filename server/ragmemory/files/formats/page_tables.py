"""The rows of a table on a page, from the segments of its lines and the gutters between its columns.

The lines of a cell are joined, also where words are divided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragmemory.files.formats.page_columns import (
    MIN_ROWS,
    NARROW,
    NEXT_LINE,
    NUMBER,
    Box,
    Gutter,
    Row,
    Segment,
    cells_of,
    column_of,
    crossing_of,
    ends_of,
    gutters_of,
    is_mixed,
    segments_of,
)

# The lines of a cell are closer than rows: this share of their distance.
CLOSER = 0.95
# The maximum share of rows with a gap inside a cell.
MAX_UNCLEAR = 0.34
# The minimum share of rows that have text on both sides of a narrow gutter.
MIN_BOTH = 0.4
# An amount with or without its unit. One below another begins the next row, such as the tax below a sum,
# if either of them is money or a percentage.
AMOUNT = re.compile(r"[^\d\s]{0,3} ?\d[\d.,'’ ]*[^\d\s]{0,3}")
MONEY = re.compile(r"[€$£¥%]|[A-Z]{3}|[.,]\d\d(?!\d)")

# A hyphenated word at the end of a line: PDFium writes U+FFFE or U+0002 for the hyphen, or has a soft one.
# Browsers print the hyphen of Unicode, which is rarely typed.
DIVIDED = re.compile("[\ufffe\x02\xad](?:\r?\n)?|(?<=[^\\W\\d_])‐\r?\n(?=[a-zà-öø-ÿß])")
# The hyphen of a compound such as systemd-Init or USB-Kabel, which is divided there.
_HYPHEN = "(?:[\ufffe\x02](?:\r?\n)?|‐\r?\n)"
COMPOUND = re.compile(
    rf"(?<=[^\WA-Z_]){_HYPHEN}(?=[A-ZÄÖÜ])|(?<=[A-ZÄÖÜ]{{2}}){_HYPHEN}(?=[^\W\d_][a-zäöüß])"
)


def undivided(text: str) -> str:
    """The text without the hyphens at the ends of its lines, and with these lines joined."""
    return DIVIDED.sub("", COMPOUND.sub("-", text))


def table_of(
    text: str, characters: Sequence[tuple[str, Box]], band: Sequence[Row], gutters: Sequence[Gutter]
) -> list[list[str]]:
    """The rows of a table, whose columns may also be separated by narrow gaps; [] for other text."""
    finer = [[part for one in row for part in _parts(characters, one)] for row in band]
    return _table(text, finer, _confirmed(text, finer, gutters)) or _table(text, band, gutters)


def _parts(characters: Sequence[tuple[str, Box]], segment: Segment) -> Iterator[Segment]:
    """The parts of a segment between narrow gaps."""
    start = segment.start
    for part in segments_of(characters[start : segment.end], NARROW, NARROW):
        yield replace(part, start=start + part.start, end=start + part.end)


def _confirmed(text: str, band: Sequence[Row], known: Sequence[Gutter]) -> list[Gutter]:
    """The gutters of a table, if they were known or many rows have text on both sides."""
    gutters = gutters_of(band)
    cells = [cells_of(text, row, gutters) for row in band]
    return [
        (start, end)
        for number, (start, end) in enumerate(gutters)
        if any(start < other and one < end for one, other in known)
        or sum(1 for row in cells if row[number] and row[number + 1]) > MIN_BOTH * len(band)
    ]


def _table(text: str, band: Sequence[Row], gutters: Sequence[Gutter]) -> list[list[str]]:
    """The rows of a table; [] for other text."""
    cells = [cells_of(text, row, gutters) for row in band]
    unclear = sum(1 for row, line in zip(band, cells, strict=True) if len(row) > sum(map(bool, line)))
    has_rows = crossing_of(cells) >= MIN_ROWS or _is_header_with_row(cells)
    if not has_rows or unclear > MAX_UNCLEAR * len(band):
        return []
    return _joined(text, band, cells, gutters)


def _is_header_with_row(cells: Sequence[Sequence[str]]) -> bool:
    """Whether a row has a header above it, in each of several columns."""
    if (
        len(cells) < 2
        or len(cells[0]) < MIN_ROWS
        or any(not cell or NUMBER.fullmatch(cell) for cell in cells[0])
    ):
        return False
    return sum(map(bool, cells[1])) > 1


def _joined(
    text: str, band: Sequence[Row], cells: Sequence[list[str]], gutters: Sequence[Gutter]
) -> list[list[str]]:
    """The rows of a table. A line with an empty first cell may continue the cells of the line above."""
    wrapped = _wrapped(text, band, gutters)
    rows: list[list[str]] = []
    for number, line in enumerate(cells):
        above = cells[number - 1] if number else []
        distance = band[number - 1][0].middle - band[number][0].middle if number else 0.0
        is_next = 0 < distance < NEXT_LINE * band[number][0].height
        is_part = len(line) == 2 or sum(map(bool, line)) < len(line) - 1
        columns = list(zip(above, line, strict=False))
        goes_on = all(before or not cell for before, cell in columns)
        sums = (before + cell for before, cell in columns if all(map(AMOUNT.fullmatch, (before, cell))))
        are_sums = any(map(MONEY.search, sums))
        may_go_on = is_next and is_part and goes_on and not are_sums and not line[0]
        if rows and (number in wrapped or may_go_on):
            rows[-1] = [f"{one}\n{other}".strip() for one, other in zip(rows[-1], line, strict=True)]
        else:
            rows.append(line)
    return [[undivided(cell) for cell in row] for row in rows]


def _wrapped(text: str, band: Sequence[Row], gutters: Sequence[Gutter]) -> set[int]:
    """The lines of a table that continue the row above: the file returns from them to that row.

    Programs write a table cell by cell, with all lines of a cell. A line that continues all cells is closer
    to the one above than rows are.
    """
    ends = ends_of(band, gutters)
    if any(is_mixed(ends, number) is False for number in range(1, len(ends))):
        return set()  # The file holds the columns one after another.
    found = dict[int, float]()  # distances from the line above
    others = list[float]()
    above = dict[int, Segment]()  # the last lines of the cells, by column
    last = -1
    for number, row in enumerate(band):
        step = band[number - 1][0].middle - row[0].middle if number else 0.0
        own = {column_of(one, gutters): one for one in row}
        goes_on = all(
            column in above and not text[above[column].end : one.start].strip() for column, one in own.items()
        )
        is_full = len(own) > len(gutters)
        if goes_on and row[0].start < last and (not is_full or step < NEXT_LINE * row[0].height):
            found[number] = step if is_full else 0.0
        else:
            others += [step] if number else []
            above, last = {}, -1
        above |= own
        last = max(last, *(one.start for one in row))
    return {number for number, step in found.items() if step < CLOSER * min(others, default=0.0)}
