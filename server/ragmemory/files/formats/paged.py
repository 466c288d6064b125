"""Plain text that was printed in pages, such as an RFC: its running headers and footers are no text. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ragmemory.ingest.candidates import squeezed
from ragmemory.ingest.headings import DIGITS

MAX_LINE = 200
# Minimum pages, lines of a page, and share of the pages that have the same number of lines.
MIN_PAGES = 5
MIN_LINES = 40
REGULAR = 0.9
# Left and right pages may differ.
STEPS = (1, 2)
# A line with a number between blank lines. Possessive, as other lines may be long and full of numbers.
LONE = re.compile(
    rf"\n\n(?P<line>(?=[^\n\d]{{0,{MAX_LINE}}}+\d)[^\n]{{1,{MAX_LINE}}}+)(?=\n[ \t\r\f]*+(?:\n|\Z))"
)


def without_page_breaks(text: str) -> str:
    """The text with blank lines for its running headers and footers: all lines keep their numbers.

    A page number is the first or last number of a line of its own, and pages are equally long.
    """
    lone: dict[str, list[int]] = defaultdict(list)
    number, at = 0, 0
    for found in LONE.finditer(text):
        number, at = number + text.count("\n", at, found.start("line")), found.start("line")
        lone[_key(found["line"])].append(number)
    lines = text.split("\n")
    pages = [of for of in lone.values() if _are_pages(lines, of)]
    if not pages:
        return text
    for number in [number for of in pages for number in (*of, *_neighbours(lines, of))]:
        lines[number] = ""
    return "\n".join(lines)


def _key(line: str) -> str:
    return DIGITS.sub("0", squeezed(line))


def _are_pages(lines: Sequence[str], numbers: Sequence[int]) -> bool:
    """Whether the lines with these numbers, which differ in digits only, count pages of the same length."""
    lengths = [below - above for above, below in pairwise(numbers)]
    if len(numbers) < MIN_PAGES or _usual(lengths) < MIN_LINES:
        return False
    digits = [DIGITS.findall(lines[number]) for number in numbers]
    counts = [[int(found[place]) for found in digits] for place in (0, -1)]
    steps = [[below - above for above, below in pairwise(one)] for one in counts]
    return any(_usual(one) in STEPS for one in steps)


def _usual(values: Sequence[int]) -> int:
    """The value of nearly all; -1 if there is none."""
    value, times = Counter(values).most_common(1)[0]
    return value if times >= REGULAR * len(values) else -1


def _neighbours(lines: Sequence[str], numbers: Sequence[int]) -> Iterator[int]:
    """The lines next to page numbers that recur on most pages, such as titles; blank lines surround them."""
    for step in (-1, 1):
        end = 0 if step < 0 else len(lines) - 1
        beyond = (range(number + step, end, step) for number in numbers)
        closest = (next((at for at in places if lines[at].strip()), end) for places in beyond)
        places = [at for at in closest if at != end and not lines[at + step].strip()]
        times = Counter(_key(lines[place]) for place in places)
        yield from (place for place in places if 2 * times[_key(lines[place])] > len(numbers))
