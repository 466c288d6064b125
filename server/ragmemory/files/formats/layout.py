"""Reading order of a page from the positions of its characters: columns one after another, tables by row.

Only text in columns is moved, and only where the order of the file runs across them. Pure: the input is
characters with their boxes. `page_columns` says what the parts of a page are; `page_tables` finds the rows of
a table.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, pairwise
from statistics import median

from ragmemory.files.formats.file_text import table
from ragmemory.files.formats.page_columns import (
    GAP,
    GUTTER,
    MAX_CROSSING,
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
    columns_of,
    crossing_of,
    ends_of,
    gutters_of,
    is_mixed,
    level_only,
    rows_of,
    segments_of,
)
from ragmemory.files.formats.page_tables import table_of

# In line heights: the maximum distance of rows of one table; the maximum difference between the ends of
# justified lines, and between the bottoms of cells in a row.
MAX_LINE_GAP = 2.5
FLUSH = 0.2
LEVEL, HALF = 0.15, 0.5
# A row with more segments is not part of a table, and neither are rows with more gutters.
MAX_SEGMENTS = 50
# Minimum lines with text in several columns, and maximum columns, of prose.
MIN_LINES = 5
MAX_COLUMNS = 3
# Characters of a usual line in a column of prose, and of a line with notes next to it.
LINE_LENGTH = 22
LONG_LINE = 60
# A heading, or the text below a table, is this many times farther from the row above it than rows usually
# are; a heading is this many times taller than them.
FARTHER = 1.2
TALLER = 1.1
# Markers of list items.
BULLET = re.compile(r"[^\w\s]|\(?\w{1,3}[.):]|[a-zA-Z]|§ ?\d+\w?")


def is_plain(boxes: Sequence[Box]) -> bool:
    """Whether each part of the text is below the one before, and no line has a gap, as in prose.

    The values of a form may be above the text before them, and not to its right.
    """
    is_down = all(following.bottom <= box.top for box, following in pairwise(boxes))
    return is_down and not crossings(boxes)


def crossings(boxes: Iterable[Box | Segment]) -> int:
    """How often the text continues beyond a gap in its line, or higher up to the right: rare in prose."""
    return sum(
        1
        for box, following in pairwise(boxes)
        if following.left - box.right > GAP * (box.top - box.bottom) and following.top > box.bottom
    )


def arranged(characters: Sequence[tuple[str, Box]]) -> tuple[str | None, int]:
    """The rearranged text of a page; None if it has no columns or tables that are out of order.

    With the crossings that no columns, tables and lists explain.
    """
    text = "".join(character for character, _ in characters)
    has_spaces = any(character == " " and box.left < box.right for character, box in characters)
    segments = list(segments_of(characters, GAP, NARROW if has_spaces else GAP))
    known: set[int] = set()  # segment numbers
    moved: dict[int, str] = {}  # replacement texts by segment number
    for band, found in _found(text, characters, rows_of(level_only(segments))):
        numbers = [number for row in band for segment in row for number in segment.numbers]
        known.update(numbers)
        if found is not None:
            moved |= dict.fromkeys(numbers, "") | {min(numbers): f"{found}\n"}
    unknown = crossings(one for one in segments if one.number not in known and one.height)
    if not moved:
        return None, unknown
    ends = [*(segment.start for segment in segments[1:]), len(text)]
    parts = (
        moved.get(segment.number, text[segment.start : end])
        for segment, end in zip(segments, ends, strict=True)
    )
    return "".join(parts), unknown


def _lines(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows, with each justified line as one segment: its wide gaps are no columns.

    It is as long as the lines next to it, one of which has no gaps.
    """
    starts = [number for number, two in enumerate(pairwise(rows), 1) if not _is_flush(*two)]
    for start, end in pairwise([0, *starts, len(rows)]):
        run = rows[start:end]
        yield from map(_whole, run) if any(len(row) == 1 for row in run) else run


def _is_flush(above: Row, row: Row) -> bool:
    """Whether a line begins and ends where the line directly above it does."""
    height = above[0].height
    shifts = above[0].left - row[0].left, above[-1].right - row[-1].right
    return above[0].middle - row[0].middle < NEXT_LINE * height and max(map(abs, shifts)) < FLUSH * height


def _whole(row: Row) -> Row:
    """The row as one segment, if its segments follow each other in the file."""
    if any(one.numbers.stop != other.number for one, other in pairwise(row)):
        return row
    return [replace(row[0], end=row[-1].end, right=row[-1].right, parts=sum(one.parts for one in row))]


