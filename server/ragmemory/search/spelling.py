"""Correct misspelt words of a query by the words of this memory (Norvig 2007). Pure.

Only words that memory has never seen are corrected, by one edit: a letter deleted, inserted, replaced, or
transposed with the next. Most typing errors are one edit. The most frequent word of memory is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_lowercase

# Shorter words have too many neighbours, longer ones are not words.
MIN_LETTERS = 4
MAX_LETTERS = 24


def is_correctable(word: str) -> bool:
    """Whether a word consists of letters that can be edited, and enough of them."""
    return MIN_LETTERS <= len(word) <= MAX_LETTERS and word.isascii() and word.isalpha()


def corrected(word: str, frequencies: Callable[[Sequence[str]], Sequence[int]]) -> str | None:
    """The most frequent word that is one edit away; None if memory has none.

    `frequencies` gives the number of chunks that contain each of some words.
    """
    candidates = sorted(edits(word))
    counts = frequencies(candidates)
    best = max(range(len(candidates)), key=lambda place: counts[place])
    return candidates[best] if counts[best] else None


def edits(word: str) -> set[str]:
    """All strings that are one edit away, with the same first letter: few errors are made there."""
    first, rest = word[0], word[1:]
    splits = [(rest[:place], rest[place:]) for place in range(len(rest) + 1)]
    left_out = {head + tail[1:] for head, tail in splits if tail}
    swapped = {head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1}
    replaced = {head + letter + tail[1:] for head, tail in splits if tail for letter in ascii_lowercase}
    put_in = {head + letter + tail for head, tail in splits for letter in ascii_lowercase}
    return {first + ending for ending in left_out | swapped | replaced | put_in} - {word}
