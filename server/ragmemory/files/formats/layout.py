"""The order of the text on a page, by where its characters stand: columns one after another, tables by rows.

Only what stands in columns is moved, and only where the order of the file goes across them. Pure: it is given
characters with their boxes, in points, from the lower left corner of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from ragmemory.files.formats.read import table

# Parts of a line's height: a wider gap in a line may lie between columns; a gutter may be narrower in some
# lines; lines farther apart are not of one table; the next line of a cell is not farther than this.
GAP = 1.0
GUTTER = 0.5
FARTHEST = 2.5
NEXT_LINE = 1.4
# Lines with text in several columns, in a table and in columns of prose.
LEAST_ROWS = 3
LEAST_LINES = 5
MOST_COLUMNS = 3
# Of a row; a longer one is not of a table.
MOST_SEGMENTS = 50
# Characters of a usual line in a column of prose, and of one beside which there are notes.
LINE_LENGTH = 22
LONG_LINE = 60
# The share of rows that may cross a gutter, and of those with a gap in a cell where columns are understood.
MOST_CROSSING = 0.1
MOST_UNCLEAR = 0.34
# Characters one above the other, from which on they are a line of their own, such as in the margin.
LEAST_UPRIGHT = 4
# What stands before the items of a list, and before lines that are counted.
BULLET = re.compile(r"[^\w\s]|\(?\w{1,3}[.):]|[a-zA-Z]")
NUMBER = re.compile(r"\d+(?:\.\d+)*\.?")


class Box(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float


@dataclass
class Segment:
    """A part of a line without a wide gap, as the file has it: from one character up to another."""

    number: int  # in the order of the file
    start: int
    end: int
    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        return self.top - self.bottom

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


Row = list[Segment]
Gutter = tuple[float, float]


def crossings(boxes: Iterable[Box]) -> int:
    """How often the text goes on beyond a gap in its line, or higher up beside it: in prose hardly ever."""
    return sum(
        1
        for box, following in pairwise(boxes)
        if following.left - box.right > GAP * (box.top - box.bottom) and following.top > box.bottom
    )


def arranged(characters: Sequence[tuple[str, Box]]) -> str | None:
    """The text of a page, where it has columns or tables; None if it has none, or only in their order."""
    text = "".join(character for character, _ in characters)
    segments = list(_segments(characters))
    moved: dict[int, str] = {}  # by the numbers of segments, the text in the place of each
    for band, found in _found(text, _rows(_level(segments))):
        numbers = [segment.number for row in band for segment in row]
        moved |= dict.fromkeys(numbers, "") | {min(numbers): f"{found}\n"}
    if not moved:
        return None
    ends = [*(segment.start for segment in segments[1:]), len(text)]
    return "".join(
        moved.get(segment.number, text[segment.start : end])
        for segment, end in zip(segments, ends, strict=True)
    )


def _segments(characters: Sequence[tuple[str, Box]]) -> Iterator[Segment]:
    segment: Segment | None = None
    number = 0
    for index, (character, box) in enumerate(characters):
        if character.isspace():
            continue
        if segment is not None:
            is_in_line = segment.bottom < (box.top + box.bottom) / 2 < segment.top
            if is_in_line and -segment.height < box.left - segment.right <= GAP * segment.height:
                segment.end, segment.right = index + 1, max(segment.right, box.right)
                continue
            yield segment
            number += 1
        segment = Segment(number, index, index + 1, *box)
    if segment is not None:
        yield segment


def _level(segments: Sequence[Segment]) -> list[Segment]:
    """The segments without those of text that runs up or down the page, which has one character in each."""
    level: list[Segment] = []
    run: list[Segment] = []
    for segment in segments:
        is_single = segment.end - segment.start == 1
        if run and not (is_single and segment.left < run[-1].right and run[-1].left < segment.right):
            level += run if len(run) < LEAST_UPRIGHT else []
            run = []
        (run if is_single else level).append(segment)
    return level + (run if len(run) < LEAST_UPRIGHT else [])


def _rows(segments: Iterable[Segment]) -> list[Row]:
    """The segments side by side, from the top; each row from the left."""
    rows: list[Row] = []
    for segment in sorted(segments, key=lambda one: -one.middle):
        if rows and rows[-1][0].bottom < segment.middle:
            rows[-1].append(segment)
        else:
            rows.append([segment])
    for row in rows:
        row.sort(key=lambda one: one.left)
    return rows


def _bands(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Runs of rows with a gutter that no segment in them crosses."""
    band: list[Row] = []
    gutters: list[Gutter] = []
    for row in rows:
        is_clear = len(row) <= MOST_SEGMENTS
        left = _narrowed(gutters, row) if is_clear and band and not _is_far(band[-1], row) else []
        if left:
            band.append(row)
            gutters = left
            continue
        if band:
            yield band
        gutters = [(one.right, other.left) for one, other in pairwise(row)] if is_clear else []
        band = [row] if gutters else []
    if band:
        yield band


