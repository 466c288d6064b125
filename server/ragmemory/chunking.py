"""Text → chunks: ranges that join to the whole text, sized in the embedder's tokens. Pure.

First the text is cut into blocks that belong together (a heading, a paragraph, a list item, a table, fenced code);
blocks that are too long are cut further (lines, sentences, words); then neighbours are packed together.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from msgspec import Struct

from ragmemory.types import Chunk

TokenCounter = Callable[[list[str]], list[int]]


class ChunkingSettings(Struct, frozen=True):
    """The table [chunking]."""

    max_tokens: int


@dataclass(frozen=True)
class Piece:
    """A range that should stay whole. Pieces of different sections are never packed together."""

    start: int
    end: int
    heading: str = ""
    is_heading: bool = False
    tokens: int = 0


FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
# What a piece that is too long is cut after, from the gentlest to the harshest.
CUTS = (
    re.compile(r"\n"),
    # The end of a sentence: marks, closing quotes or brackets, and white space; CJK marks need none.
    re.compile(r"""[.!?…]+["'”’»)\]]*\s+|[。！？｡]+[」』”’）]*\s*"""),
    re.compile(r"\s+"),
)


def split(text: str, *, markdown: bool, max_tokens: int, count: TokenCounter) -> list[Chunk]:
    """Chunks in order; joined, their ranges are the whole text. None for an empty text."""
    if not text:
        return []
    pieces = counted(text, list(markdown_blocks(text) if markdown else paragraphs(text)), count)
    for cut in CUTS:
        pieces = cut_long(text, pieces, cut, max_tokens, count)
    pieces = [part for piece in pieces for part in hard_cut(piece, max_tokens)]
    newlines = [match.start() for match in re.finditer("\n", text)]
    return [chunk_of(group, newlines) for group in packed(pieces, max_tokens)]


def counted(text: str, pieces: list[Piece], count: TokenCounter) -> list[Piece]:
    sizes = count([text[piece.start : piece.end] for piece in pieces])
    return [replace(piece, tokens=size) for piece, size in zip(pieces, sizes, strict=True)]


def paragraphs(text: str) -> Iterator[Piece]:
    """Ends after each run of blank lines."""
    start = 0
    for match in re.finditer(r"\n(?:[ \t\r]*\n)+", text):
        yield Piece(start, match.end())
        start = match.end()
    if start < len(text):
        yield Piece(start, len(text))


def markdown_blocks(text: str) -> Iterator[Piece]:
    """Headings, list items, and what blank lines separate; a fence closes only with its own mark."""
    path: list[tuple[int, str]] = []
    start = offset = 0
    fence = ""
    blank = False
    heading = ""
    for line in text.splitlines(keepends=True):
        begin, offset = offset, offset + len(line)
        if fence:
            if line.strip().startswith(fence) and not line.strip(fence[0] + " \t\r\n"):
                fence = ""
            continue
        title = HEADING.match(line.rstrip("\r\n"))
        opened = FENCE.match(line)
        if begin > start and (title or opened or (line.strip() and (blank or ITEM.match(line)))):
            yield Piece(start, begin, heading)
            start = begin
        if opened:
            fence = opened[1]
        if title:
            level = len(title[1])
            path = [entry for entry in path if entry[0] < level] + [(level, title[2])]
            heading = " > ".join(name for _, name in path if name)
            yield Piece(start, offset, heading, is_heading=True)
            start = offset
        blank = not line.strip()
    if start < len(text):
        yield Piece(start, len(text), heading)


def cut_long(
    text: str, pieces: list[Piece], cut: re.Pattern[str], max_tokens: int, count: TokenCounter
) -> list[Piece]:
    """Pieces above `max_tokens` cut after every match; all the parts are counted in one call."""
    parts: list[Piece] = []
    for piece in pieces:
        if piece.tokens <= max_tokens:
            continue
        ends = [match.end() for match in cut.finditer(text, piece.start, piece.end)]
        bounds = sorted({piece.start, *ends, piece.end})
        parts += [replace(piece, start=start, end=end) for start, end in pairwise(bounds)]
    if not parts:
        return pieces
    fresh = iter(repacked(counted(text, parts, count), max_tokens))
    whole = [piece for piece in pieces if piece.tokens <= max_tokens]
    return sorted([*whole, *fresh], key=lambda piece: piece.start)


def repacked(parts: list[Piece], max_tokens: int) -> Iterator[Piece]:
    return iter(parts)


def hard_cut(piece: Piece, max_tokens: int) -> Iterator[Piece]:
    """A word longer than a chunk is cut by characters, as many as its tokens allow on average."""
    if piece.tokens <= max_tokens:
        yield piece
        return
    parts = -(-piece.tokens // max_tokens)
    step = max(1, (piece.end - piece.start) // parts)
    for start in range(piece.start, piece.end, step):
        yield replace(piece, start=start, end=min(start + step, piece.end), tokens=max_tokens)


def packed(pieces: list[Piece], max_tokens: int) -> Iterator[list[Piece]]:
    """Neighbours of one section together as long as they fit; a heading goes with what follows it."""
    group: list[Piece] = []
    tokens = 0
    for piece in pieces:
        same = group and (group[-1].heading == piece.heading or group[-1].is_heading) and not piece.is_heading
        lone = group and all(other.is_heading for other in group)
        if group and not ((same or lone) and tokens + piece.tokens <= max_tokens):
            yield group
            group, tokens = [], 0
        group.append(piece)
        tokens += piece.tokens
    if group:
        yield group


def chunk_of(group: list[Piece], newlines: list[int]) -> Chunk:
    start, end = group[0].start, group[-1].end
    first, last = bisect_right(newlines, start - 1), bisect_right(newlines, end - 2)
    return Chunk(start, end, first + 1, last + 1, group[-1].heading)
