"""The headings of a PDF, by its outline or its font sizes, and what its pages repeat at their edges. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ragmemory.files.formats.rst import NUMBER_SIGN
from ragmemory.ingest.candidates import is_title, one_line
from ragmemory.ingest.headings import ENDED
from ragmemory.ingest.headings import headings as plain_headings

# Lines at the top and at the bottom of a page that may be repeated on others, and the share of the pages that
# have them: the two sides of a leaf may differ.
EDGE = 2
REPEATED = 0.4
LEAST_PAGES = 3
DIGITS = re.compile(r"\d+")
# Of an outline, the share of its entries that are found in the text; else font sizes count.
LEAST_FOUND = 0.5
MOST_ENTRIES = 5_000
MOST_SEARCHED = 500  # lines of a page
# Headings of one size, and the share of the text that is as large at most: more is no heading.
LEAST_EQUAL = 2
MOST_LARGE = 0.2
# Points that a heading is larger than the text.
LARGER = 0.15
MOST_LEVELS = 6
MOST_LINES = 3
# So many without text between them are a title page, or a list.
MOST_LISTED = 3
NUMBER = re.compile(r"(?:[A-Z]|\d+)(?:\.\d+)*\.?\s")
# Before the title of an outline's entry, the text may have its number.
LEADING_NUMBER = re.compile(r"[\W\d_]*|(?:appendix|chapter|part|kapitel|anhang)?[\W\d_]*[a-z]?[\W\d_]*")


class Line(NamedTuple):
    """A line of a page, with the size of its smallest characters in points."""

    text: str
    size: float


class Entry(NamedTuple):
    """An entry of the outline; `level` counts from 1."""

    page: int
    level: int
    title: str


class Heading(NamedTuple):
    """A heading: `lines` lines of a page, from `line` on."""

    page: int
    line: int
    lines: int
    level: int
    title: str


def repeated(pages: Sequence[str]) -> set[str]:
    """The keys of the lines at the edges of pages that most pages have, whatever the number in them."""
    seen = Counter(key for text in pages for key in {_key(line) for line in _edges(text)})
    return {key for key, times in seen.items() if times >= max(LEAST_PAGES, REPEATED * len(pages))}


def without_repeated(text: str, keys: set[str]) -> str:
    """The text of a page without those lines at its edges."""
    lines = text.split("\n")
    edges = {number for number in _edge_numbers(lines) if _key(lines[number]) in keys}
    return "\n".join(line for number, line in enumerate(lines) if number not in edges)


def headings(pages: Sequence[Sequence[Line]], outline: Sequence[Entry]) -> list[Heading]:
    """The headings of some pages, in order."""
    found = list(_of_outline(pages, outline))
    if len(found) >= max(LEAST_EQUAL, LEAST_FOUND * len(outline)):
        return sorted(found)
    return list(_of_sizes(pages)) or list(_of_words(pages))


def with_headings(text: str, found: Sequence[Heading], lines: Sequence[Line]) -> str:
    """The text of a page with its headings as Markdown's; those that the text has elsewhere are left out."""
    rows = [NUMBER_SIGN.sub(r"\1\\", row) for row in text.split("\n")]
    at = 0
    for heading in found:
        first = one_line(lines[heading.line].text)
        place = next((row for row in range(at, len(rows)) if one_line(rows[row]) == first), None)
        if place is None:
            continue
        rows[place : place + heading.lines] = [f"{'#' * heading.level} {heading.title}"]
        at = place + 1
    return "\n".join(rows)


def _of_outline(pages: Sequence[Sequence[Line]], outline: Sequence[Entry]) -> Iterator[Heading]:
    taken: dict[int, int] = defaultdict(int)  # lines by page
    for entry in outline[:MOST_ENTRIES]:
        title = _letters(entry.title)
        if not title or not 0 <= entry.page < len(pages):
            continue
        lines = pages[entry.page][:MOST_SEARCHED]
        for number in range(taken[entry.page], len(lines)):
            count = _lines_of(title, lines, number)
            # The number of the page may stand above it.
            if count == 1 or (count and not _lines_of(title, lines, number + 1)):
                shown = one_line(" ".join(line.text for line in lines[number : number + count]))
                yield Heading(entry.page, number, count, min(entry.level, MOST_LEVELS), shown)
                taken[entry.page] = number + count
                break