def _gutters(band: Sequence[Row]) -> list[Gutter]:
    """The intervals between the columns, which hardly any row crosses: a heading of several columns may."""
    edges = sorted(edge for row in band for one in row for edge in ((one.left, 1), (one.right, -1)))
    width = GUTTER * median(row[0].height for row in band)
    gutters: list[Gutter] = []
    depth, start = 0, None
    for edge, step in edges:
        if start is not None and step > 0 and depth + step > len(band) * MOST_CROSSING:
            if edge - start > width:
                gutters.append((start, edge))
            start = None
        depth += step
        if start is None and step < 0 and depth <= len(band) * MOST_CROSSING:
            start = edge
    return gutters


def _is_far(row: Row, following: Row) -> bool:
    return row[0].bottom - following[0].top > FARTHEST * max(row[0].height, following[0].height)


def _narrowed(gutters: Sequence[Gutter], row: Row) -> list[Gutter]:
    """What the segments of a row leave of some gutters."""
    for segment in row:
        left: list[Gutter] = []
        for start, end in gutters:
            if segment.right <= start or segment.left >= end:
                left.append((start, end))
            else:
                left += [(start, segment.left), (segment.right, end)]
        gutters = [one for one in left if one[1] - one[0] > GUTTER * segment.height]
    return list(gutters)


def _found(text: str, rows: Sequence[Row]) -> Iterator[tuple[Sequence[Row], str]]:
    """The bands whose text is not that of the file: columns one after another, or the rows of a table."""
    for band in _bands(rows):
        gutters = _gutters(band)
        cells = [_cells(text, row, gutters) for row in band]
        columns = [[cell for cell in column if cell] for column in zip(*cells, strict=True)]
        lengths = [median(map(len, column)) if column else 0 for column in columns]
        crossing = sum(1 for row in cells if sum(map(bool, row)) > 1)
        if len(columns) <= MOST_COLUMNS and crossing >= LEAST_LINES and min(lengths) >= LINE_LENGTH:
            across = sum(1 for row in band for one, other in pairwise(row) if other.number == one.number + 1)
            if across > crossing / 2:
                yield band, "\n".join(map("\n".join, columns))
            else:  # There may be tables in these columns.
                for number in range(len(columns)):
                    yield from _found(text, _column(band, gutters, number))
            continue
        unclear = sum(1 for row, line in zip(band, cells, strict=True) if len(row) > sum(map(bool, line)))
        is_clear = crossing >= LEAST_ROWS and unclear <= MOST_UNCLEAR * len(band)
        if is_clear and not _is_list(columns, lengths):
            yield band, "\n" + "\n".join(table(_joined(band, cells))) + "\n"


def _column(band: Sequence[Row], gutters: Sequence[Gutter], number: int) -> list[Row]:
    """The rows of one column."""
    rows = ([one for one in row if _column_of(one, gutters) == number] for row in band)
    return [row for row in rows if row]


def _is_list(columns: Sequence[Sequence[str]], lengths: Sequence[float]) -> bool:
    """Whether these are lines with marks, numbers or notes beside them."""
    if max(lengths) > LONG_LINE and min(map(len, columns)) <= max(map(len, columns)) / 2:
        return True
    is_long = max(lengths) >= LINE_LENGTH
    return len(columns) == 2 and all(
        BULLET.fullmatch(cell) or (is_long and NUMBER.fullmatch(cell)) for cell in columns[0]
    )


def _cells(text: str, row: Row, gutters: Sequence[Gutter]) -> list[str]:
    cells = [""] * (len(gutters) + 1)
    for segment in row:
        column = _column_of(segment, gutters)
        shown = " ".join(text[segment.start : segment.end].split())
        cells[column] = f"{cells[column]} {shown}".lstrip()
    return cells


def _column_of(segment: Segment, gutters: Sequence[Gutter]) -> int:
    return sum(1 for start, end in gutters if (start + end) / 2 < (segment.left + segment.right) / 2)


def _joined(band: Sequence[Row], cells: Sequence[list[str]]) -> list[list[str]]:
    """The rows of a table. A line without a first cell may go on with the cells of the line above it."""
    rows: list[list[str]] = []
    for number, line in enumerate(cells):
        above = cells[number - 1] if number else []
        distance = band[number - 1][0].middle - band[number][0].middle if number else 0.0
        is_next = 0 < distance < NEXT_LINE * band[number][0].height
        is_part = len(line) == 2 or sum(map(bool, line)) < len(line) - 1
        goes_on = all(before or not cell for before, cell in zip(above, line, strict=False))
        if rows and is_next and is_part and goes_on and not line[0]:
            rows[-1] = [f"{one} {other}".strip() for one, other in zip(rows[-1], line, strict=True)]
        else:
            rows.append(line)
    return rows
