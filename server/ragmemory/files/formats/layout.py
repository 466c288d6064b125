"""Reading order of a page from the positions of its characters: columns one after another, tables by row.

Only text in columns is moved, and only where the order of the file runs across them. Pure: the input is
characters with their bounding boxes, in points, from the lower left corner of the page. A box without height
is of slanted text, such as a watermark, which is in no row.
"""

from __future__ import annotations

import re
from bisect import bisect, bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, pairwise
from statistics import median
from typing import NamedTuple

from ragmemory.files.formats.file_text import table

# In line heights: the minimum gap between columns within a line, with and without a space in it; the minimum
# width of a gutter, which some lines narrow; the maximum distance of rows of one table, and of lines of one
# cell.
GAP = 1.0
NARROW = 0.65
GUTTER = 0.5
MAX_LINE_GAP = 2.5
NEXT_LINE = 1.4
# The maximum difference, in line heights, between the ends of justified lines, and between the bottoms of
# cells in a row.
FLUSH = 0.2
LEVEL, HALF = 0.15, 0.5
# The lines of a cell are closer than rows: this share of their distance.
CLOSER = 0.95
# Minimum lines with text in several columns, for a table and for columns of prose.
MIN_ROWS = 3
MIN_LINES = 5
MAX_COLUMNS = 3
# A row with more segments is not part of a table, and neither are rows with more gutters.
MAX_SEGMENTS = 50
# Characters of a usual line in a column of prose, and of a line with notes next to it.
LINE_LENGTH = 22
LONG_LINE = 60
# A heading, or the text below a table, is this many times farther from the row above it than rows usually
# are; a heading is this many times taller than them.
FARTHER = 1.2
TALLER = 1.1
# The maximum share of rows that cross a gutter, and of rows with a gap inside a cell.
MAX_CROSSING = 0.1
MAX_UNCLEAR = 0.34
# The minimum share of rows that have text on both sides of a narrow gutter.
MIN_BOTH = 0.4
# This many characters above each other are a vertical line, for example in the margin.
MIN_UPRIGHT = 4
# Markers of list items, and numbers of lines.
BULLET = re.compile(r"[^\w\s]|\(?\w{1,3}[.):]|[a-zA-Z]|§ ?\d+\w?")
NUMBER = re.compile(r"\d+(?:\.\d+)*\.?")
# An amount with or without its unit. One below another begins the next row, such as the tax below a sum,
# if either of them is money or a percentage.
AMOUNT = re.compile(r"[^\d\s]{0,3} ?\d[\d.,'’ ]*[^\d\s]{0,3}")
MONEY = re.compile(r"[€$£¥%]|[A-Z]{3}|[.,]\d\d(?!\d)")


# A hyphenated word at the end of a line: PDFium writes U+FFFE or U+0002 for the hyphen, or has a soft one.
# Browsers print the hyphen of Unicode, which is rarely typed.
DIVIDED = re.compile("[\ufffe\x02\xad](?:\r?\n)?|(?<=[^\\W\\d_])‐\r?\n(?=[a-zà-öø-ÿß])")
# The hyphen of a compound such as systemd-Init, which is divided there.
COMPOUND = re.compile("(?<=[^\\WA-Z_])(?:[\ufffe\x02](?:\r?\n)?|‐\r?\n)(?=[A-ZÄÖÜ])")


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


def undivided(text: str) -> str:
    """The text without the hyphens at the ends of its lines, and with these lines joined."""
    return DIVIDED.sub("", COMPOUND.sub("-", text))


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
    segments = list(_segments(characters, GAP, NARROW if has_spaces else GAP))
    known: set[int] = set()  # segment numbers
    moved: dict[int, str] = {}  # replacement texts by segment number
    for band, found in _found(text, characters, _rows(_level(segments))):
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


def _segments(characters: Sequence[tuple[str, Box]], gap: float, without_space: float) -> Iterator[Segment]:
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


def _level(segments: Sequence[Segment]) -> list[Segment]:
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


def _rows(segments: Iterable[Segment]) -> list[Row]:
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


def _parted(band: list[Row]) -> list[list[Row]]:
    """The band, or its parts with columns of their own: lines of text and other tables share few of them.

    A row of the next part has text across a gap of the row above, or the other way round. A few such rows are
    headings of several columns. Many are lines of several depths, as in a table of contents: no part has half
    of the rows.
    """
    starts = [
        n for n, (row, below) in enumerate(pairwise(band), 1) if _crosses(row, below) or _crosses(below, row)
    ]
    parts = [band[start:end] for start, end in pairwise([0, *starts, len(band)])]
    known = _gutters(band)
    own = (gutter for part in parts if len(part) > 1 for gutter in _gutters(part))
    has_more = any(all(end <= left or right <= start for left, right in known) for start, end in own)
    return parts if has_more and 2 * max(map(len, parts)) >= len(band) else [band]