def _lines_of(title: str, lines: Sequence[Line], number: int) -> int:
    """How many lines from `number` on are the title of an entry, or that after its number; or 0."""
    letters = ""
    for count, line in enumerate(lines[number : number + MOST_LINES], 1):
        letters += _letters(line.text)
        if letters.endswith(title) and LEADING_NUMBER.fullmatch(letters.removesuffix(title)):
            return count
    return 0


def _of_sizes(pages: Sequence[Sequence[Line]]) -> Iterator[Heading]:
    sizes = Counter[float]()
    for lines in pages:
        for line in lines:
            sizes[line.size] += len(line.text)
    if not sizes:
        return
    body = max(sizes, key=sizes.__getitem__)
    larger = {size for size in sizes if size >= body + LARGER and sizes[size] <= MOST_LARGE * sizes.total()}
    found = [one for number, lines in enumerate(pages) for one in _blocks(number, lines, larger)]
    found = [one for run in _runs(found) if len(run) < MOST_LISTED for one in run]
    times = Counter(size for size, _ in found)
    levels = sorted((size for size in times if times[size] >= LEAST_EQUAL), reverse=True)[:MOST_LEVELS]
    kept = [heading._replace(level=levels.index(size) + 1) for size, heading in found if size in levels]
    numbers = [NUMBER.match(heading.title) for heading in kept]
    if 2 * sum(map(bool, numbers)) <= len(kept):
        yield from kept
        return
    for heading, number in zip(kept, numbers, strict=True):
        depth = number[0].rstrip(" .").count(".") + 1 if number else heading.level
        yield heading._replace(level=min(depth, MOST_LEVELS))


def _of_words(pages: Sequence[Sequence[Line]]) -> Iterator[Heading]:
    """Numbered headings and labels such as "Article 12" of a text in one size."""
    starts: dict[int, tuple[int, int]] = {}  # page and line by offset
    parts: list[str] = []
    at = 0
    for page, lines in enumerate(pages):
        for number, line in enumerate(lines):
            starts[at] = page, number
            # A paragraph may end with the line: there are no blank ones.
            parts.append(f"{line.text}\n\n" if ENDED.search(line.text) else f"{line.text}\n")
            at += len(parts[-1])
    text = "".join(parts)
    marks = plain_headings(text, ("label", "number", "roman"))
    if 10 * sum(1 for mark in marks if mark.end == mark.start) > len(marks):
        return
    for mark in marks:
        if mark.end > mark.start:
            count = text.count("\n", mark.start, mark.end) - text.count("\n\n", mark.start, mark.end - 1)
            yield Heading(*starts[mark.start], count, min(mark.level, MOST_LEVELS), mark.title)


def _blocks(page: int, lines: Sequence[Line], larger: set[float]) -> Iterator[tuple[float, Heading]]:
    """The large lines of a page, those of one heading together, with their sizes."""
    number = 0
    for size, group in groupby(lines, key=lambda line: line.size):
        block = list(group)
        start = 0
        for end in range(1, len(block) + 1):
            if end == len(block) or NUMBER.match(block[end].text):
                title = one_line(" ".join(line.text for line in block[start:end]))
                if size in larger and end - start <= MOST_LINES and is_title(title):
                    yield size, Heading(page, number + start, end - start, 0, title)
                start = end
        number += len(block)


def _runs(found: Sequence[tuple[float, Heading]]) -> Iterator[list[tuple[float, Heading]]]:
    """Headings that follow each other without text between them; smaller ones may."""
    run: list[tuple[float, Heading]] = []
    for one in found:
        if run:
            size, last = run[-1]
            follows = (last.page, last.line + last.lines) == (one[1].page, one[1].line)
            if not follows or one[0] < size:
                yield run
                run = []
        run.append(one)
    if run:
        yield run


def _edges(text: str) -> list[str]:
    lines = text.split("\n")
    return [lines[number] for number in _edge_numbers(lines)]


def _edge_numbers(lines: Sequence[str]) -> set[int]:
    full = [number for number, line in enumerate(lines) if line.strip()]
    return {*full[:EDGE], *full[-EDGE:]}


def _key(line: str) -> str:
    return DIGITS.sub("0", one_line(line).casefold())


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
