"""Split texts into chunks, which join to the whole text and are sized in the embedder's tokens. Pure.

A text is split into blocks (`blocks`); blocks that are too long are cut after sentences, lines or words; then
neighbours of one section are packed into chunks. The tokens of several texts are counted in one call.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from itertools import count as counter

from msgspec import Struct
from msgspec.structs import replace

from ragmemory.code.apart import is_harmless
from ragmemory.ingest.blocks import LINES, Block, bibtex_blocks, csv_blocks, markdown_blocks, paragraphs
from ragmemory.ingest.conversations import in_turns
from ragmemory.ingest.headings import plain_blocks
from ragmemory.text.languages import Language
from ragmemory.types.writes import Chunk

TokenCounter = Callable[[list[str]], list[int]]

# The end of a sentence: punctuation, closing quotes and white space, which Chinese and Japanese do not need.
# The lookahead skips all other characters in half the time; the lookbehind reads a run of punctuation once,
# not once from each character.
SENTENCE = re.compile(r"""(?=[.!?…。！？｡])(?:(?<![.!?…])[.!?…]++["'”’»)\]]*+\s+|[。！？｡]+[」』”’）]*\s*)""")
LINE = re.compile(r"\n")
# Blank or invisible characters may have no tokens, so the number of characters is limited as well.
MAX_CHARACTERS_PER_TOKEN = 16
# A chunk takes at least a kilobyte to store. A run that would have more than MANY_CHUNKS chunks, of fewer
# than FEW_CHARACTERS characters on average, is packed across section boundaries.
MANY_CHUNKS = 4_000
FEW_CHARACTERS = 20
# Characters per run: enough for fast token counting, few enough that a long text is embedded while its words
# are cached.
RUN = 250_000
# With more blocks, a run of short ones takes a second, during which it cannot be cancelled.
MAX_BLOCKS = 10_000
# Sections shorter than this share of a chunk get no chunk of their own between longer ones.
SHORT = 0.15
# A line with one of these ends, a short question, a bold line and the caption of a table introduce what
# follows; at most MAX_LEADING of them are kept with it.
LEADING = (":", "：")
INTRODUCTION = re.compile(
    r"[^\n]{1,200}[?？][*_]{0,3}|(\*\*|__)[^\n]{1,200}\1"
    r"|[*_]{0,3}(?:Table|TABLE|Tabelle|Tabla|Tableau|Tabella)\s(?:[A-Z]\.?)?\d[\d.]*[a-z]?"
    r"(?:\s*[.:]|\s+[–—-]\s|\s+[A-ZÀ-ÖØ-Þ]|\Z)[^\n]{0,200}"
)
MAX_LEADING = 3
# Four bytes in UTF-8, and one token for the beginning of a word.
MAX_TOKENS_PER_CHARACTER = 5


class ChunkingSettings(Struct, frozen=True):
    """The table [chunking]."""

    max_tokens: int


class ChunkerInput(Struct, frozen=True):
    """A text and its format: Markdown, one table, a bibliography, source code, or paragraphs.

    Conversations are recognised only in prose, not in code, settings or logs.
    """

    text: str
    is_markdown: bool
    is_csv: bool = False
    is_prose: bool = True
    language: Language | None = None  # of source code
    has_headings: bool = False  # recognise the headings of a plain text
    is_bibtex: bool = False

    @property
    def is_risky(self) -> bool:
        """Whether its blocks may take much time and memory: it is source code of some length."""
        return self.language is not None and not is_harmless(self.text)

    def blocks(self) -> Iterator[Block]:
        """Its blocks, in order."""
        if self.is_csv:
            return csv_blocks(self.text)
        if self.is_bibtex:
            return bibtex_blocks(self.text)
        if self.language:
            from ragmemory.ingest.code import code_blocks

            return code_blocks(self.text, self.language)
        read = markdown_blocks if self.is_markdown else plain_blocks if self.has_headings else paragraphs
        blocks = read(self.text)
        return in_turns(self.text, blocks) if self.is_prose else blocks


# The blocks of a text, in order.
Blocks = Callable[[ChunkerInput], Iterable[Block]]


class LineNumbers:
    """Line numbers, from 1. Incremental: a list of all line starts could be larger than the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 0
        self._number = 1

    def at(self, offset: int) -> int:
        """The line of an offset, which must not decrease from call to call."""
        self._number += self._text.count("\n", self._offset, offset)
        self._offset = offset
        return self._number


class BlockRun(Struct, frozen=True):
    """Neighbouring blocks of one text. `number` identifies the run, `source` is the index of the text."""

    number: int
    source: int
    text: str
    lines: LineNumbers
    blocks: list[Block]


class Piece(Struct, frozen=True, gc=False):
    """A block or a part of one, with its tokens."""

    run: BlockRun
    block: Block
    start: int
    end: int
    tokens: float


def split(
    sources: Iterable[ChunkerInput],
    *,
    max_tokens: int,
    count: TokenCounter,
    blocks: Blocks = ChunkerInput.blocks,
) -> Iterator[list[tuple[int, Chunk]]]:
    """The chunks in order, each with the index of its text. An empty text has none.

    Yields lists that take about 0.1 s each, however long the texts are.
    """
    fragment = fragments(max_tokens)
    for batch in batches(runs(sources, blocks)):
        ranges = [(run, block, block.start, block.end) for run in batch for block in run.blocks]
        pieces = with_token_counts(ranges, max_tokens, count)
        for prose, code in ((SENTENCE, LINE), (LINE, fragment), (fragment, fragment)):
            pieces = split_long(pieces, prose, code, max_tokens, count)
        found = [
            group
            for _, of_run in groupby(pieces, key=lambda piece: piece.run.number)
            for group in chunk_groups(list(of_run), max_tokens)
        ]
        yield [(group[0].run.source, chunk_of(group)) for group in split_oversized(found, max_tokens, count)]


def batches(runs: Iterable[BlockRun]) -> Iterator[list[BlockRun]]:
    """Batches of runs whose tokens are counted in one call."""
    group: list[BlockRun] = []
    characters = blocks = 0
    for run in runs:
        group.append(run)
        characters += run.blocks[-1].end - run.blocks[0].start
        blocks += len(run.blocks)
        if characters >= RUN or blocks >= MAX_BLOCKS:
            yield group
            group, characters, blocks = [], 0, 0
    if group:
        yield group


def runs(sources: Iterable[ChunkerInput], blocks: Blocks) -> Iterator[BlockRun]:
    """The blocks of each text, in runs that are packed at a time."""
    number = counter()
    for place, source in enumerate(sources):
        text, lines = source.text, LineNumbers(source.text)
        for neighbours in group_blocks(part for block in blocks(source) for part in parts_of(text, block)):
            yield BlockRun(next(number), place, text, lines, neighbours)


def parts_of(text: str, block: Block) -> Iterator[Block]:
    """Split a block into parts that fit into a run, after a line or a word if possible."""
    while block.end - block.start > RUN:
        middle, most = block.start + RUN // 2, block.start + RUN
        end = text.rfind("\n", middle, most) + 1 or text.rfind(" ", middle, most) + 1 or most
        yield replace(block, end=end)
        block = replace(block, start=end)
    yield block


def group_blocks(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Group blocks into runs. A heading stays with what follows it, unless there are only headings."""
    run: list[Block] = []
    for block in blocks:
        size = max(len(run) / MAX_BLOCKS, (block.start - run[0].start) / RUN) if run else 0
        if size >= 1 and (not run[-1].level or size >= 1.25):
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def with_token_counts(
    ranges: list[tuple[BlockRun, Block, int, int]], max_tokens: int, count: TokenCounter
) -> list[Piece]:
    """The ranges with their tokens, counted in one call; infinite for ranges that are certainly too long."""
    longest = MAX_CHARACTERS_PER_TOKEN * max_tokens
    sizes = iter(count([run.text[start:end] for run, _, start, end in ranges if end - start <= longest]))
    return [
        Piece(run, block, start, end, next(sizes) if end - start <= longest else math.inf)
        for run, block, start, end in ranges
    ]


def fragments(max_tokens: int) -> re.Pattern[str]:
    """A pattern for fragments that always fit into a chunk; they end after white space if there is any."""
    most = max(1, max_tokens // MAX_TOKENS_PER_CHARACTER)
    return re.compile(rf"[\s\S]{{1,{most}}}(?:(?<=\s)(?!\s)|\Z)|[\s\S]{{{most}}}")


def split_long(
    pieces: list[Piece],
    prose: re.Pattern[str],
    code: re.Pattern[str],
    max_tokens: int,
    count: TokenCounter,
) -> list[Piece]:
    """Split pieces that do not fit into a chunk, after every match; count all parts in one call."""
    whole: list[Piece] = []
    ranges: list[tuple[BlockRun, Block, int, int]] = []
    for piece, limit in token_limits(pieces, max_tokens):
        if piece.tokens <= limit:
            whole.append(piece)
            continue
        pattern = code if piece.block.kind in LINES else prose
        ends = (match.end() for match in pattern.finditer(piece.run.text, piece.start, piece.end))
        bounds = [piece.start, *(end for end in ends if piece.start < end < piece.end), piece.end]
        ranges += [(piece.run, piece.block, start, end) for start, end in pairwise(bounds)]
    if not ranges:
        return pieces
    parts = with_token_counts(ranges, max_tokens, count)
    return sorted([*whole, *parts], key=lambda piece: (piece.run.number, piece.start))


def token_limits(pieces: list[Piece], max_tokens: int) -> Iterator[tuple[Piece, float]]:
    """Each piece with its token limit: `max_tokens` minus the headings above it, but at least half."""
    above, run = 0.0, -1
    for piece in pieces:
        if piece.run.number != run:
            above, run = 0.0, piece.run.number
        yield piece, max_tokens - above if 2 * above <= max_tokens else max_tokens
        if piece.tokens:  # Ignore blank lines below a heading.
            above = above + piece.tokens if piece.block.level else 0.0


def chunk_groups(pieces: list[Piece], max_tokens: int) -> Iterable[list[Piece]]:
    """The pieces of each chunk in a run."""
    most = max(MANY_CHUNKS, (pieces[-1].end - pieces[0].start) // FEW_CHARACTERS)
    pack = pack_soft_sections if pieces[0].block.is_soft else pack_sections
    found = list(pack(pieces, max_tokens))
    return found if len(found) <= most else balance(one_each(pieces), max_tokens)


def pack_sections(pieces: Iterable[Piece], max_tokens: int) -> Iterator[list[Piece]]:
    """Pack each section. One with only headings is packed with the next, and so is a short one before the
    first heading, such as front matter."""
    waiting: list[Piece] = []
    for section, below in pairwise([*sections(pieces), []]):
        waiting += section
        is_first = below and below[0].block.heading and not section[0].block.heading
        is_short = is_first and tokens_of(section) < SHORT * max_tokens
        if has_text(section) and not is_short:
            yield from balance(one_each(waiting), max_tokens)
            waiting = []
    yield from balance(one_each(waiting), max_tokens)


def pack_soft_sections(pieces: Iterable[Piece], max_tokens: int) -> Iterator[list[Piece]]:
    """Pack whole neighbouring sections together; a section that is too long is packed alone."""
    waiting: list[list[Piece]] = []
    for section in sections(pieces):
        if tokens_of(section) <= max_tokens:
            waiting.append(section)
            continue
        alone = len(waiting)
        while alone and not has_text(waiting[alone - 1]):
            alone -= 1
        if sum(map(tokens_of, waiting[:alone])) < SHORT * max_tokens:
            alone = 0
        yield from balance(waiting[:alone], max_tokens)
        yield from balance(one_each(chain(*waiting[alone:], section)), max_tokens)
        waiting = []
    yield from balance(waiting, max_tokens)


def sections(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """The pieces of each section."""
    for _, group in groupby(pieces, key=lambda piece: piece.block.section):
        yield list(group)


def tokens_of(pieces: Iterable[Piece]) -> float:
    return sum(piece.tokens for piece in pieces)


def one_each(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """Each piece as a part of its own."""
    return [[piece] for piece in pieces]


def has_text(pieces: Iterable[Piece]) -> bool:
    """Whether any piece is not a heading."""
    return any(piece.tokens > 0 and not piece.block.level for piece in pieces)


def balance(parts: Sequence[list[Piece]], max_tokens: int) -> Iterator[list[Piece]]:
    """As few groups as possible, of about equal size: a short remainder is hard to find by search."""
    sizes = [tokens_of(part) for part in parts]
    total = sum(sizes)
    quota = total / max(1, math.ceil(total / max_tokens))
    longest = MAX_CHARACTERS_PER_TOKEN * max_tokens
    group: list[Piece] = []
    tokens, is_begun = 0.0, False
    for part, size in zip(parts, sizes, strict=True):
        is_full = is_begun and tokens + size / 2 > quota
        is_over = tokens + size > max_tokens or (group and part[-1].end - group[0].start > longest)
        if group and (is_full or is_over):
            carried = introduction(group, max_tokens - size, part[-1].end - longest)
            yield group[: len(group) - len(carried)]
            group, tokens, is_begun = carried, tokens_of(carried), has_text(carried)
        group += part
        tokens += size
        is_begun = is_begun or has_text(part)
    if group:
        yield group


def introduction(group: list[Piece], room: float, start: int) -> list[Piece]:
    """The last pieces of a group that introduce what follows: a heading, a question, or "As follows:".

    At most `room` tokens, none before offset `start`, and never the whole group.
    """
    found: list[Piece] = []
    for piece in reversed(group[1:]):
        room -= piece.tokens
        text = piece.run.text[piece.start : piece.end].strip()
        leads = piece.block.level or text.endswith(LEADING) or INTRODUCTION.fullmatch(text)
        if not leads or room < 0 or piece.start < start or len(found) == MAX_LEADING:
            break
        found.insert(0, piece)
    return found


def split_oversized(groups: list[list[Piece]], max_tokens: int, count: TokenCounter) -> Iterator[list[Piece]]:
    """Halve the groups that have too many tokens: a word can have more tokens than the sum of its parts."""
    joined = [is_cut_within_word(group) for group in groups]
    suspects = [group for group, is_suspect in zip(groups, joined, strict=True) if is_suspect]
    texts = [group[0].run.text[group[0].start : group[-1].end] for group in suspects]
    counts = iter(count(texts) if texts else ())
    for group, is_suspect in zip(groups, joined, strict=True):
        if is_suspect and next(counts) > max_tokens:
            yield group[: len(group) // 2]
            yield group[len(group) // 2 :]
        else:
            yield group


def is_cut_within_word(group: list[Piece]) -> bool:
    """Whether a cut between two pieces has no white space on either side."""
    text = group[0].run.text
    return any(not text[piece.start - 1].isspace() and not text[piece.start].isspace() for piece in group[1:])


def chunk_of(group: list[Piece]) -> Chunk:
    """The chunk of a group of pieces; its lines exclude surrounding white space.

    A chunk that begins inside a table has the table's header as context. The surroundings are those of its
    first block.
    """
    text, lines = group[0].run.text, group[0].run.lines
    start, end = group[0].start, group[-1].end
    inner = text[start:end]
    first = start + len(inner) - len(inner.lstrip())
    last = start + len(inner.rstrip())
    if first >= last:
        first, last = start, end
    first_line = lines.at(first)
    heading, inside = headings_of(group)
    headings = [(lines.at(max(start, first)), path) for start, path in inside]
    header_start, header_end = group[0].block.header
    context = text[header_start:header_end] if start >= header_end else ""
    surroundings = "\n".join(text[start:end].strip() for start, end in group[0].block.nearby)
    return Chunk(start, end, first_line, lines.at(last - 1), heading, context, surroundings, headings)


def shared(paths: Sequence[Sequence[str]]) -> Iterator[str]:
    """The common prefix of some paths."""
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            return
        yield names[0]


def headings_of(group: list[Piece]) -> tuple[str, list[tuple[int, str]]]:
    """The path of headings above the whole chunk, and the offsets at which paths below it begin."""
    if not group[0].block.is_soft:
        symbols = [(piece.start, piece.block.symbol) for piece in group]
        return group[-1].block.heading, symbols if any(name for _, name in symbols) else []
    paths = [piece.block.heading.split(" > ") for piece in group if piece.tokens and not piece.block.level]
    common = list(shared(paths or [group[-1].block.heading.split(" > ")]))
    found: list[tuple[int, str]] = []
    for section in sections(group):
        below = " > ".join(section[0].block.heading.split(" > ")[len(common) :])
        if below or found:
            found.append((section[0].start, below))
    return " > ".join(common), found
