"""Checks the citations of an answer against the passages that the model was given. Pure.

Every [n] must name a passage, and every quotation attributed to [n] must occur in it word for word. White
space, emphasis, the style of quotation marks and dashes, and a stop at the end of a quotation do not count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragchat.quotes import ELLIPSIS
from ragchat.types import Citation, Hit

# [1], [1, 2], [1-3], and the brackets of Chinese models; not [1](a link).
MARKER = re.compile(r"[\[【［](\d{1,3}(?:\s*[,;，、–-]\s*\d{1,3})*)[\]】］](?!\()")
_CODE = re.compile(r"^(?P<fence>```|~~~).*?^(?P=fence)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(
    r'"([^"\n]+)"|“([^“”\n]+)”|„([^„“”\n]+)[“”]|«([^«»\n]+)»|「([^「」\n]+)」|『([^『』\n]+)』'
)
_BLOCK_QUOTE = re.compile(r"(?:^[ \t]*>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_PARAGRAPH_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)")

_EQUIVALENT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "‑": "-"})
_EMPHASIS = re.compile(r"[*_`]+")
_STOPS = " \t\n.,;:!?。，；：！？"

# One or two quoted words are a name or a term, not a quotation.
TERM_WORDS = 2
TERM_CHARACTERS = 4  # for scripts without spaces


@dataclass(frozen=True)
class Checked:
    """The citations of an answer in the order of its markers; `unknown` numbers name no passage."""

    citations: list[Citation]
    unknown: list[int]


@dataclass(frozen=True)
class _Marker:
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
    """Find and check the citations of an answer. `passages` are the hits by their numbers."""
    text = _CODE.sub(lambda code: " " * len(code.group()), answer)
    quotations = _quotations(text)
    markers = [
        _Marker(found.start(), found.end(), marked_numbers(found.group(1)))
        for found in MARKER.finditer(text)
        if not any(quote.start < found.start() < quote.end for quote in quotations)
    ]
    mentioned = list(dict.fromkeys(number for marker in markers for number in marker.numbers))
    quotes: dict[int, list[tuple[str, bool]]] = {number: [] for number in mentioned if number in passages}
    for quotation in quotations:
        if attributed := _attributed(quotation, markers, text, passages):
            number, verified = attributed
            quotes[number].append((quotation.text, verified))
    citations = [
        Citation.of(number, passages[number], quote, verified)
        for number, found in quotes.items()
        for quote, verified in found or [("", True)]
    ]
    return Checked(citations, [number for number in mentioned if number not in passages])


def is_verbatim(quote: str, text: str) -> bool:
    """Whether a quotation occurs in a text; the parts around an ellipsis in their order."""
    position, text = 0, _normalized(text)
    for part in ELLIPSIS.split(quote):
        wanted = _normalized(part).strip(_STOPS)
        if not wanted:
            continue
        # A quotation from the middle of a sentence may begin with a capital letter, and the reverse.
        found = [text.find(first + wanted[1:], position) for first in {wanted[0].lower(), wanted[0].upper()}]
        position = min((start for start in found if start >= 0), default=-1)
        if position < 0:
            return False
        position += len(wanted)
    return True


def _normalized(text: str) -> str:
    return " ".join(_EMPHASIS.sub("", text.translate(_EQUIVALENT)).split())


def without_quotations(answer: str) -> str:
    """An answer with spaces in the place of its quotations and its blocks of code."""
    text = _CODE.sub(lambda code: " " * len(code.group()) if code["fence"] else code.group(), answer)
    for quotation in _quotations(text):
        blank = re.sub(r"[^\n]", " ", text[quotation.start : quotation.end])
        text = text[: quotation.start] + blank + text[quotation.end :]
    return text


def marked_numbers(text: str) -> tuple[int, ...]:
    """`1, 3-5` as (1, 3, 4, 5)."""
    numbers: list[int] = []
    for part in re.split(r"[,;，、]", text):
        first, *last = [int(number) for number in re.findall(r"\d+", part)]
        numbers += range(first, (last[0] if last else first) + 1)
    return tuple(numbers)


def _quotations(text: str) -> list[_Quotation]:
    """Block quotations, and outside of them texts in quotation marks that are longer than a term."""
    blocks = [_Quotation(*found.span(), found.group(), block=True) for found in _BLOCK_QUOTE.finditer(text)]
    quotations = []
    for block in blocks:
        lines = re.sub(r"^[ \t]*>[ \t]?", "", block.text, flags=re.MULTILINE)
        inner = MARKER.search(lines)
        # The marker at the end of a block, and what follows it, are not quoted.
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
    quotation: _Quotation, markers: Sequence[_Marker], text: str, passages: Mapping[int, Hit]
) -> tuple[int, bool] | None:
    """The number that a quotation is attributed to, and whether it is verbatim; None: to no passage.

    `"…" [1]` is the usual order, `[1] says "…"` the other. With markers on both sides, the quotation belongs
    to the passage that contains it: an honest answer must not fail for its word order.
    """
    near = [*_markers_after(quotation, markers, text), *_marker_before(quotation, markers, text)]
    numbers = [number for marker in near for number in marker.numbers if number in passages]
    if not numbers:
        return None
    for number in numbers:
        if is_verbatim(quotation.text, passages[number].full_text):
            return number, True
    return numbers[0], False


def _markers_after(quotation: _Quotation, markers: Sequence[_Marker], text: str) -> list[_Marker]:
    """The first run of markers after a quotation in its paragraph, for a block also in the next one."""
    ends = [found.end() for found in _PARAGRAPH_END.finditer(text, quotation.end)] + [len(text)] * 2
    end = ends[1] if quotation.block else ends[0]
    run: list[_Marker] = []
    for marker in markers:
        if marker.start < quotation.end or marker.start >= end:
            continue
        if run and text[run[-1].end : marker.start].strip(" ,"):
            break
        run.append(marker)
    return run


def _marker_before(quotation: _Quotation, markers: Sequence[_Marker], text: str) -> list[_Marker]:
    """The last marker before a quotation, in its paragraph."""
    before = [marker for marker in markers if marker.end <= quotation.start]
    if not before or _PARAGRAPH_END.search(text, before[-1].end, quotation.start):
        return []
    return before[-1:]
