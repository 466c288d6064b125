"""Texts → chunks: ranges that join to the whole text, sized in the embedder's tokens. Pure.

A text is cut into blocks that belong together (`blocks`); what is too long is cut further, after sentences,
lines or words; then neighbours of one section are packed together. Several texts are counted at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count as counter
from itertools import groupby, pairwise

from msgspec import Struct
from msgspec.structs import replace

from ragmemory.ingest.blocks import Block, markdown_blocks, paragraphs
from ragmemory.types import Chunk

TokenCounter = Callable[[list[str]], list[int]]

# The end of a sentence: marks, what closes, and white space; the marks of Chinese and Japanese need none.
# The first look passes over all other characters in half the time; the look back reads a row of marks once,
# not once from each of them.
SENTENCE = re.compile(r"""(?=[.!?…。！？｡])(?:(?<![.!?…])[.!?…]++["'”’»)\]]*+\s+|[。！？｡]+[」』”’）]*\s*)""")
LINE = re.compile(r"\n")
# A chunk has no more characters for each token allowed: blank or invisible ones may have no tokens at all.
MOST_CHARACTERS = 16
# A chunk takes a kilobyte to store, however short it is. So where a run has so many, of so few characters
# each on average, it is packed without regard to its sections.
MANY_CHUNKS = 4_000
FEW_CHARACTERS = 20
# Characters counted and packed at a time: enough that counting is fast, and of a long text so few that it is
# embedded while its words are remembered.
RUN = 250_000
# Blocks then: of shorter ones a run would take a second, in which it cannot be cancelled.
MOST_BLOCKS = 10_000
# No character has more tokens: its four bytes in UTF-8, and one for a word's beginning.
MOST_TOKENS = 5


class ChunkingSettings(Struct, frozen=True):
    """The table [chunking]."""

    max_tokens: int


class Source(Struct, frozen=True):
    """A text, and whether it is read as Markdown or as paragraphs."""

    text: str
    is_markdown: bool


class LineNumbers:
    """The numbers of lines, from 1. A list of where all lines begin could be larger than the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 0
        self._number = 1

    def at(self, offset: int) -> int:
        """The line of a character. Offsets must ascend from call to call."""
        self._number += self._text.count("\n", self._offset, offset)
        self._offset = offset
        return self._number


class Run(Struct, frozen=True):
    """Neighbouring blocks of one text. `number` and `source` count all runs and all texts."""

    number: int
    source: int
    text: str
    lines: LineNumbers
    blocks: list[Block]


class Piece(Struct, frozen=True, gc=False):
    """A block or a part of one, with its size."""

    run: Run
    block: Block
    start: int
    end: int
    tokens: float


def split(
    sources: Iterable[Source], *, max_tokens: int, count: TokenCounter
) -> Iterator[list[tuple[int, Chunk]]]:
    """Chunks in order, each with the number of its text; joined, the ranges of a text are the whole of it.

    None for an empty text. They come in lists, each of some 0.1 s of work, however long the texts are.
    """
    fragment = fragments(max_tokens)
    for group in groups(runs(sources)):
        ranges = [(run, block, block.start, block.end) for run in group for block in run.blocks]
        pieces = counted(ranges, max_tokens, count)
        for prose, code in ((SENTENCE, LINE), (LINE, fragment), (fragment, fragment)):
            pieces = cut_long(pieces, prose, code, max_tokens, count)
        found = [
            packet
            for _, of_run in groupby(pieces, key=lambda piece: piece.run.number)
            for packet in packets(list(of_run), max_tokens)
        ]
        yield [(packet[0].run.source, chunk_of(packet)) for packet in fitting(found, max_tokens, count)]


def groups(runs: Iterable[Run]) -> Iterator[list[Run]]:
    """Runs that are counted at a time."""
    group: list[Run] = []
    characters = blocks = 0
    for run in runs:
        group.append(run)
        characters += run.blocks[-1].end - run.blocks[0].start
        blocks += len(run.blocks)
        if characters >= RUN or blocks >= MOST_BLOCKS:
            yield group
            group, characters, blocks = [], 0, 0
    if group:
        yield group


def runs(sources: Iterable[Source]) -> Iterator[Run]:
    """Of each text as many blocks as are packed at a time."""
    number = counter()
    for source, (text, is_markdown) in enumerate((source.text, source.is_markdown) for source in sources):
        lines = LineNumbers(text)
        blocks = markdown_blocks(text) if is_markdown else paragraphs(text)
        for neighbours in parted(part for block in blocks for part in portions(text, block)):
            yield Run(next(number), source, text, lines, neighbours)


def portions(text: str, block: Block) -> Iterator[Block]:
    """A block of more than a run in several, cut after a line or a word where there is one."""
    while block.end - block.start > RUN:
        middle, most = block.start + RUN // 2, block.start + RUN
        end = text.rfind("\n", middle, most) + 1 or text.rfind(" ", middle, most) + 1 or most
        yield replace(block, end=end)
        block = replace(block, start=end)
    yield block


def parted(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """A heading is not parted from what follows it, unless there are headings only."""
    run: list[Block] = []
    for block in blocks:
        size = max(len(run) / MOST_BLOCKS, (block.start - run[0].start) / RUN) if run else 0
        if size >= 1 and (not run[-1].is_heading or size >= 1.25):
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def counted(ranges: list[tuple[Run, Block, int, int]], max_tokens: int, count: TokenCounter) -> list[Piece]:
    """All sizes from one call; infinite for what is too long in any case."""
    longest = MOST_CHARACTERS * max_tokens
    sizes = iter(count([run.text[start:end] for run, _, start, end in ranges if end - start <= longest]))
    return [
        Piece(run, block, start, end, next(sizes) if end - start <= longest else math.inf)
        for run, block, start, end in ranges
    ]


def fragments(max_tokens: int) -> re.Pattern[str]:
    """Cuts after white space where there is some, and so often that every fragment fits."""
    most = max(1, max_tokens // MOST_TOKENS)
    return re.compile(rf"[\s\S]{{1,{most}}}(?:(?<=\s)(?!\s)|\Z)|[\s\S]{{{most}}}")


def cut_long(
    pieces: list[Piece],
    prose: re.Pattern[str],
    code: re.Pattern[str],
    max_tokens: int,
    count: TokenCounter,
) -> list[Piece]:
    """Pieces that do not fit a chunk cut after every match; all parts are counted in one call."""
    whole: list[Piece] = []
    ranges: list[tuple[Run, Block, int, int]] = []
    for piece, room in rooms(pieces, max_tokens):
        if piece.tokens <= room:
            whole.append(piece)
            continue
        pattern = code if piece.block.is_code else prose
        ends = (match.end() for match in pattern.finditer(piece.run.text, piece.start, piece.end))
        bounds = [piece.start, *(end for end in ends if piece.start < end < piece.end), piece.end]
        ranges += [(piece.run, piece.block, start, end) for start, end in pairwise(bounds)]
    if not ranges:
        return pieces
    parts = counted(ranges, max_tokens, count)
    return sorted([*whole, *parts], key=lambda piece: (piece.run.number, piece.start))


def rooms(pieces: list[Piece], max_tokens: int) -> Iterator[tuple[Piece, float]]:
    """Each piece and how many tokens it may have: what the headings right above it leave, at least half."""
    above, run = 0.0, -1
    for piece in pieces:
        if piece.run.number != run:
            above, run = 0.0, piece.run.number
        yield piece, max_tokens - above if 2 * above <= max_tokens else max_tokens
        if piece.tokens:  # blank lines below a heading change nothing
            above = above + piece.tokens if piece.block.is_heading else 0.0


def packets(pieces: list[Piece], max_tokens: int) -> Iterable[list[Piece]]:
    """The pieces of each chunk of a run."""
    most = max(MANY_CHUNKS, (pieces[-1].end - pieces[0].start) // FEW_CHARACTERS)
    found = list(packed(pieces, max_tokens))
    return found if len(found) <= most else evenly(pieces, max_tokens)


def packed(pieces: Iterable[Piece], max_tokens: int) -> Iterator[list[Piece]]:
    """Groups within sections. Headings that nothing follows directly go with the next section."""
    waiting: list[Piece] = []
    for _, group in groupby(pieces, key=lambda piece: piece.block.section):
        section = list(group)
        waiting += section
        if any(piece.tokens and not piece.block.is_heading for piece in section):
            yield from evenly(waiting, max_tokens)
            waiting = []
    if waiting:
        yield from evenly(waiting, max_tokens)


def evenly(pieces: list[Piece], max_tokens: int) -> Iterator[list[Piece]]:
    """As few groups as fit, of about the same size: a short remainder would say too little to be found."""
    total = sum(piece.tokens for piece in pieces)
    quota = total / max(1, math.ceil(total / max_tokens))
    longest = MOST_CHARACTERS * max_tokens
    group: list[Piece] = []
    tokens, has_text = 0.0, False
    for piece in pieces:
        is_full = has_text and tokens + piece.tokens / 2 > quota
        is_over = tokens + piece.tokens > max_tokens or (group and piece.end - group[0].start > longest)
        if group and (is_full or is_over):
            yield group
            group, tokens, has_text = [], 0.0, False
        group.append(piece)
        tokens += piece.tokens
        has_text = has_text or (piece.tokens > 0 and not piece.block.is_heading)
    yield group


def fitting(packets: list[list[Piece]], max_tokens: int, count: TokenCounter) -> Iterator[list[Piece]]:
    """The same, in halves where it has too many tokens: a word may have more than its parts together."""
    joined = [is_cut_in_a_word(packet) for packet in packets]
    suspects = [packet for packet, is_suspect in zip(packets, joined, strict=True) if is_suspect]
    texts = [packet[0].run.text[packet[0].start : packet[-1].end] for packet in suspects]
    counts = iter(count(texts) if texts else ())
    for packet, is_suspect in zip(packets, joined, strict=True):
        if is_suspect and next(counts) > max_tokens:
            yield packet[: len(packet) // 2]
            yield packet[len(packet) // 2 :]
        else:
            yield packet


def is_cut_in_a_word(packet: list[Piece]) -> bool:
    """Whether one of the pieces ends where there is no white space."""
    text = packet[0].run.text
    return any(
        not text[piece.start - 1].isspace() and not text[piece.start].isspace() for piece in packet[1:]
    )


def chunk_of(group: list[Piece]) -> Chunk:
    """The lines are those of the visible text in it."""
    text, lines = group[0].run.text, group[0].run.lines
    start, end = group[0].start, group[-1].end
    inner = text[start:end]
    first = start + len(inner) - len(inner.lstrip())
    last = start + len(inner.rstrip())
    if first >= last:
        first, last = start, end
    return Chunk(start, end, lines.at(first), lines.at(last - 1), group[-1].block.heading)
