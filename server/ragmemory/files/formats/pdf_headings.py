"""The headings of a PDF, from its outline or font sizes, and its running headers and footers. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, zip_longest
from operator import itemgetter
from typing import NamedTuple, TypeVar

from ragcommon.text.rules import is_row
from ragmemory.files.formats.file_text import not_a_heading
from ragmemory.ingest.candidates import COUNTED, MAX_QUESTION, MAX_TITLE, SHORT_LINE, is_title, squeezed
from ragmemory.ingest.headings import DIGITS, ENDED, LOOKBACK, MAX_REPEATED, numbered_titles

# Running headers and footers: lines at the top and bottom of a page that are considered, and the minimum
# share and number of pages that repeat them. Left and right pages may differ.
EDGE = 2
REPEATED = 0.4
MIN_PAGES = 3
# The outline is used if this share of its entries is found in the text; else font sizes are.
MIN_FOUND = 0.5
MAX_ENTRIES = 5_000
MAX_SEARCHED = 500  # lines of a page
# Minimum number of headings of one size, and the maximum share of the text in that size; that of questions.
MIN_EQUAL = 2
MAX_LARGE = 0.2
MAX_ASKED = 0.5
# Points by which a heading is larger than the body text.
LARGER = 0.15
# Points that a bold line counts as larger, so that it is a heading also in the size of the body text.
BOLD = 0.2
MAX_LEVELS = 6
MAX_LINES = 3
# This many headings without text between them are a title page or a list.
MAX_LISTED = 3
NUMBER = re.compile(r"(?:[A-Z]|\d+)(?:\.\d+)*\.?\s")
# In the text, a number may precede the title of an outline entry.
LEADING_NUMBER = re.compile(r"[\W\d_]*|(?:appendix|chapter|part|kapitel|anhang)?[\W\d_]*[a-z]?[\W\d_]*")
LEADING_DIGITS = re.compile(r"(?:appendix|chapter|part|kapitel|anhang)?\d*")
PAGE = re.compile(r"\d{1,5}", re.ASCII)
ENTRY = re.compile(r"(.*\S) \d{1,4}", re.ASCII)
# The number of a page, which may be in the line of another number, has few digits.
FEW_DIGITS, MANY_DIGITS = re.compile(r"(?<!\d)\d{1,3}(?!\d)"), re.compile(r"\d{4}")
# The mark of an item that is no number or sign: "a) …".
LETTERED = re.compile(r"(?:\w{1,4}[.)]|o)\s")
# Between the columns of a table or index.
GAPS = re.compile(r"\S {3,}|\.{4}|\t")
# Signs before a heading, and before a footnote without a number: "∗E-mail: …".
SIGNS = ("#", "*", "∗", "†", "‡")
# "Figure 5.1. The Chart Of Accounts"
CAPTION = re.compile(rf"{COUNTED.pattern}\.?\s+\d", re.IGNORECASE)

# "Chapter 1", with the title below it.
CHAPTER = re.compile(r"[^\W\d_]{3,10} (?:\d{1,2}|[IVXL]+|[A-Z])")

T = TypeVar("T")


class Line(NamedTuple):
    """A line of a page, with the size of its smallest characters in points, BOLD more if words are bold."""

    text: str
    size: float


class Bookmark(NamedTuple):
    """An entry of the outline; `level` counts from 1."""

    page: int
    level: int
    title: str


class Heading(NamedTuple):
    """A heading that spans `lines` lines of a page, from `line` on."""

    page: int
    line: int
    lines: int
    level: int
    title: str


def repeated(pages: Sequence[str]) -> set[str]:
    """The keys of running headers and footers; numbers in them are ignored."""
    seen = Counter(key for text in pages for key in {_key(line) for line in _edges(text)})
    return {key for key, times in seen.items() if times >= max(MIN_PAGES, REPEATED * len(pages))}


def without_repeated(lines: Sequence[T], keys: set[str], text_of: Callable[[T], str]) -> list[T]:
    """The lines of a page without its running headers and footers."""
    edges = _edge_numbers([text_of(line) for line in lines])
    return [line for n, line in enumerate(lines) if not (n in edges and _key(text_of(line)) in keys)]


def is_cut(above: str, below: str) -> bool:
    """Whether a paragraph continues on the next page, in small letters. Entries of an index are short."""
    last, first = above.rstrip().rpartition("\n")[2], below.partition("\n")[0]
    is_other = last.startswith(SIGNS) or is_row(last) or CAPTION.match(last)
    is_open = not is_other and not ENDED.search(last[-LOOKBACK:]) and len(last) > SHORT_LINE / 2
    is_rest = first[:1].islower() and (len(first) > SHORT_LINE / 2 or ENDED.search(first))
    is_text = not any(map(GAPS.search, (last, first))) and not LETTERED.match(first)
    return bool(is_open and is_rest and is_text)


def repeated_numbers(
    pages: Sequence[str], keys: set[str], others: Sequence[str]
) -> Iterator[tuple[int, str]]:
    """The running headers and footers with a number that stays the same, such as that of a policy.

    These come with the first page that has them, unless a line of `others` says the same: the pages without
    what is repeated.
    """
    seen: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for page, text in enumerate(pages):
        for line in dict.fromkeys(_edges(text)):
            if _key(line) in keys:
                seen[FEW_DIGITS.sub("0", line)].append((page, line))
    said = {line for text in others for line in text.split("\n")}
    for form, found in seen.items():
        lines = {line for _, line in found}
        is_number = MANY_DIGITS.search(form) or (len(lines) == 1 and DIGITS.search(form))
        if is_number and len(found) >= MIN_PAGES and not lines & said:
            yield found[0]


def running_heads(pages: Sequence[str], outline: Sequence[Bookmark]) -> Iterator[tuple[int, str]]:
    """Running headers and footers whose text changes by section, with their pages: number and title.

    The title is one of the outline. Its only line on its own page is the heading, which may have a number.
    """
    entries = Counter((entry.page, _unnumbered(entry.title)) for entry in outline[:MAX_ENTRIES])
    titles = {title for _, title in entries if title}
    if (first := _first_number(pages)) is None:
        return
    for page, text in enumerate(pages):
        for line in _edges(text):
            number, words = str(page + first), line.split()
            if number not in (words[0], words[-1]):
                continue
            title = _unnumbered(" ".join(words[1:] if words[0] == number else words[:-1]))
            others = (_unnumbered(other) for other in text.split("\n") if other != line)
            if title in titles and list(others).count(title) >= entries[page, title]:
                yield page, line


def _first_number(pages: Sequence[str]) -> int | None:
    """The number printed on the first page, derived from the running heads of most pages; None if unclear."""
    found = Counter[int]()
    for page, text in enumerate(pages):
        ends = (word for line in _edges(text) for word in (line.split()[0], line.split()[-1]))
        found.update(int(number) - page for number in {word for word in ends if PAGE.fullmatch(word)})
    first, times = max(found.items(), key=itemgetter(1), default=(0, 0))
    return first if times >= max(MIN_PAGES, REPEATED * len(pages)) else None


def headings(
    pages: Sequence[Sequence[Line]], outline: Sequence[Bookmark], title: Heading | None = None
) -> list[Heading]:
    """The headings of all pages, in order, with the title if it is above all of them."""
    found = list(_of_outline(pages, outline))
    if len(found) < max(MIN_EQUAL, MIN_FOUND * len(outline)):
        found = list(_of_sizes(pages)) or list(_of_words(pages))
    are_below = title and found and all((title.page, title.line) < (one.page, one.line) for one in found)
    return sorted([title, *found] if title and are_below else found)


def title_of(pages: Sequence[Sequence[Line]]) -> Heading | None:
    """The title of the document: the only lines in the largest size, at the top of its first page."""
    sizes = Counter(line.size for lines in pages for line in lines)
    largest = max(sizes, default=0.0)
    found = next((one for _, one in _blocks(0, pages[0], {largest})), None) if sizes else None
    is_only = found is not None and found.line < EDGE and found.lines == sizes[largest] < sizes.total()
    return found._replace(level=1) if found and is_only else None


def with_headings(text: str, found: Sequence[Heading], lines: Sequence[Line]) -> str:
    """The text of a page with Markdown headings; headings that are not found in the text are skipped."""
    rows = [not_a_heading(row) for row in text.split("\n")]
    at = 0
    for heading in found:
        first = squeezed(lines[heading.line].text)
        place = next((row for row in range(at, len(rows)) if squeezed(rows[row]) == first), None)
        if place is None:
            continue
        # The header of a table below it may be in the same font.
        below = enumerate(rows[place + 1 : place + heading.lines], 1)
        count = next((n for n, row in below if not row.strip() or is_row(row)), heading.lines)
        own = " ".join(line.text for line in lines[heading.line : heading.line + count])
        title = heading.title if count == heading.lines else squeezed(own)
        rows[place : place + count] = [f"{'#' * heading.level} {title}"]
        at = place + 1
    return "\n".join(rows)


def _of_outline(pages: Sequence[Sequence[Line]], outline: Sequence[Bookmark]) -> Iterator[Heading]:
    taken: dict[int, int] = defaultdict(int)  # lines by page
    for entry in outline[:MAX_ENTRIES]:
        title = _letters(entry.title)
        if not title or not 0 <= entry.page < len(pages):
            continue
        lines = pages[entry.page][:MAX_SEARCHED]
        for number in range(taken[entry.page], len(lines)):
            count = _lines_of(title, lines, number)
            # The line may be a page number above the title.
            if count == 1 or (count and not _lines_of(title, lines, number + 1)):
                shown = squeezed(" ".join(line.text for line in lines[number : number + count]))
                yield Heading(entry.page, number, count, min(entry.level, MAX_LEVELS), shown)
                taken[entry.page] = number + count
                break


def _lines_of(title: str, lines: Sequence[Line], number: int) -> int:
    """How many lines from `number` on are the title, with or without a leading number; 0 if none."""
    letters = ""
    for count, line in enumerate(lines[number : number + MAX_LINES], 1):
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
    larger = {
        size
        for size in sizes
        if size >= body + LARGER
        and sizes[size] <= (MAX_ASKED if _asks(pages, size) else MAX_LARGE) * sizes.total()
    }
    found = [one for number, lines in enumerate(pages) for one in _blocks(number, lines, larger)]
    found = [one for run in _runs(found) if len(run) < MAX_LISTED for one in run]
    found = list(_without_smaller(found))
    # Entries of a table of contents.
    titles = {heading.title for _, heading in found}
    found = [one for one in found if not (entry := ENTRY.fullmatch(one[1].title)) or entry[1] not in titles]
    # Bold remarks in the size of the text, such as "Note".
    bold = round(body + BOLD, 1)
    remarks = Counter(heading.title for size, heading in found if size == bold)
    found = [one for one in found if remarks[one[1].title] < MAX_REPEATED]
    times = Counter(size for size, _ in found)
    levels = sorted((size for size in times if times[size] >= MIN_EQUAL), reverse=True)[:MAX_LEVELS]
    yield from _with_levels_of_numbers(
        [heading._replace(level=levels.index(size) + 1) for size, heading in found if size in levels]
    )


def _without_smaller(found: Sequence[tuple[float, Heading]]) -> Iterator[tuple[float, Heading]]:
    """The headings without those right above a larger one: its label, or the author named below a title."""
    label: Heading | None = None
    for (size, one), after in zip_longest(found, found[1:]):
        if label:
            title = f"{label.title} {one.title}"
            one = one._replace(line=label.line, lines=label.lines + one.lines, title=title)
        label = None
        if after and size < after[0] and (one.page, one.line + one.lines) == (after[1].page, after[1].line):
            label = one if CHAPTER.fullmatch(one.title) else None
        else:
            yield size, one


def _asks(pages: Sequence[Sequence[Line]], size: float) -> bool:
    """Whether most titles of a size are questions, of which the answers may be short."""
    titles = [one.title for number, lines in enumerate(pages) for _, one in _blocks(number, lines, {size})]
    return 2 * sum(title.endswith(("?", "？")) for title in titles) > len(titles)


def _with_levels_of_numbers(found: Sequence[Heading]) -> Iterator[Heading]:
    """The headings, at the levels that their numbers say if most of them have one."""
    numbers = [NUMBER.match(heading.title) for heading in found]
    if 2 * sum(map(bool, numbers)) <= len(found):
        yield from found
        return
    for heading, number in zip(found, numbers, strict=True):
        depth = number[0].rstrip(" .").count(".") + 1 if number else heading.level
        yield heading._replace(level=min(depth, MAX_LEVELS))


def _of_words(pages: Sequence[Sequence[Line]]) -> Iterator[Heading]:
    """Numbered headings and labels such as "Article 12", for a text in one font size."""
    starts: dict[int, tuple[int, int]] = {}  # page and line by offset
    parts: list[str] = []
    at = 0
    for page, lines in enumerate(pages):
        for number, line in enumerate(lines):
            starts[at] = page, number
            # PDFs have no blank lines: a line that ends a sentence may end a paragraph.
            parts.append(f"{line.text}\n\n" if ENDED.search(line.text) else f"{line.text}\n")
            at += len(parts[-1])
    text = "".join(parts)
    for mark in numbered_titles(text):
        count = text.count("\n", mark.start, mark.end) - text.count("\n\n", mark.start, mark.end - 1)
        yield Heading(*starts[mark.start], count, min(mark.level, MAX_LEVELS), mark.title)


def _blocks(page: int, lines: Sequence[Line], larger: set[float]) -> Iterator[tuple[float, Heading]]:
    """The headings of a page by font size; lines of one heading are joined."""
    number = 0
    for size, group in groupby(lines, key=lambda line: line.size):
        block = list(group)
        start = 0
        for end in range(1, len(block) + 1):
            if end == len(block) or _begins_another(block[end - 1].text, block[end].text):
                title = squeezed(" ".join(line.text for line in block[start:end]))
                most = MAX_QUESTION if title.endswith(("?", "？")) else MAX_TITLE
                is_one = is_title(title, most) and not CAPTION.match(title)
                if size in larger and end - start <= MAX_LINES and is_one:
                    yield size, Heading(page, number + start, end - start, 0, title)
                start = end
        number += len(block)


def _begins_another(line: str, below: str) -> bool:
    """Whether a line is not the second one of a heading in the same font."""
    return NUMBER.match(below) is not None or line.isupper() > below.isupper()


def _runs(found: Sequence[tuple[float, Heading]]) -> Iterator[list[tuple[float, Heading]]]:
    """Runs of headings without text between them; a smaller heading continues a run."""
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
    return DIGITS.sub("0", squeezed(line).casefold())


def _unnumbered(title: str) -> str:
    """The letters of a title without the number before them."""
    return LEADING_DIGITS.sub("", _letters(title), count=1)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
