"""A passage in pieces: its lines, and the sentences of paragraphs, in one line or wrapped. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from ragcommon.text.rules import ITEM
from ragconfig.settings import packaged

# A line with more characters is a paragraph, the row of a table with as many for each cell: a sentence in one
# cell would be shown with other cells of the row above it.
MAX_LINE = 240
# Paragraphs are wrapped at this width at least, and their lines fill this part of it but for a word.
MIN_WIDTH = 50
FULL = 0.8
# What two lines of prose do not have: columns, signs of code, cells of a CSV file, or in the second line
# another mark, a key, or the first word again; in both lines a date or time at the beginning.
_NO_PROSE = re.compile(
    r"\S {4,}\S|\S\t|[{}=<>|\\]|(?:[,;]\S.*){3}|[:;]\n|\n\s*\n|\n\s*+(?![\"'“„«(\[]?[^\W_])"
    r"|\n\s*[\w ]{1,25}: |^\s*(\S+) .*\n\s*\1 |^\W*\d+(?:[-./]\d+[-./]|:)\d.*\n\W*\d+[-./:]\d"
)

# A sentence ends at a full stop before white space and a capital, and at any full-width stop.
_END = re.compile(r"""(?<=[.!?…])["'”’»)\]]*\s+(?=["'“„«(\[¿¡]*[^\W_a-zß-öø-ÿ])|(?<=[。！？])[”’」』）]*""")
# A full stop after single letters, short numbers and common abbreviations does not end a sentence.
_ABBREVIATIONS = "|".join(map(re.escape, packaged("words.toml")["abbreviations"].split()))
_NO_END = re.compile(rf"(?:^|[\s(.\[])(?:[^\W\d_]|\d{{1,2}}|{_ABBREVIATIONS})\.$")
_LINE = re.compile(r"[^\n]*\S[^\n]*")

Span = tuple[int, int]  # from, to (exclusive), in characters


def piece_spans(text: str, begin: int = 0, *, wraps: bool = True) -> Iterator[Span]:
    """The spans of the pieces from `begin` on, indentation included. Empty lines belong to no piece.

    Without `wraps`, each line is a record of a CSV file.
    """
    for start, end in paragraph_spans(text, begin, wraps=wraps):
        part = text[start:end]
        is_line = "\n" not in part and (not wraps or len(part) <= MAX_LINE * (1 + part.count("|")))
        (_, stop), *others = [(0, end - start)] if is_line else sentence_spans(part)
        yield from ((start + first, start + last) for first, last in [(0, stop), *others])


def paragraph_spans(text: str, begin: int = 0, *, wraps: bool = True) -> Iterator[Span]:
    """The spans of the lines that are not empty; of a paragraph that is wrapped, that of all its lines."""
    lines = [(found.start(), found.start() + len(found[0].rstrip())) for found in _LINE.finditer(text, begin)]
    width = max((end - start for start, end in lines), default=0)
    first = None
    for line, below in zip_longest(lines, lines[1:]):
        first = first or line
        if not (wraps and below and MIN_WIDTH <= width <= MAX_LINE and _is_wrapped(text, line, below, width)):
            yield first[0], line[1]
            first = None


def _is_wrapped(text: str, line: Span, below: Span, width: int) -> bool:
    """Whether a paragraph goes on in the line below. `width` is that of the longest line."""
    upper, lower = text[slice(*line)], text[slice(*below)]
    item = ITEM.match(upper)
    indent = item.end() if item else len(upper) - len(upper.lstrip())
    return (
        len(upper) + len(lower.split()[0]) >= FULL * width
        and indent == len(lower) - len(lower.lstrip())
        and not _NO_PROSE.search(text[line[0] : below[1]])
    )


def sentence_spans(text: str) -> list[Span]:
    """The spans of the sentences of a paragraph, without surrounding white space."""
    spans: list[Span] = []
    begin = 0
    for end in [*(match.end() for match in _END.finditer(text)), len(text)]:
        part = text[begin:end]
        if part.strip() and (end == len(text) or not _NO_END.search(part.strip())):
            start = begin + len(part) - len(part.lstrip())
            spans.append((start, begin + len(part.rstrip())))
            begin = end
    return spans


def blanked(text: str, spans: Iterable[Span]) -> str:
    """The text with spaces instead of these spans, except for line breaks; offsets stay the same."""
    signs = list(text)
    for start, end in spans:
        signs[start:end] = re.sub(r"[^\n]", " ", text[start:end])
    return "".join(signs)
