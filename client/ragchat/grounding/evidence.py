"""How well passages match a question, by words and by meaning.

Each piece of a passage is compared with each word of the question: late interaction (Khattab and Zaharia
2020) over the static vectors of memory's embedder; words with equal stems match fully.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, repeat
from math import inf
from operator import mul
from pathlib import PurePosixPath
from typing import Protocol
from urllib.parse import unquote, urlsplit

import anyio

from ragchat.errors import RagChatError
from ragchat.grounding.definitions import definitions
from ragchat.grounding.pieces import Span, piece_spans
from ragchat.grounding.question import Question, Word
from ragchat.grounding.words import index_terms
from ragcommon.contract.search import Comparison, Hit

# A line of only links to other notes, `[[Bread]] [[Yeast]]`, and an item of a table of contents,
# `- [Scope](#scope)`, match by this share: they name what is said elsewhere. A row of a table is neither.
_NAMING = re.compile(
    r"(?:[^\w\[|]*+(?:\[\[[^\]\n]*+\]\][^\w\[]*+)++|\s*[-*+\d.)]+\s+\[[^\n]*\]\(#[^\s()]*\)\s*)\Z"
)
NAMED = 0.5
# The header of a table and the paragraph above it.
_ABOVE_ROWS = re.compile(r"^(?:[^\n|]+\n){0,3}\n?\|.*\n\|[-| :]+\|\n", re.MULTILINE)
# Passages that share this part of their pairs of neighbouring terms are versions of one text.
VERSION_SHARE = 0.9
Matches = Sequence[float]  # for each word of the question, how well a text matches it, in [-1, 1]


class TextComparer(Protocol):
    """The part of `MemoryClient` that compares texts. Raises RagChatError."""

    async def compare(self, query: str, texts: Sequence[str], words: Sequence[str] = ...) -> Comparison: ...


@dataclass(frozen=True)
class Piece:
    """A part of a passage, from `start` to `end` of its `full_text`, and how well it matches each word.

    `held` is the share of each word's terms that it contains; `matches` is at least that.
    """

    start: int
    end: int
    matches: Matches
    held: Matches
    pairs: float  # the share of the question's pairs of neighbouring words that are neighbours in it


@dataclass(frozen=True, eq=False)
class Evidence:
    """A passage in pieces, and its title and headings as a piece (`names`).

    Matches are in the order of `question.all_words`.
    """

    question: Question
    hit: Hit
    pieces: Sequence[Piece]
    names: Piece
    is_table: bool  # see `Hit.is_table`, which reads every line

    def late(self, pieces: Iterable[Piece], words: Sequence[Word] | None = None) -> float:
        """The weighted mean over the words of the best match in these pieces or the names.

        The rows of a table are compared one by one, because each is about something else.
        """
        runs = [[piece] for piece in pieces] if self.is_table else [pieces]
        found = (self.mean([piece.matches for piece in (*run, self.names)], words) for run in runs)
        return max(found, default=self.mean([self.names.matches], words))

    def coverage(self, pieces: Iterable[Piece], words: Sequence[Word] | None = None) -> float:
        """The weighted share of the words that these pieces or the names contain, in [0, 1]."""
        return self.mean([piece.held for piece in (*pieces, self.names)], words)

    def mean(self, values: Sequence[Matches], words: Sequence[Word] | None = None) -> float:
        """The weighted mean over the words of the highest of their values."""
        best = [max(column) for column in zip(*values, strict=True)]
        weights = [word.weight * (words is None or word in words) for word in self.question.all_words]
        total = sum(weights)
        return sum(map(mul, weights, best)) / total if total else 0.0

    def weigh(self, piece: Piece, coverage: float) -> Sequence[float]:
        """How a piece matches each word, then how it contains it times `coverage`; weighted.

        The sum of the highest values of some pieces is their late interaction and `coverage` times theirs.
        """
        words = self.question.all_words
        total = sum(word.weight for word in words) or 1.0
        shares = [word.weight / total for word in words]
        return [*map(mul, piece.matches, shares), *(coverage * held for held in map(mul, piece.held, shares))]

    def is_version_of(self, other: Evidence) -> bool:
        """Whether both are versions of one text, which differ in a few words (Broder 1997)."""
        shared, either = self._pairs & other._pairs, self._pairs | other._pairs
        return len(shared) >= VERSION_SHARE * len(either)

    def defines(self, piece: Piece) -> bool:
        """Whether a piece defines the term that the question asks to explain."""
        return any(piece.start < at <= piece.end for at in self._definitions)

    @cached_property
    def _definitions(self) -> list[int]:
        return definitions(self.hit.full_text, self.question.term)

    @cached_property
    def _pairs(self) -> set[tuple[str, str]]:
        return {*pairwise(index_terms(self.hit.full_text))}

    @cached_property
    def terms(self) -> frozenset[str]:
        """The terms of the passage, its names, and the neighbouring turns of a conversation."""
        return frozenset(index_terms(f"{names_of(self.hit)} {self.hit.full_text} {self.hit.surroundings}"))


async def gather(
    question: Question, hits: Sequence[Hit], memory: TextComparer, seconds: float = inf
) -> list[Evidence]:
    """Compare a question with passages; by words alone if memory does not answer in time."""
    if not hits:
        return []
    spans = [[*piece_spans(hit.full_text, len(hit.context), wraps=not hit.is_csv)] for hit in hits]
    texts = [
        [f"{names_of(hit)} {_above_rows(hit)}", *(hit.full_text[start:end] for start, end in parts)]
        for hit, parts in zip(hits, spans, strict=True)
    ]
    flat = [text for one in texts for text in one]
    matches: Iterator[Matches] = repeat(())
    with suppress(RagChatError), anyio.move_on_after(seconds):
        compared = await memory.compare("", flat, [word.text for word in question.all_words])
        matches = iter(compared.matches or matches)
    found = []
    for hit, parts, own in zip(hits, spans, texts, strict=True):
        every = zip([(0, 0), *parts], own, matches, strict=False)
        names, *pieces = [_piece(span, text, question, match) for span, text, match in every]
        found.append(Evidence(question, hit, pieces, names, hit.is_table))
    return found


def _piece(span: Span, text: str, question: Question, matches: Matches) -> Piece:
    terms = index_terms(text)
    said = NAMED if _NAMING.match(text) else 1.0
    held = [said * word.share_in({*terms}) for word in question.all_words]
    best = [
        # With only a part of its digits it is another number or date, which is not a similar one.
        (share if share == 1 else share / 2) if word.has_digit else max(said * match, share)
        for word, match, share in zip(question.all_words, matches or held, held, strict=True)
    ]
    return Piece(*span, best, held, question.pairs_in(terms))


def names_of(hit: Hit) -> str:
    """The title and the headings of a passage, and the name of its file."""
    path = PurePosixPath(unquote(urlsplit(hit.uri).path.replace("_", "-")))  # 2023_07_08 is a day
    return f"{hit.title} {hit.heading} " + re.sub(r"(?:(?<!\d)-|-(?!\d)|[^\w-])+", " ", path.stem)


def _above_rows(hit: Hit) -> str:
    """The header of a table and what introduces it, which its rows do not repeat; "" for other passages."""
    if hit.context or not hit.is_table:
        return hit.context
    return hit.text[: hit.columns[1]] if hit.is_csv else " ".join(_ABOVE_ROWS.findall(hit.text))
