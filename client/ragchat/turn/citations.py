"""Citations of an answer, checked against the passages it was given. Pure.

Every [n] must name a passage, and every quotation that is attributed to [n] must stand in it word for word.
Aside stay white space, emphasis, the style of quotation marks and dashes, and the stop that ends a quotation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragchat.types import Citation, Hit

# [1], [1, 2], [1-3], and the brackets of Chinese models; not [1](a link).
MARK = re.compile(r"[\[【［](\d{1,3}(?:\s*[,;，、–-]\s*\d{1,3})*)[\]】］](?!\()")
_CODE = re.compile(r"^(?P<fence>```|~~~).*?^(?P=fence)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(
    r'"([^"\n]+)"|“([^“”\n]+)”|„([^„“”\n]+)[“”]|«([^«»\n]+)»|「([^「」\n]+)」|『([^『』\n]+)』'
)
_BLOCK_QUOTE = re.compile(r"(?:^[ \t]*>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_PARAGRAPH_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)")
_ELLIPSIS = re.compile(r"\s*[\[(]?(?:…|\.\.\.)[\])]?\s*")

_SAME = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "‑": "-"})
_EMPHASIS = re.compile(r"[*_`]+")
_STOPS = " \t\n.,;:!?。，；：！？"

# One or two quoted words are a name or a term; their wording proves nothing.
TERM_WORDS = 2
TERM_CHARACTERS = 4  # for scripts without spaces


@dataclass(frozen=True)
class Checked:
    """What an answer cites, in the order of its marks, and the numbers that name no passage."""

    citations: list[Citation]
    unknown: list[int]


@dataclass(frozen=True)
class _Mark:
    start: int
    end: int
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class _Quotation:
    start: int
    end: int
    text: str
    block: bool = False


def check(answer: str, passages: Mapping[int, Hit]) -> Checked:
    """The citations of an answer. A quotation that stands in no passage it is attributed to is unverified."""
    text = _CODE.sub(lambda code: " " * len(code.group()), answer)
    quotations = _quotations(text)
    marks = [
        _Mark(found.start(), found.end(), _numbers(found.group(1)))
        for found in MARK.finditer(text)
        if not any(quote.start < found.start() < quote.end for quote in quotations)
    ]
    mentioned = list(dict.fromkeys(number for mark in marks for number in mark.numbers))
    quotes: dict[int, list[tuple[str, bool]]] = {number: [] for number in mentioned if number in passages}
    for quotation in quotations:
        if attributed := _attributed(quotation, marks, text, passages):
            number, verified = attributed
            quotes[number].append((quotation.text, verified))
    citations = [
        Citation.of(number, passages[number], quote, verified)
        for number, found in quotes.items()
        for quote, verified in found or [("", True)]
    ]
    return Checked(citations, [number for number in mentioned if number not in passages])


def stands_in(quote: str, text: str) -> bool:
    """Whether a quotation stands in a text; the parts around an ellipsis one after the other."""
    place, text = 0, _normal(text)
    for part in _ELLIPSIS.split(quote):
        wanted = _normal(part).strip(_STOPS)
        if not wanted:
            continue
        # A quotation may begin a sentence with what is the middle of another.
        found = [text.find(first + wanted[1:], place) for first in {wanted[0].lower(), wanted[0].upper()}]
        place = min((start for start in found if start >= 0), default=-1)
        if place < 0:
            return False
        place += len(wanted)
    return True


def _normal(text: str) -> str:
    return " ".join(_EMPHASIS.sub("", text.translate(_SAME)).split())


def _numbers(text: str) -> tuple[int, ...]:
    """`1, 3-5` as (1, 3, 4, 5)."""
    numbers: list[int] = []
    for part in re.split(r"[,;，、]", text):
        first, *last = [int(number) for number in re.findall(r"\d+", part)]
        numbers += range(first, (last[0] if last else first) + 1)
    return tuple(numbers)


def _quotations(text: str) -> list[_Quotation]:
    """Block quotations, and quotation marks outside of them around more than a term."""
    blocks = [_Quotation(*found.span(), found.group(), block=True) for found in _BLOCK_QUOTE.finditer(text)]
    quotations = []
    for block in blocks:
        lines = re.sub(r"^[ \t]*>[ \t]?", "", block.text, flags=re.MULTILINE)
        inner = MARK.search(lines)
        # Its own mark stands at its end: what follows the mark, and the mark, are not quoted.
        words = lines[: inner.start()] if inner else lines
        end = block.end if inner is None else block.start + block.text.index(inner.group())
        quotations.append(_Quotation(block.start, end, words.strip(' "“”—–-\n'), block=True))
    for found in _QUOTED.finditer(text):
        if not any(block.start <= found.start() < block.end for block in blocks):
            words = next(group for group in found.groups() if group is not None)
            quotations.append(_Quotation(*found.span(), words.strip()))
    return sorted((quote for quote in quotations if not _is_term(quote.text)), key=lambda quote: quote.start)


def _is_term(text: str) -> bool:
    if text.isascii() or " " in text:
        return len(text.split()) <= TERM_WORDS
    return len(text) <= TERM_CHARACTERS


def _attributed(
    quotation: _Quotation, marks: Sequence[_Mark], text: str, passages: Mapping[int, Hit]
) -> tuple[int, bool] | None:
    """The number a quotation is attributed to, and whether it stands there; None: to nothing.

    `"…" [1]` is the usual order, `[1] says "…"` the other. Where a mark stands on both sides, the quotation
    belongs to the one that has it: an honest answer must not be called wrong for its word order.
    """
    ahead, behind = _next_marks(quotation, marks, text), _last_mark(quotation, marks, text)
    numbers = [number for mark in (*ahead, *behind) for number in mark.numbers if number in passages]
    if not numbers:
        return None
    for number in numbers:
        if stands_in(quotation.text, passages[number].text):
            return number, True
    return numbers[0], False


def _next_marks(quotation: _Quotation, marks: Sequence[_Mark], text: str) -> list[_Mark]:
    """The first run of marks after the quotation, in its paragraph; a block may have it in the next one."""
    ends = [found.end() for found in _PARAGRAPH_END.finditer(text, quotation.end)] + [len(text)] * 2
    end = ends[1] if quotation.block else ends[0]
    run: list[_Mark] = []
    for mark in marks:
        if mark.start < quotation.end or mark.start >= end:
            continue
        if run and text[run[-1].end : mark.start].strip(" ,"):
            break
        run.append(mark)
    return run


def _last_mark(quotation: _Quotation, marks: Sequence[_Mark], text: str) -> list[_Mark]:
    """The last mark before the quotation, in its paragraph."""
    before = [mark for mark in marks if mark.end <= quotation.start]
    if not before or _PARAGRAPH_END.search(text, before[-1].end, quotation.start):
        return []
    return before[-1:]
