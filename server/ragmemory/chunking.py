"""Text → chunks: ranges that join to the whole text, sized in the embedder's tokens. Pure.

The text is cut into blocks that belong together (`blocks`); what is too long is cut further, after sentences,
lines or words; then neighbours of one section are packed together.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, pairwise

from msgspec import Struct

from ragmemory.blocks import Block, markdown_blocks, paragraphs
from ragmemory.types import Chunk

TokenCounter = Callable[[list[str]], list[int]]

# The end of a sentence: marks, what closes, and white space; the marks of Chinese and Japanese need none.
SENTENCE = re.compile(r"""[.!?…]+["'”’»)\]]*\s+|[。！？｡]+[」』”’）]*\s*""")
LINE = re.compile(r"\n")
# A text of more characters for each token allowed is too long, whatever its tokens are: it is not counted.
MOST_CHARACTERS = 16
# Characters counted and packed at a time, so that a long text is embedded while its words are remembered.
RUN = 250_000
# No character has more tokens: its four bytes in UTF-8, and one for a word's beginning.
MOST_TOKENS = 5


class ChunkingSettings(Struct, frozen=True):
    """The table [chunking]."""

    max_tokens: int


class Piece(Struct, frozen=True, gc=False):
    """A block or a part of one, with its size."""

    block: Block
    start: int
    end: int
    tokens: float


def split(text: str, *, markdown: bool, max_tokens: int, count: TokenCounter) -> Iterator[Chunk]:
    """Chunks in order; joined, their ranges are the whole text. None for an empty text."""
    fragment = fragments(max_tokens)
    newlines = [match.start() for match in LINE.finditer(text)]
    for run in runs(markdown_blocks(text) if markdown else paragraphs(text)):
        pieces = counted(text, [(block, block.start, block.end) for block in run], max_tokens, count)
        for prose, code in ((SENTENCE, LINE), (LINE, fragment), (fragment, fragment)):
            pieces = cut_long(text, pieces, prose, code, max_tokens, count)
        yield from (chunk_of(text, group, newlines) for group in packed(pieces, max_tokens))


def runs(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Blocks that are counted and packed at a time; a heading is never parted from what follows it."""
    run: list[Block] = []
    for block in blocks:
        if run and block.start - run[0].start >= RUN and not run[-1].is_heading:
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def counted(
    text: str, ranges: list[tuple[Block, int, int]], max_tokens: int, count: TokenCounter
) -> list[Piece]:
    """All sizes from one call; infinite for what is too long in any case."""
    longest = MOST_CHARACTERS * max_tokens
    sizes = iter(count([text[start:end] for _, start, end in ranges if end - start <= longest]))
    return [
        Piece(block, start, end, next(sizes) if end - start <= longest else math.inf)
        for block, start, end in ranges
    ]


def fragments(max_tokens: int) -> re.Pattern[str]:
    """Cuts after white space where there is some, and so often that every fragment fits."""
    most = max(1, max_tokens // MOST_TOKENS)
    return re.compile(rf"[\s\S]{{1,{most}}}(?:(?<=\s)(?!\s)|\Z)|[\s\S]{{{most}}}")


def cut_long(
    text: str,
    pieces: list[Piece],
    prose: re.Pattern[str],
    code: re.Pattern[str],
    max_tokens: int,
    count: TokenCounter,
) -> list[Piece]:
    """Pieces above `max_tokens` cut after every match; all parts are counted in one call."""
    ranges: list[tuple[Block, int, int]] = []
    for piece in pieces:
        if piece.tokens > max_tokens:
            pattern = code if piece.block.is_code else prose
            ends = {match.end() for match in pattern.finditer(text, piece.start, piece.end)}
            bounds = sorted({piece.start, *ends, piece.end})
            ranges += [(piece.block, start, end) for start, end in pairwise(bounds)]
    if not ranges:
        return pieces
    whole = [piece for piece in pieces if piece.tokens <= max_tokens]
    return sorted([*whole, *counted(text, ranges, max_tokens, count)], key=lambda piece: piece.start)


def packed(pieces: Iterable[Piece], max_tokens: int) -> Iterator[list[Piece]]:
    """The pieces of each chunk. Headings that nothing follows directly go with the next section."""
    waiting: list[Piece] = []
    for _, section in groupby(pieces, key=lambda piece: piece.block.section):
        waiting += section
        if any(piece.tokens and not piece.block.is_heading for piece in waiting):
            yield from evenly(waiting, max_tokens)
            waiting = []
    if waiting:
        yield from evenly(waiting, max_tokens)


def evenly(pieces: list[Piece], max_tokens: int) -> Iterator[list[Piece]]:
    """As few groups as fit, of about the same size: a short remainder would say too little to be found."""
    total = sum(piece.tokens for piece in pieces)
    quota = total / max(1, math.ceil(total / max_tokens))
    group: list[Piece] = []
    tokens = 0.0
    for piece in pieces:
        is_full = tokens + piece.tokens / 2 > quota or tokens + piece.tokens > max_tokens
        if is_full and any(not before.block.is_heading for before in group):
            yield group
            group, tokens = [], 0.0
        group.append(piece)
        tokens += piece.tokens
    yield group


def chunk_of(text: str, group: list[Piece], newlines: list[int]) -> Chunk:
    """The lines are those of the visible text in it."""
    start, end = group[0].start, group[-1].end
    inner = text[start:end]
    first = start + len(inner) - len(inner.lstrip())
    last = start + len(inner.rstrip())
    lines = (start, end) if first >= last else (first, last)
    return Chunk(
        start,
        end,
        bisect_right(newlines, lines[0] - 1) + 1,
        bisect_right(newlines, lines[1] - 2) + 1,
        group[-1].block.heading,
    )
