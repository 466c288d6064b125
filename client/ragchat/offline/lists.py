"""Whole lists and tables, for questions that ask for all of something, or how many there are. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from msgspec.structs import replace

from ragchat.formatting import counted
from ragchat.offline.answer_types import answer_type
from ragchat.offline.evidence import Question, Word, share
from ragchat.offline.layout import ITEM_MARK, STAMP
from ragchat.offline.requests import ListRequest
from ragchat.offline.structure import Kind, Unit, units
from ragchat.offline.windows import Window, names_of
from ragchat.offline.words import index_terms, words
from ragchat.types import Hit

MOST_ITEMS = 30
MOST_CHARACTERS = 4_000
# The share of the question's words that must name a list: its title, headings, introduction, columns.
NAMED = 0.8
# "7 large rooms", "rooms in the house: 7": so many words away is a number a count.
NEAR_WORDS = 4
_KINDS = (Kind.ITEM, Kind.ROW, Kind.LINE)
_NUMBER = re.compile(r"(?![12]\d{3}$)\d[\d.,]*|[^\W\d]+")  # not a year
_NO_COUNTS = frozenset(["one", "once", "twice", "half", "third", "quarter", "einmal", "zweimal", "hälfte"])
_SUMS = frozenset(["total", "totals", "sum", "subtotal", "summe", "gesamt", "insgesamt"])


@dataclass(frozen=True)
class FoundList:
    """A list or table of which the passage `hit` has a part; the document has it at `line`."""

    hit: Hit
    line: int
    is_certain: bool  # all words of the question name the list itself, none a column alone

    def whole(self, document: str) -> WholeList | None:
        """All of it; None if the text has no list at that line."""
        every = units(document, self.hit.format_uri)
        for _, block in _blocks(every):
            first, last = _line(document, block[0].start), _line(document, block[-1].end)
            if first <= self.line <= last:
                return WholeList(self.hit, document, block)
        return None


@dataclass(frozen=True)
class FoundRows:
    """The rows of a table, or records of a CSV file, that hold some words; `hit` has a part of them.

    The table and its rows hold the `share` of the words of the question.
    """

    hit: Hit
    words: Sequence[Word]
    share: float

    def windows(self, document: str) -> Sequence[Window]:
        """Each of these rows in the whole document."""
        passage = replace(
            self.hit, text=document, context="", start_line=1, end_line=_line(document, len(document))
        )
        every = units(document, self.hit.format_uri)
        return [
            Window(passage, every, place, place)
            for place, unit in enumerate(every)
            if unit.kind in (Kind.ROW, Kind.RECORD)
            and all(word.is_in(_terms(unit.reading)) for word in self.words)
        ]


@dataclass(frozen=True)
class WholeList:
    """The items or rows of one list of a `document`."""

    hit: Hit
    document: str
    items: Sequence[Unit]

    @property
    def start(self) -> int:
        """Of the line that introduces the list, or of the table's header."""
        first = self.items[0]
        introduces = first.kind is Kind.ROW or first.lead.endswith((":", "?"))
        lead = self.document.rfind(first.lead, 0, first.start) if first.lead and introduces else -1
        return first.start if lead < 0 else lead

    @property
    def passage(self) -> Hit:
        """The whole list as a passage."""
        text = self.document[self.start : self.items[-1].end]
        line = _line(self.document, self.start)
        return replace(self.hit, text=text, context="", start_line=line, end_line=line + text.count("\n"))

    @property
    def shown(self) -> Sequence[Unit]:
        """The first items, as many as an answer quotes."""
        fitting = [item for item in self.items[:MOST_ITEMS] if item.end - self.start <= MOST_CHARACTERS]
        return fitting or self.items[:1]

    @property
    def quote(self) -> str:
        return self.document[self.start : self.shown[-1].end]

    @property
    def count(self) -> int | None:
        """How many items it has; None if that is not certain, as in nested lists and in tables with sums."""
        if self.items[0].kind is Kind.LINE:
            return None
        if self.items[0].kind is Kind.ROW:
            firsts = [item.text.strip("| ").split("|")[0].strip(" *_").casefold() for item in self.items]
            return None if any(not first or first in _SUMS for first in firsts) else len(self.items)
        marks = {self._mark(item) for item in self.items}
        return len(self.items) if len(marks) == 1 else None

    def _mark(self, item: Unit) -> str:
        """The indentation and the kind of mark of an item."""
        begins = self.document.rfind("\n", 0, item.start) + 1
        mark = ITEM_MARK.match(item.text)
        sign = mark.group().strip() if mark else ""
        return self.document[begins : item.start] + ("1" if sign[:1].isalnum() else sign)

    def markdown(self, n: int) -> str:
        """The quotation with its citation, line by line."""
        if self.items[0].kind is not Kind.ROW:
            # Two spaces: a line break in Markdown, which items do not need.
            line_end = "\n" if self.items[0].kind is Kind.ITEM else "  \n"
            return line_end.join(f"> {line}".rstrip() for line in self.quote.splitlines()) + f" [{n}]"
        if self.items[0].lead:
            return f"{self.quote}\n\n[{n}]"
        columns = max(1, self.items[0].text.count("|") - 1)
        return f"|{' |' * columns}\n|{' --- |' * columns}\n{self.quote}\n\n[{n}]"

    def notes(self, *, counts: bool) -> str:
        """What the quotation does not say: where the rest is, and the number of items if one is asked for."""
        name, what = ("table", "row") if self.items[0].kind is Kind.ROW else ("list", "item")
        sentences = []
        if rest := self.items[len(self.shown) :]:
            first, last = _line(self.document, rest[0].start), _line(self.document, rest[-1].end)
            shown = f"{len(self.shown)} of {counted(len(self.items), what)} shown"
            sentences.append(f"{shown}; the others are in lines {first}–{last}.")
        if counts and self.count:
            sentences.append(f"The {name} has {counted(self.count, what)}.")
        return " ".join(sentences)


