"""A passage in pieces: its lines, and the sentences of long lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Characters of a longer line are a paragraph.
MAX_LINE = 240

# After a full stop a sentence ends where white space and a beginning follow; after the wide ones at once.
_END = re.compile(r"""(?<=[.!?…])["'”’»)\]]*\s+(?=["'“„«(\[¿¡]*[^\W_a-zß-öø-ÿ])|(?<=[。！？])[”’」』）]*""")
# These end with a full stop but end no sentence: single letters, short numbers, the usual abbreviations.
_NO_END = re.compile(
    r"(?:^|[\s(.\[])(?:[^\W\d_]|\d{1,2}|Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|Gen|Col|Lt|Capt|Rev|Hon|Gov|Sen|Rep|vs|etc|e\.g|i\.e|cf"
    r"|al|ca|approx|est|Inc|Ltd|Co|Corp|No|Nos|Nr|Fig|Figs|Eq|Sec|Vol|pp|ed|eds|Bd|Abb|Tab|bzw|usw|evtl|ggf|inkl"
    r"|Mio|Mrd|Std|Str|Hrsg|u\.a|z\.B|d\.h|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec|Okt|Dez|M|Mme|Mlle|Sra)\.$"
)
_LINE = re.compile(r"[^\n]*\S[^\n]*")

Span = tuple[int, int]  # from, to (exclusive), in characters


def piece_spans(text: str) -> Iterator[Span]:
    """Where each piece begins and ends; a line with its indentation. Empty lines are in none."""
    for line in _LINE.finditer(text):
        start, end = line.span()
        if end - start <= MAX_LINE:
            yield start, start + len(line.group().rstrip())
        else:
            yield from ((start + first, start + last) for first, last in sentence_spans(line.group()))


def sentence_spans(text: str) -> list[Span]:
    """Where each sentence of a paragraph begins and ends, without the white space around it."""
    spans: list[Span] = []
    begin = 0
    for end in [*(match.end() for match in _END.finditer(text)), len(text)]:
        part = text[begin:end]
        if part.strip() and (end == len(text) or not _NO_END.search(part.strip())):
            start = begin + len(part) - len(part.lstrip())
            spans.append((start, begin + len(part.rstrip())))
            begin = end
    return spans
