"""Checks the citations of an answer against the passages that the model was given. Pure.

Every [n] must name a passage, and every quotation attributed to [n] must occur in it verbatim, ignoring white
space, emphasis, the style of quotation marks and dashes, and trailing punctuation.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple

from ragchat.grounding.pieces import blanked
from ragchat.grounding.quotes import ELLIPSIS
from ragchat.grounding.types import Citation
from ragcommon.contract.search import Hit

# [1], [1, 2], [1-3], [^1], the brackets of Chinese models, and 【1†L3】 of OpenAI's; not [1](a link).
MARKER = re.compile(r"[\[【［]\^?(\d{1,3}(?:\s*[,;，、–-]\s*\d{1,3})*)(?:†[^\[\]【】［］\n]*)?[\]】］](?!\()")
_CODE = re.compile(r"^(?P<fence>```|~~~).*?^(?P=fence)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(
    r'"([^"\n]+)"|“([^“”\n]+)”|„([^„“”\n]+)[“”]|«([^«»\n]+)»|「([^「」\n]+)」|『([^『』\n]+)』'
)
_BLOCK_QUOTE = re.compile(r"(?:^[ \t]*>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_PARAGRAPH_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)")

_EQUIVALENT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "‑": "-"})
_EMPHASIS = re.compile(r"[*_`]+")
_STOPS = " \t\n.,;:!?。，；：！？"

# One or two quoted words are a term rather than a quotation.
TERM_WORDS = 2
TERM_CHARACTERS = 4  # for scripts without spaces


class Checked(NamedTuple):
    """The citations of an answer in the order of its markers; `unknown` numbers name no passage."""

    citations: list[Citation]
    unknown: list[int]


class Marker(NamedTuple):
    """Where a citation is in an answer, and the numbers that it names."""

    start: int
    end: int
    numbers: tuple[int, ...]


class _Quotation(NamedTuple):
    start: int
    end: int
    text: str
    block: bool = False


def check(answer: str, passages: Mapping[int, Hit]) -> Checked:
    """Find and check the citations of an answer. `passages` are the hits by their numbers."""
    text = _without_code(answer)
    quotations = _quotations(text)
    markers = _markers(text, quotations)
    paragraphs = _Paragraphs(text, markers)
    mentioned = list(dict.fromkeys(number for marker in markers for number in marker.numbers))
    quotes: dict[int, list[tuple[str, bool]]] = {number: [] for number in mentioned if number in passages}
    # Normalized once: an answer may have thousands of quotations.
    texts = {number: _normalized(passages[number].full_text) for number in quotes}
    for quotation in quotations:
        if attributed := _attributed(quotation, paragraphs, texts):
            number, verified = attributed
            quotes[number].append((quotation.text, verified))
    citations = [
        Citation.of(number, passages[number], quote, verified)
        for number, found in quotes.items()
        for quote, verified in found or [("", True)]
    ]
    return Checked(citations, [number for number in mentioned if number not in passages])


def markers_in(answer: str) -> list[Marker]:
    """The markers of an answer outside of its code and quotations."""
    text = _without_code(answer)
    return _markers(text, _quotations(text))


def _without_code(answer: str) -> str:
    """The answer with its code blanked out; offsets stay the same."""
    return _CODE.sub(lambda code: " " * len(code.group()), answer)


def _markers(text: str, quotations: Sequence[_Quotation]) -> list[Marker]:
    return [
        Marker(found.start(), found.end(), marked_numbers(found.group(1)))
        for found in MARKER.finditer(text)
        if not _is_within(found.start(), quotations)
    ]


def is_verbatim(quote: str, text: str) -> bool:
    """Whether a text contains a quotation; the parts around an ellipsis must occur in order."""
    return _occur(_parts(quote), _normalized(text))


def _parts(quote: str) -> list[str]:
    """The parts of a quotation between its ellipses, normalized."""
    return [part for one in ELLIPSIS.split(quote) if (part := _normalized(one).strip(_STOPS))]


def _occur(parts: Sequence[str], text: str) -> bool:
    """Whether the parts of a quotation occur in a normalized text in order."""
    position = 0
    for part in parts:
        # A quotation from the middle of a sentence may begin with a capital letter, and the reverse.
        found = [text.find(first + part[1:], position) for first in {part[0].lower(), part[0].upper()}]
        position = min((start for start in found if start >= 0), default=-1)
        if position < 0:
            return False
        position += len(part)
    return True


def _normalized(text: str) -> str:
    return " ".join(_EMPHASIS.sub("", unicodedata.normalize("NFC", text).translate(_EQUIVALENT)).split())


def without_quotations(answer: str) -> str:
    """The answer with its quotations and code blocks blanked out; offsets stay the same."""
    text = _CODE.sub(lambda code: " " * len(code.group()) if code["fence"] else code.group(), answer)
    return blanked(text, ((quotation.start, quotation.end) for quotation in _quotations(text)))


def marked_numbers(text: str) -> tuple[int, ...]:
    """`1, 3-5` as (1, 3, 4, 5)."""
    numbers: list[int] = []
    for part in re.split(r"[,;，、]", text):
        first, *last = [int(number) for number in re.findall(r"\d+", part)]
        numbers += range(first, (last[0] if last else first) + 1)
    return tuple(numbers)


def _quotations(text: str) -> list[_Quotation]:
    """Block quotations, and elsewhere texts in quotation marks that are longer than a term."""
    blocks = [_Quotation(*found.span(), found.group(), block=True) for found in _BLOCK_QUOTE.finditer(text)]
    quotations = []
    for block in blocks:
        lines = re.sub(r"^[ \t]*>[ \t]?", "", block.text, flags=re.MULTILINE)
        inner = MARKER.search(lines)
        # The quotation ends at the first marker.
        words = lines[: inner.start()] if inner else lines
        end = block.end if inner is None else block.start + block.text.index(inner.group())
        quotations.append(_Quotation(block.start, end, words.strip(' "“”—–-\n'), block=True))
    for found in _QUOTED.finditer(text):
        if not _is_within(found.start() + 1, blocks):
            words = next(group for group in found.groups() if group is not None)
            quotations.append(_Quotation(*found.span(), words.strip()))
    return sorted((quote for quote in quotations if not _is_term(quote.text)), key=lambda quote: quote.start)


def _is_term(text: str) -> bool:
    has_spaces = text.isascii() or " " in text
    return len(text.split()) <= TERM_WORDS if has_spaces else len(text) <= TERM_CHARACTERS


def _is_within(position: int, quotations: Sequence[_Quotation]) -> bool:
    """Whether a position is inside one of these quotations, which are sorted by start."""
    index = bisect_left(quotations, position, key=attrgetter("start")) - 1
    return index >= 0 and position < quotations[index].end


def _attributed(
    quotation: _Quotation, paragraphs: _Paragraphs, texts: Mapping[int, str]
) -> tuple[int, bool] | None:
    """The passage number that a quotation is attributed to, and whether it is verbatim; None: no passage.

    Both `"…" [1]` and `[1] says "…"` occur. With markers on both sides, the quotation is attributed to the
    passage that contains it, so that word order alone never makes it wrong. Before a marker that names no
    passage, a wrong one is attributed to none.
    """
    after = [number for marker in paragraphs.markers_after(quotation) for number in marker.numbers]
    before = [number for marker in paragraphs.marker_before(quotation) for number in marker.numbers]
    numbers = [number for number in (*after, *before) if number in texts]
    parts = _parts(quotation.text)
    for number in numbers:
        if _occur(parts, texts[number]):
            return number, True
    is_of_none = not numbers or (after and numbers[0] not in after)
    return None if is_of_none else (numbers[0], False)


class _Paragraphs:
    """The markers of a text by paragraph."""

    def __init__(self, text: str, markers: list[Marker]) -> None:
        self._text = text
        self._markers = markers
        size = len(text) + 1
        self._ends = [*(found.span() for found in _PARAGRAPH_END.finditer(text)), (size, size), (size, size)]

    def markers_after(self, quotation: _Quotation) -> list[Marker]:
        """The first run of markers after a quotation in its paragraph, for a block also in the next one."""
        place = bisect_right(self._ends, quotation.end, key=itemgetter(1))
        end, _ = self._ends[place + quotation.block]
        run: list[Marker] = []
        for index in range(self._index(quotation.end), len(self._markers)):
            marker = self._markers[index]
            if marker.start >= end or (run and self._text[run[-1].end : marker.start].strip(" ,")):
                break
            run.append(marker)
        return run

    def marker_before(self, quotation: _Quotation) -> list[Marker]:
        """The last marker before a quotation, in its paragraph."""
        before = self._markers[: self._index(quotation.start)][-1:]
        place = bisect_left(self._ends, before[0].end, key=itemgetter(0)) if before else 0
        return before if self._ends[place][0] > quotation.start else []

    def _index(self, position: int) -> int:
        """The index of the first marker at or after a position."""
        return bisect_left(self._markers, position, key=attrgetter("start"))