def _bands(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Runs of rows with a common gutter that no segment crosses."""
    band: list[Row] = []
    gutters: list[Gutter] = []
    for row in rows:
        is_clear = len(row) <= MAX_SEGMENTS
        left = _narrowed(gutters, row) if is_clear and band and not _is_far(band[-1], row) else []
        if 0 < len(left) <= MAX_SEGMENTS:
            band.append(row)
            gutters = left
            continue
        if band:
            yield band
        gutters = [(one.right, other.left) for one, other in pairwise(row)] if is_clear else []
        band = [row] if gutters else []
    if band:
        yield band


def _is_far(row: Row, following: Row) -> bool:
    return row[0].bottom - following[0].top > MAX_LINE_GAP * max(row[0].height, following[0].height)


def _narrowed(gutters: Sequence[Gutter], row: Row) -> list[Gutter]:
    """The gutters, narrowed by the segments of a row."""
    for segment in row:
        left: list[Gutter] = []
        for start, end in gutters:
            if segment.right <= start or segment.left >= end:
                left.append((start, end))
            else:
                left += [(start, segment.left), (segment.right, end)]
        gutters = [one for one in left if one[1] - one[0] > GUTTER * segment.height]
    return list(gutters)


def _parted(band: list[Row]) -> list[list[Row]]:
    """The parts of a band with columns of their own: lines of text and other tables share few of them.

    A row of the next part has text across a gap of the row above, or the other way round. A few such rows are
    headings of several columns. Many are lines of several depths, as in a table of contents: no part has half
    of the rows. [] if the band is whole.
    """
    starts = [
        n for n, (row, below) in enumerate(pairwise(band), 1) if _crosses(row, below) or _crosses(below, row)
    ]
    parts = [band[start:end] for start, end in pairwise([0, *starts, len(band)])]
    known = gutters_of(band)
    own = (gutter for part in parts if len(part) > 1 for gutter in gutters_of(part))
    has_more = any(all(end <= left or right <= start for left, right in known) for start, end in own)
    return parts if len(parts) > 1 and has_more and 2 * max(map(len, parts)) >= len(band) else []


def _crosses(row: Row, other: Row) -> bool:
    """Whether a row has text across a gap of another one."""
    gaps = [(one.right, following.left) for one, following in pairwise(other)]
    return any(one.left < start and end < one.right for one in row for start, end in gaps)


def _blocks(band: Sequence[Row], gutters: Sequence[Gutter]) -> list[list[Row]]:
    """The rows of two blocks of text next to each other, such as an address and a date; [] if there are none.

    The file holds one after the other, and most of their lines are not level; or a few are not, if it holds a
    table in one of them row by row.
    """
    ends = ends_of(band, gutters)
    for number, gutter in enumerate(gutters, 1):
        if is_mixed(ends, number) is False:
            left, right = map(rows_of, _sides(band, gutter))
            fewer = min(len(left), len(right))
            level = _level_count(left, right)
            has_table = level < fewer and any(map(_has_table, (ends[:number], ends[number:])))
            if 2 * level <= fewer or has_table:
                return [left, right]
    return []


def _has_table(ends: Sequence[Sequence[int]]) -> bool:
    return any(is_mixed(ends, number) for number in range(1, len(ends)))


def _sides(band: Sequence[Row], gutter: Gutter) -> tuple[Row, Row]:
    """The segments on both sides of a gutter."""
    left: Row = []
    right: Row = []
    for segment in chain.from_iterable(band):
        (right if column_of(segment, [gutter]) else left).append(segment)
    return left, right


def _level_count(left: Sequence[Row], right: Sequence[Row]) -> int:
    """How many rows on the left are level with one on the right.

    In a form, whose rows are farther apart than lines, all values may be a bit higher than their labels.
    """
    offsets = _offsets(left, right)
    has_labels = all(abs(offset) < HALF for offset in _offsets(right, left))
    is_form = has_labels and all(
        above[0].middle - row[0].middle > NEXT_LINE * row[0].height for above, row in pairwise(left)
    )
    usual = median(offsets) if is_form else 0.0
    return sum(1 for offset in offsets if abs(offset - usual) < LEVEL and abs(offset) < HALF)


def _offsets(rows: Sequence[Row], others: Sequence[Row]) -> list[float]:
    """How much higher the nearest of the other rows is, for each row, in line heights."""
    bottoms = sorted(row[0].bottom for row in others)
    found = list[float]()
    for row in rows:
        at = bisect(bottoms, row[0].bottom)
        nearest = (bottom - row[0].bottom for bottom in bottoms[max(at - 1, 0) : at + 1])
        found.append(min(nearest, key=abs) / row[0].height)
    return found


def _found(
    text: str, characters: Sequence[tuple[str, Box]], rows: Sequence[Row]
) -> Iterator[tuple[Sequence[Row], str | None]]:
    """The columns, tables, lists and justified lines of these rows, with their new text; None if they stay.

    The text is columns one after another, or the rows of a table.
    """
    rows = list(_lines(rows))
    yield [row for row in rows if row[0].parts > 1], None
    for band in _bands(rows):
        gutters = _without_sparse_columns(text, band, gutters_of(band))
        cells = [cells_of(text, row, gutters) for row in band]
        if parts := _blocks(band, gutters):
            yield band, None
        elif _is_prose(cells):
            parts = _columns_in_order(band, cells, gutters)
            yield band, None if parts else "\n".join(map("\n".join, columns_of(cells)))
        elif parts := _parted(band) or _sections(band, cells, gutters):
            pass
        elif _is_list(cells):
            yield band, None
        elif found := table_of(text, characters, band, gutters):
            yield band, "\n" + "\n".join(table(found)) + "\n"
        else:
            parts = _boxes(band)
        for part in parts:
            yield from _found(text, characters, part)


def _lengths(columns: Sequence[Sequence[str]]) -> list[float]:
    """The usual length of the cells in each column, in characters."""
    return [median(map(len, column)) if column else 0 for column in columns]


def _is_prose(cells: Sequence[Sequence[str]]) -> bool:
    """Whether the columns are lines of prose next to each other."""
    columns = columns_of(cells)
    return (
        len(columns) <= MAX_COLUMNS
        and crossing_of(cells) >= MIN_LINES
        and min(_lengths(columns)) >= LINE_LENGTH
    )


def _columns_in_order(
    band: Sequence[Row], cells: Sequence[Sequence[str]], gutters: Sequence[Gutter]
) -> list[list[Row]]:
    """The rows of each column, which may contain tables; [] if the file holds the columns row by row."""
    if _steps_across(band, gutters) > crossing_of(cells) / 2:
        return []
    return [_column(band, gutters, number) for number in range(len(gutters) + 1)]


def _sections(band: list[Row], cells: Sequence[Sequence[str]], gutters: Sequence[Gutter]) -> list[list[Row]]:
    """The table, and the headings and texts around it; [] if there are none."""
    starts = _starts(band, cells, gutters)
    return [band[start:end] for start, end in pairwise([0, *starts, len(band)])] if starts else []


def _boxes(band: Sequence[Row]) -> list[list[Row]]:
    """The rows of boxes of several widths, which hold labels above their values; [] if there are none."""
    boxes = [list(part) for _, part in groupby(band, key=len)]
    return boxes if len(boxes) > 1 and min(map(len, boxes)) > 1 else []


def _without_sparse_columns(text: str, band: Sequence[Row], gutters: Sequence[Gutter]) -> Sequence[Gutter]:
    """The gutters between columns of prose, without those next to a column of few lines.

    Such are the numbers of headings.
    """
    columns = columns_of([cells_of(text, row, gutters) for row in band])
    full = [number for number, column in enumerate(columns) if len(column) > len(band) * MAX_CROSSING]
    is_prose = 1 < len(full) <= MAX_COLUMNS and all(
        len(columns[number]) >= MIN_LINES and median(map(len, columns[number])) >= LINE_LENGTH
        for number in full
    )
    if not is_prose or len(full) == len(columns):
        return gutters
    return [gutter for number, gutter in enumerate(gutters) if number in full and number < full[-1]]


def _steps_across(band: Sequence[Row], gutters: Sequence[Gutter]) -> int:
    """How often the text of the file goes from one column to the next in the same row."""
    return sum(
        one.numbers.stop == other.number and column_of(one, gutters) < column_of(other, gutters)
        for row in band
        for one, other in pairwise(row)
    )


def _starts(band: Sequence[Row], cells: Sequence[Sequence[str]], gutters: Sequence[Gutter]) -> list[int]:
    """Where a heading begins, or text below the last row of a table.

    A line below that begins in the first column and ends in another is text, not a cell.
    """
    if len(band) < MIN_ROWS:
        return []
    steps = [above[0].middle - row[0].middle for above, row in pairwise(band)]
    far = FARTHER * median(steps)
    tall = TALLER * median(row[0].height for row in band)
    below = list(enumerate(zip(steps, band[1:], cells[1:], strict=True), 1))
    headings = {
        number
        for number, (step, row, line) in below
        if step > far and row[0].height > tall and _is_title(line)
    }
    full = [n for n, line in enumerate(cells) if sum(map(bool, line)) > 1 and n not in headings]
    if not full:
        return []
    return [
        number
        for number, (step, row, line) in below
        if number in headings
        or (number > full[-1] and (step > far if line[0] else row[0].left < gutters[0][0]))
    ]


def _is_title(line: Sequence[str]) -> bool:
    """Whether a row has one cell, or a number before it."""
    filled = sum(map(bool, line))
    return filled == 1 or (filled == 2 and NUMBER.fullmatch(line[0]) is not None)


def _column(band: Sequence[Row], gutters: Sequence[Gutter], number: int) -> list[Row]:
    """The rows of one column."""
    rows = ([one for one in row if column_of(one, gutters) == number] for row in band)
    return [row for row in rows if row]


def _is_list(cells: Sequence[Sequence[str]]) -> bool:
    """Whether the columns are lines, which may be indented, with their bullets, numbers or marginal notes."""
    columns = columns_of(cells)
    lengths = _lengths(columns)
    if max(lengths) > LONG_LINE and min(map(len, columns)) <= max(map(len, columns)) / 2:
        return True
    is_long = max(lengths) >= LINE_LENGTH
    return (
        len(columns) > 1
        and max(sum(map(bool, row)) for row in cells) <= 2
        and all(BULLET.fullmatch(cell) or (is_long and NUMBER.fullmatch(cell)) for cell in columns[0])
    )