def _crosses(row: Row, other: Row) -> bool:
    """Whether a row has text across a gap of another one."""
    gaps = [(one.right, following.left) for one, following in pairwise(other)]
    return any(one.left < start and end < one.right for one in row for start, end in gaps)


def _blocks(band: Sequence[Row], gutters: Sequence[Gutter]) -> list[list[Row]]:
    """The rows of two blocks of text next to each other, such as an address and a date; [] if there are none.

    The file holds one after the other, and most of their lines are not level; or a few are not, if it holds a
    table in one of them row by row.
    """
    ends = _ends(band, gutters)
    for number, gutter in enumerate(gutters, 1):
        if _is_mixed(ends, number) is False:
            left, right = map(_rows, _sides(band, gutter))
            fewer = min(len(left), len(right))
            level = _level_count(left, right)
            has_table = level < fewer and any(map(_has_table, (ends[:number], ends[number:])))
            if 2 * level <= fewer or has_table:
                return [left, right]
    return []


def _ends(band: Sequence[Row], gutters: Sequence[Gutter]) -> list[list[int]]:
    """Where the first and the last segment of each column start in the file; [] for an empty column."""
    starts: list[list[int]] = [[] for _ in range(len(gutters) + 1)]
    for segment in chain.from_iterable(band):
        starts[_column_of(segment, gutters)].append(segment.start)
    return [[min(column), max(column)] if column else [] for column in starts]


def _is_mixed(ends: Sequence[Sequence[int]], number: int) -> bool | None:
    """Whether the file goes to and fro between the first columns and the others; None if a side is empty."""
    left, right = list(chain(*ends[:number])), list(chain(*ends[number:]))
    return min(left) < max(right) and min(right) < max(left) if left and right else None


def _has_table(ends: Sequence[Sequence[int]]) -> bool:
    return any(_is_mixed(ends, number) for number in range(1, len(ends)))


def _sides(band: Sequence[Row], gutter: Gutter) -> tuple[Row, Row]:
    """The segments on both sides of a gutter."""
    left: Row = []
    right: Row = []
    for segment in chain.from_iterable(band):
        (right if _column_of(segment, [gutter]) else left).append(segment)
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


def _gutters(band: Sequence[Row]) -> list[Gutter]:
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
    found = [part for gutter in gutters for part in _around(band, gutter, width)]
    return found if len(found) <= MAX_SEGMENTS else []


def _around(band: Sequence[Row], gutter: Gutter, width: float) -> list[Gutter]:
    """The gutter, or both sides of the cells in it: the header of a column, and its cells if they are few."""
    start, end = gutter
    cells = [one for row in band for one in row if start < one.left and one.right < end]
    if not cells or (len(cells) == 1 and cells[0] not in band[0]):
        return [gutter]
    sides = (start, min(one.left for one in cells)), (max(one.right for one in cells), end)
    return [(left, right) for left, right in sides if right - left > width]


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


def _found(
    text: str, characters: Sequence[tuple[str, Box]], rows: Sequence[Row]
) -> Iterator[tuple[Sequence[Row], str | None]]:
    """The columns, tables, lists and justified lines of these rows, with their new text; None if they stay.

    The text is columns one after another, or the rows of a table.
    """
    rows = list(_lines(rows))
    yield [row for row in rows if row[0].parts > 1], None
    for band in _bands(rows):
        gutters = _without_sparse_columns(text, band, _gutters(band))
        if blocks := _blocks(band, gutters):
            yield band, None
            for block in blocks:
                yield from _found(text, characters, block)
            continue
        cells = [_cells(text, row, gutters) for row in band]
        columns = _columns(cells)
        lengths = [median(map(len, column)) if column else 0 for column in columns]
        crossing = sum(1 for row in cells if sum(map(bool, row)) > 1)
        if len(columns) <= MAX_COLUMNS and crossing >= MIN_LINES and min(lengths) >= LINE_LENGTH:
            if _steps_across(band, gutters) > crossing / 2:
                yield band, "\n".join(map("\n".join, columns))
            else:  # The columns may contain tables.
                yield band, None
                for number in range(len(columns)):
                    yield from _found(text, characters, _column(band, gutters, number))
        elif len(parts := _parted(band)) > 1:
            for part in parts:
                yield from _found(text, characters, part)
        elif starts := _starts(band, cells, gutters):
            for start, end in pairwise([0, *starts, len(band)]):
                yield from _found(text, characters, band[start:end])
        elif _is_list(cells, columns, lengths):
            yield band, None
        else:
            finer = [[part for one in row for part in _parts(characters, one)] for row in band]
            found = _table(text, finer, _confirmed(text, finer, gutters)) or _table(text, band, gutters)
            if found:
                yield band, "\n" + "\n".join(table(found)) + "\n"
                continue
            # Labels above their values, in boxes of several widths.
            boxes = [list(part) for _, part in groupby(band, key=len)]
            for part in boxes if len(boxes) > 1 and min(map(len, boxes)) > 1 else ():
                yield from _found(text, characters, part)


