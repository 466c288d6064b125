"""Where the text of a page stands: segments of lines, their rows, the gutters between columns, and cells.

Characters have boxes, in points, from the lower left corner of the page. A box without height is of slanted
text, such as a watermark, which is in no row.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median
from typing import NamedTuple

# In line heights: the minimum gap between columns within a line, with and without a space in it, and the
# minimum width of a gutter, which some lines narrow.
GAP = 1.0
NARROW = 0.65
GUTTER = 0.5
# The maximum share of rows that cross a gutter.
MAX_CROSSING = 0.1
# This many characters above each other are a vertical line, for example in the margin.
MIN_UPRIGHT = 4
# The number of a line or a heading.
NUMBER = re.compile(r"\d+(?:\.\d+)*\.?")
# In line heights: lines with a larger distance are rows of their own.
NEXT_LINE = 1.4
# Minimum rows of a table with text in several columns.
MIN_ROWS = 3


class Box(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float


@dataclass
class Segment:
    """A part of a line without a wide gap, or a justified line: characters `start` to `end` of the file."""

    number: int  # in the order of the file
    start: int
    end: int
    left: float
    bottom: float
    right: float
    top: float
    parts: int = 1  # with numbers from `number` on

    @property
    def numbers(self) -> range:
        return range(self.number, self.number + self.parts)

    @property
    def height(self) -> float:
        return self.top - self.bottom

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


Row = list[Segment]
Gutter = tuple[float, float]


def segments_of(characters: Sequence[tuple[str, Box]], gap: float, without_space: float) -> Iterator[Segment]:
    """The parts of lines between gaps, for which limits are given in line heights.

    A space of the file has a box. PDFium sets others, without a box, where it finds a gap. The letters of a
    ligature have the same box, which may be wider than they are high.
    """
    segment: Segment | None = None
    number = 0
    has_space = False
    for index, (character, box) in enumerate(characters):
        if character.isspace():
            has_space = has_space or box.left < box.right
            continue
        if segment is not None:
            limit = (gap if has_space else without_space) * segment.height
            is_in_line = segment.bottom < (box.top + box.bottom) / 2 < segment.top
            is_near = is_in_line and -segment.height < box.left - segment.right <= limit
            if (is_near and box.bottom < box.top) or box == characters[index - 1][1]:
                segment.end, segment.right = index + 1, max(segment.right, box.right)
                has_space = False
                continue
            yield segment
            number += 1
        segment = Segment(number, index, index + 1, *box)
        has_space = False
    if segment is not None:
        yield segment


def level_only(segments: Sequence[Segment]) -> list[Segment]:
    """The segments without slanted text, and without vertical text, which has one character per segment."""
    level: list[Segment] = []
    run: list[Segment] = []
    for segment in segments:
        if not segment.height:
            continue
        is_single = segment.end - segment.start == 1
        if run and not (is_single and segment.left < run[-1].right and run[-1].left < segment.right):
            level += run if len(run) < MIN_UPRIGHT else []
            run = []
        (run if is_single else level).append(segment)
    return level + (run if len(run) < MIN_UPRIGHT else [])


def rows_of(segments: Iterable[Segment]) -> list[Row]:
    """Group segments into rows, from the top, each sorted from the left."""
    rows: list[Row] = []
    for segment in sorted(segments, key=lambda one: -one.middle):
        if rows and rows[-1][0].bottom < segment.middle:
            rows[-1].append(segment)
        else:
            rows.append([segment])
    for row in rows:
        row.sort(key=lambda one: one.left)
    return rows


def gutters_of(band: Sequence[Row]) -> list[Gutter]:
    """The intervals between columns. A few rows may cross them, such as a heading of several columns."""
    edges = sorted(edge for row in band for one in row for edge in ((one.left, 1), (one.right, -1)))
    width = GUTTER * median(row[0].height for row in band)
    gutters: list[Gutter] = []
    depth, start = 0, None
    for edge, step in edges:
        if start is not None and step > 0 and depth + step > len(band) * MAX_CROSSING:
            if edge - start > width:
                gutters.append((start, edge))
            start = None
        depth += step
        if start is None and step < 0 and depth <= len(band) * MAX_CROSSING:
            start = edge
    return [part for gutter in gutters for part in _around(band, gutter, width)]


def _around(band: Sequence[Row], gutter: Gutter, width: float) -> list[Gutter]:
    """The gutter, or both sides of the cells in it: the header of a column, and its cells if they are few."""
    start, end = gutter
    cells = [one for row in band for one in row if start < one.left and one.right < end]
    if not cells or (len(cells) == 1 and cells[0] not in band[0]):
        return [gutter]
    sides = (start, min(one.left for one in cells)), (max(one.right for one in cells), end)
    return [(left, right) for left, right in sides if right - left > width]


def column_of(segment: Segment, gutters: Sequence[Gutter]) -> int:
    return bisect_left(gutters, segment.left + segment.right, key=sum)


def cells_of(text: str, row: Row, gutters: Sequence[Gutter]) -> list[str]:
    cells = [""] * (len(gutters) + 1)
    for segment in row:
        column = column_of(segment, gutters)
        shown = " ".join(text[segment.start : segment.end].split())
        cells[column] = f"{cells[column]} {shown}".lstrip()
    return cells


def columns_of(cells: Sequence[Sequence[str]]) -> list[list[str]]:
    """The cells of each column that are not empty."""
    return [[cell for cell in column if cell] for column in zip(*cells, strict=True)]


def crossing_of(cells: Sequence[Sequence[str]]) -> int:
    """How many rows have text in several columns."""
    return sum(1 for row in cells if sum(map(bool, row)) > 1)


def ends_of(band: Sequence[Row], gutters: Sequence[Gutter]) -> list[list[int]]:
    """Where the first and the last segment of each column start in the file; [] for an empty column."""
    starts: list[list[int]] = [[] for _ in range(len(gutters) + 1)]
    for segment in chain.from_iterable(band):
        starts[column_of(segment, gutters)].append(segment.start)
    return [[min(column), max(column)] if column else [] for column in starts]


def is_mixed(ends: Sequence[Sequence[int]], number: int) -> bool | None:
    """Whether the file goes to and fro between the first columns and the others; None if a side is empty."""
    left, right = list(chain(*ends[:number])), list(chain(*ends[number:]))
    return min(left) < max(right) and min(right) < max(left) if left and right else None