def find_list(request: ListRequest, subject: Question, hits: Sequence[Hit]) -> FoundList | None:
    """The list that the words of a question name. `subject` are those words, without what asks for a list."""
    if not any(not word.is_general for word in subject.words):
        return None
    head = frozenset(index_terms(request.head)[-1:])
    best: tuple[float, float, FoundList] | None = None
    for hit in hits:
        every = units(hit.full_text, hit.format_uri)
        for _, block in _blocks(every):
            first = block[0]
            columns = first.lead if first.kind is Kind.ROW else ""
            near = _terms(f"{first.context.replace(columns, '')} {_first_cell(columns)} {_last_heading(hit)}")
            named = near | _terms(names_of(hit))
            all_named = named | _terms(columns)
            held = share(subject.words, all_named)
            if held < NAMED or subject.lacks_exact(all_named) or not (near & (head or subject.terms)):
                continue
            line = hit.start_line + hit.full_text.count("\n", 0, first.start) - hit.context.count("\n")
            found = FoundList(hit, line, is_certain=share(subject.words, named) >= NAMED)
            rank = (held + share(subject.words, near), hit.score)
            if best is None or rank > best[:2]:
                best = (*rank, found)
    return best[2] if best else None


def find_rows(subject: Question, hits: Sequence[Hit]) -> FoundRows | None:
    """The rows or records that hold the words of a question which do not name their table."""
    best: FoundRows | None = None
    for hit in hits:
        rows = [unit for unit in units(hit.full_text, hit.format_uri) if unit.kind in (Kind.ROW, Kind.RECORD)]
        named = _terms(f"{names_of(hit)} {rows[0].context}") if rows else frozenset()
        said = frozenset[str]().union(*(_terms(row.reading) for row in rows))
        words = [word for word in subject.words if word.is_in(said) and not word.is_in(named)]
        if words and (best is None or len(words) > len(best.words)):
            best = FoundRows(hit, words, share(subject.words, named | said))
    return best


def says_it_directly(request: ListRequest, subject: Question, windows: Sequence[Window]) -> bool:
    """Whether one of the sentences tells the number that is asked for, or lists what is asked for itself."""
    return any(
        share(subject.words, window.terms) >= NAMED
        and (_tells_number(window.text, request.head) if request.counts else _enumerates(window))
        for window in windows
        if window.kind not in (Kind.ROW, Kind.ITEM)
    )


def _tells_number(text: str, head: str) -> bool:
    """Whether a number stands near the word for what is counted."""
    wanted = frozenset(index_terms(head)[-1:])
    said = words(text)
    heads = [place for place, word in enumerate(said) if wanted & _terms(word)]
    numbers = [place for place, word in enumerate(said) if _is_count(word)]
    return any(abs(place - other) <= NEAR_WORDS for place in heads for other in numbers)


def _is_count(word: str) -> bool:
    number = answer_type("how many")
    assert number is not None
    return bool(_NUMBER.fullmatch(word) and number.has.search(word)) and word not in _NO_COUNTS


def _enumerates(window: Window) -> bool:
    """Whether a sentence is itself a list."""
    return window.kind is Kind.SENTENCE and window.text.count(",") >= 2


def _blocks(every: Sequence[Unit]) -> Iterator[tuple[int, Sequence[Unit]]]:
    """The lists and tables among the units of a text."""
    for number, group in groupby(every, key=lambda unit: unit.block):
        block = list(group)
        is_list = all(unit.kind is block[0].kind for unit in block) and block[0].kind in _KINDS
        if is_list and len(block) > 1 and not STAMP.match(block[0].text):
            yield number, block


def _first_cell(header: str) -> str:
    return header.strip("| ").split("|")[0]


def _last_heading(hit: Hit) -> str:
    return (hit.heading or hit.title).split(" > ")[-1]


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _terms(text: str) -> frozenset[str]:
    return frozenset(index_terms(text))