def _without_sparse_columns(text: str, band: Sequence[Row], gutters: Sequence[Gutter]) -> Sequence[Gutter]:
    """The gutters between columns of prose, without those next to a column of few lines.

    Such are the numbers of headings.
    """
    columns = _columns([_cells(text, row, gutters) for row in band])
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
        one.numbers.stop == other.number and _column_of(one, gutters) < _column_of(other, gutters)
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
    rows = ([one for one in row if _column_of(one, gutters) == number] for row in band)
    return [row for row in rows if row]


def _is_list(
    cells: Sequence[Sequence[str]], columns: Sequence[Sequence[str]], lengths: Sequence[float]
) -> bool:
    """Whether the columns are lines, which may be indented, with their bullets, numbers or marginal notes."""
    if max(lengths) > LONG_LINE and min(map(len, columns)) <= max(map(len, columns)) / 2:
        return True
    is_long = max(lengths) >= LINE_LENGTH
    return (
        len(columns) > 1
        and max(sum(map(bool, row)) for row in cells) <= 2
        and all(BULLET.fullmatch(cell) or (is_long and NUMBER.fullmatch(cell)) for cell in columns[0])
    )


def _table(text: str, band: Sequence[Row], gutters: Sequence[Gutter]) -> list[list[str]]:
    """The rows of a table; [] if it is none."""
    cells = [_cells(text, row, gutters) for row in band]
    crossing = sum(1 for row in cells if sum(map(bool, row)) > 1)
    unclear = sum(1 for row, line in zip(band, cells, strict=True) if len(row) > sum(map(bool, line)))
    if (crossing < MIN_ROWS and not _is_header_with_row(cells)) or unclear > MAX_UNCLEAR * len(band):
        return []
    return _joined(text, band, cells, gutters)


def _confirmed(text: str, band: Sequence[Row], known: Sequence[Gutter]) -> list[Gutter]:
    """The gutters of a table, if they were known or many rows have text on both sides."""
    gutters = _gutters(band)
    cells = [_cells(text, row, gutters) for row in band]
    return [
        (start, end)
        for number, (start, end) in enumerate(gutters)
        if any(start < other and one < end for one, other in known)
        or sum(1 for row in cells if row[number] and row[number + 1]) > MIN_BOTH * len(band)
    ]


def _is_header_with_row(cells: Sequence[Sequence[str]]) -> bool:
    """Whether a row has a header above it, in each of several columns."""
    if (
        len(cells) < 2
        or len(cells[0]) < MIN_ROWS
        or any(not cell or NUMBER.fullmatch(cell) for cell in cells[0])
    ):
        return False
    return sum(map(bool, cells[1])) > 1


def _parts(characters: Sequence[tuple[str, Box]], segment: Segment) -> Iterator[Segment]:
    """The parts of a segment between narrow gaps."""
    start = segment.start
    for part in _segments(characters[start : segment.end], NARROW, NARROW):
        yield replace(part, start=start + part.start, end=start + part.end)


def _cells(text: str, row: Row, gutters: Sequence[Gutter]) -> list[str]:
    cells = [""] * (len(gutters) + 1)
    for segment in row:
        column = _column_of(segment, gutters)
        shown = " ".join(text[segment.start : segment.end].split())
        cells[column] = f"{cells[column]} {shown}".lstrip()
    return cells


def _columns(cells: Sequence[Sequence[str]]) -> list[list[str]]:
    """The cells of each column that are not empty."""
    return [[cell for cell in column if cell] for column in zip(*cells, strict=True)]


def _column_of(segment: Segment, gutters: Sequence[Gutter]) -> int:
    return bisect_left(gutters, segment.left + segment.right, key=sum)


def _wrapped(text: str, band: Sequence[Row], gutters: Sequence[Gutter]) -> set[int]:
    """The lines of a table that continue the row above: the file returns from them to that row.

    Programs write a table cell by cell, with all lines of a cell. A line that continues all cells is closer
    to the one above than rows are.
    """
    ends = _ends(band, gutters)
    if any(_is_mixed(ends, number) is False for number in range(1, len(ends))):
        return set()  # The file holds the columns one after another.
    found = dict[int, float]()  # distances from the line above
    others = list[float]()
    above = dict[int, Segment]()  # the last lines of the cells, by column
    last = -1
    for number, row in enumerate(band):
        step = band[number - 1][0].middle - row[0].middle if number else 0.0
        own = {_column_of(one, gutters): one for one in row}
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
