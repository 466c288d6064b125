"""A passage in pieces: its lines, and the sentences of long lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragconfig.settings import packaged

# A line with more characters is a paragraph.
MAX_LINE = 240

# A sentence ends at a full stop before white space and a capital, and at any full-width stop.
_END = re.compile(r"""(?<=[.!?…])["'”’»)\]]*\s+(?=["'“„«(\[¿¡]*[^\W_a-zß-öø-ÿ])|(?<=[。！？])[”’」』）]*""")
# A full stop after single letters, short numbers and common abbreviations does not end a sentence.
_ABBREVIATIONS = "|".join(map(re.escape, packaged("words.toml")["abbreviations"].split()))
_NO_END = re.compile(rf"(?:^|[\s(.\[])(?:[^\W\d_]|\d{{1,2}}|{_ABBREVIATIONS})\.$")
_LINE = re.compile(r"[^\n]*\S[^\n]*")

Span = tuple[int, int]  # from, to (exclusive), in characters


def piece_spans(text: str) -> Iterator[Span]:
    """The spans of the pieces, indentation included. Empty lines belong to no piece."""
    for line in _LINE.finditer(text):
        start, end = line.span()
        if end - start <= MAX_LINE:
            yield start, start + len(line.group().rstrip())
        else:
            yield from ((start + first, start + last) for first, last in sentence_spans(line.group()))


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
