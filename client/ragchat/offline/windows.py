"""Windows of passages: neighbouring units that are judged, and quoted, together. Pure.

The sentence that answers often stands beside the one that has the words of the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from ragchat.offline import mail
from ragchat.offline.evidence import Question, share
from ragchat.offline.layout import is_code_file
from ragchat.offline.structure import Kind, Unit, is_question, units
from ragchat.offline.words import index_terms, word_count
from ragchat.types import Hit

MAX_WORDS = 60
MAX_UNITS = 6
MAX_CODE_LINES = 3
# Words of a quotation, if its block has as many; half of that of a further one.
USUAL_WORDS = 40
MAX_QUOTATIONS = 3
# A further quotation must be this good beside the best; a further row or item of one block, nearly as good.
WORTH = 0.75
WORTH_BESIDE = 0.95
# As must a further one be where those before it hold all that is asked for.
WORTH_COMPLETE = 0.95
# More words of a window that is compared by its meaning say too many things.
NEAREST_WORDS = 80
MAX_NEAREST = 5
# A further one of the nearest must be this similar beside the most similar.
WORTH_NEAREST = 0.5
# Two windows that share this part of their terms say the same, as in two versions of a document.
SAME = 0.8

# What makes a window good, beside the share of the question's words that it holds (1).
W_CONTEXT = 0.7  # of words that only its context holds
W_HEADING = 0.5  # of words that only the title or the headings of its passage hold
# In a follow-up ("and the garage?") the new word often only names a document or a section.
W_NAMED = 1.0
W_CARRIED = 0.6
W_PASSAGE = 0.3
W_EXPECTED = 0.2
# A window with fewer terms beyond those of the question, and no number, is a title, or asks the same.
NEW_TERMS = 2
W_EMPTY = -0.5
# Code within prose is often an example.
W_EXAMPLE = -0.15
# For each word: of two windows that hold as much, the shorter one is better.
W_LENGTH = -0.002

# Units that can be understood without their neighbours.
_ALONE = (Kind.ROW, Kind.RECORD)
_STRUCTURED = (*_ALONE, Kind.CODE)
_APART = (Kind.ROW, Kind.RECORD, Kind.ITEM)


@dataclass(frozen=True)
class Window:
    """The units from `first` to `last` (inclusive) of all `units` of the passage `hit`."""

    hit: Hit
    units: Sequence[Unit]
    first: int
    last: int
    score: float = 0.0

    @property
    def own(self) -> Sequence[Unit]:
        """The units of the window."""
        return self.units[self.first : self.last + 1]

    @property
    def text(self) -> str:
        """As it stands in the passage."""
        return self.hit.text[self.units[self.first].start : self.units[self.last].end]

    @property
    def reading(self) -> str:
        """The text as a person reads it."""
        return "\n".join(unit.reading for unit in self.own) if self.kind is Kind.RECORD else self.text

    @property
    def lines(self) -> tuple[int, int]:
        """Its first and its last line in the document."""
        before = self.hit.start_line + self.hit.text.count("\n", 0, self.units[self.first].start)
        return before, before + self.text.count("\n")

    @property
    def kind(self) -> Kind:
        return self.units[self.first].kind

    @property
    def is_bare(self) -> bool:
        """Whether its values may have no unit, since a header or a key names it."""
        return self.kind in (Kind.ROW, Kind.RECORD, Kind.CODE)

    @property
    def block(self) -> int:
        return self.units[self.first].block

    @property
    def named_text(self) -> str:
        """The text after all that names it: title, headings, and the context of its units."""
        context = " ".join(dict.fromkeys(unit.context for unit in self.own if unit.context))
        return f"{names_of(self.hit)} {context}. {self.reading}"

    @property
    def terms(self) -> frozenset[str]:
        """Those of the text and of all that names it."""
        return _terms(self.named_text)

    def overlaps(self, other: Window) -> bool:
        same = self.hit.chunk_id == other.hit.chunk_id
        return same and self.first <= other.last and other.first <= self.last


def best_windows(question: Question, hits: Sequence[Hit]) -> list[Window]:
    """The windows to quote: the best passage first, and in each passage in the order of the text."""
    best_hit = max((hit.score for hit in hits), default=1.0) or 1.0
    scored = (window for hit in hits for window in _scored(question, hit, hit.score / best_hit))
    ranked = sorted(scored, key=lambda window: -window.score)
    chosen: list[Window] = []
    for window in ranked:
        if len(chosen) == MAX_QUOTATIONS or window.score < WORTH * ranked[0].score:
            break
        if any(_is_needless(window, other, ranked[0].score) for other in chosen):
            continue
        if chosen and window.score < _least_worth(question, window, chosen) * ranked[0].score:
            continue
        extended = _extended(window, USUAL_WORDS // 2 if chosen else USUAL_WORDS)
        if not any(extended.overlaps(other) for other in chosen):
            chosen.append(extended)
    passages = list(dict.fromkeys(window.hit.chunk_id for window in chosen))
    return sorted(chosen, key=lambda window: (passages.index(window.hit.chunk_id), window.first))


def windows_to_compare(hits: Sequence[Hit]) -> list[Window]:
    """The longest window from each unit on, also across blocks, without labels at its ends.

    Windows within others are left out.
    """
    found: list[Window] = []
    for hit in hits:
        every, end = _units(hit), -1
        telling = [place for place, unit in enumerate(every) if not _only_names(unit)]
        for first in telling:
            within = _longest(every, first)
            last = max(place for place in telling if place in within)
            if last > end:
                found.append(Window(hit, every, first, last))
                end = last
    return found


def nearest_windows(windows: Sequence[Window], similarities: Sequence[float]) -> list[Window]:
    """The windows with the highest similarities that do not overlap, at most MAX_NEAREST."""
    ranked = sorted(zip(windows, similarities, strict=True), key=lambda pair: -pair[1])
    chosen: list[Window] = []
    for window, similarity in ranked:
        if len(chosen) == MAX_NEAREST or similarity < WORTH_NEAREST * ranked[0][1]:
            break
        if not any(window.overlaps(other) for other in chosen):
            chosen.append(replace(window, score=similarity))
    return chosen


def passage_terms(hit: Hit) -> frozenset[str]:
    """Those of a whole passage, of all that names it, and of the turns around it."""
    return _terms(f"{names_of(hit)} {hit.full_text} {hit.surroundings}")


def _units(hit: Hit) -> list[Unit]:
    """The units of a passage, in places of its text; rows of a table that it continues have its header."""
    context = len(hit.context)
    found = units(hit.full_text, hit.format_uri, has_header=hit.start_line == 1 or context > 0)
    return [replace(unit, start=unit.start - context) for unit in found if unit.start >= context]


def names_of(hit: Hit) -> str:
    """The title and the headings of a passage, and the name of its file."""
    file = re.sub(r"[\W_]+", " ", PurePosixPath(unquote(urlsplit(hit.uri).path)).stem)
    return f"{hit.title} {hit.heading} {file}"


def _terms(text: str) -> frozenset[str]:
    return frozenset(index_terms(text))


def _scored(question: Question, hit: Hit, standing: float) -> Iterator[Window]:
    """All windows of a passage; `standing` is its own score, in [0, 1], beside that of the best one."""
    every = _units(hit)
    asks_for_header = mail.asks_for_header(question.terms)
    own = [
        _terms("" if _only_names(unit, asks_for_header=asks_for_header) else unit.reading) for unit in every
    ]
    around = [_terms(_named_by(unit)) for unit in every]
    heading, words = _terms(names_of(hit)), question.judged
    for first, last in _runs(every):
        run = slice(first, last + 1)
        terms = frozenset[str]().union(*own[run])
        context = frozenset[str]().union(*around[run])
        if not terms:
            continue
        window = Window(hit, every, first, last)
        score = (
            share(words, terms)
            + W_CONTEXT * share(words, context - terms)
            + (W_NAMED if question.carried else W_HEADING) * share(words, heading - context - terms)
            + W_CARRIED * share(question.carried, terms | context | heading)
            + W_PASSAGE * standing
            + W_EXPECTED * (question.type is not None and _has_value(question, window))
            + W_EMPTY * (not _says_something(terms - question.terms))
            + W_EXAMPLE * (window.kind is Kind.CODE and not is_code_file(hit.format_uri))
            + W_LENGTH * word_count(window.text)
        )
        yield replace(window, score=score)


def _named_by(unit: Unit) -> str:
    """What names a unit and its neighbours. A question in code is an example, which nothing answers."""
    return unit.context if unit.kind is Kind.CODE else f"{unit.context} {unit.reading}"


def _only_names(unit: Unit, *, asks_for_header: bool = False) -> bool:
    """Whether a unit says what others are about, but nothing itself: a label, or a question."""
    if unit.kind is Kind.FIELD:
        return not asks_for_header
    return unit.is_label or is_question(unit.text)


def _says_something(new: frozenset[str]) -> bool:
    """Whether the `new` terms of a window, beyond those of the question, can be an answer."""
    return len(new) >= NEW_TERMS or any(sign.isdigit() for term in new for sign in term)


def _runs(every: Sequence[Unit]) -> Iterator[tuple[int, int]]:
    """Neighbouring units of one block that are short enough together; each unit, and each row, by itself."""
    for first, unit in enumerate(every):
        words = 0
        most = MAX_CODE_LINES if unit.kind is Kind.CODE else MAX_UNITS
        for last in range(first, min(first + most, len(every))):
            words += word_count(every[last].text)
            is_apart = every[last].block != unit.block or unit.kind in _ALONE or not _fits(every[last], unit)
            if last > first and (is_apart or words > MAX_WORDS or _begins_another(every[last])):
                break
            yield first, last


def _longest(every: Sequence[Unit], first: int) -> range:
    """The places of the units from `first` on, as many as can be shown together."""
    words = 0
    for place in range(first, min(first + MAX_UNITS, len(every))):
        words += word_count(every[place].text)
        if place > first and (words > NEAREST_WORDS or not _fits(every[place], every[first])):
            return range(first, place)
    return range(first, min(first + MAX_UNITS, len(every)))


def _fits(unit: Unit, first: Unit) -> bool:
    """Whether units can be shown together: prose, rows of one table, code within one parent."""
    if unit.kind not in _STRUCTURED and first.kind not in _STRUCTURED:
        return True
    return unit.kind is first.kind and unit.block == first.block and unit.indent >= first.indent


def _extended(window: Window, usual: int) -> Window:
    """With its neighbours in the block, up to `usual` words: what is needed to understand it."""
    if window.kind in _APART:
        return window
    after = _grown(window, usual, 1)
    return after if window.kind is Kind.CODE else _grown(after, usual, -1)


def _grown(window: Window, usual: int, step: int) -> Window:
    """With the units behind it (`step` 1) or before it (-1). A question takes its answer in."""
    every, first, last = window.units, window.first, window.last
    words = word_count(window.text)
    place = last + 1 if step > 0 else first - 1
    while 0 <= place < len(every) and _belongs(every[place], every[first]):
        asks = every[last].kind is Kind.LINE and is_question(every[last].text)
        words_then = words + word_count(every[place].text)
        if words_then > MAX_WORDS or not (words < usual or asks):
            break
        words, first, last = words_then, min(first, place), max(last, place)
        place += step
    return replace(window, first=first, last=last)


def _belongs(unit: Unit, first: Unit) -> bool:
    """Whether a unit helps to understand the first of a window; in code, only its body does."""
    is_body = unit.kind is not Kind.CODE or unit.indent > first.indent
    return unit.block == first.block and is_body and not _begins_another(unit)


def _begins_another(unit: Unit) -> bool:
    """Whether a unit is the question that the units behind it answer; it leads their quotation."""
    return unit.is_label and is_question(unit.text)


def _is_needless(window: Window, chosen: Window, best: float) -> bool:
    """Whether a window adds nothing to one that is quoted already."""
    beside = window.hit is chosen.hit and window.block == chosen.block and window.kind in _APART
    return window.overlaps(chosen) or _same(window, chosen) or (beside and window.score < WORTH_BESIDE * best)


def _least_worth(question: Question, window: Window, chosen: Sequence[Window]) -> float:
    """How good a further window must be beside the best one to be quoted as well."""
    has_value = any(_has_value(question, other) for other in chosen)
    is_certain = question.type is not None and question.type.is_certain
    if is_certain and has_value and not _has_value(question, window):
        return WORTH_COMPLETE
    terms = frozenset[str]().union(*(other.terms for other in chosen))
    is_complete = has_value and all(word.is_in(terms) for word in question.judged if not word.is_general)
    return WORTH_COMPLETE if is_complete else WORTH


def _has_value(question: Question, window: Window) -> bool:
    return question.is_expected(window.text, is_bare=window.is_bare)


def _same(one: Window, other: Window) -> bool:
    mine, theirs = _terms(one.text), _terms(other.text)
    return len(mine & theirs) > SAME * max(1, min(len(mine), len(theirs)))
