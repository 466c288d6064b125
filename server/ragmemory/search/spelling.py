"""Correct misspelt words of a query by the words of this memory (Norvig 2007). Pure.

Only words that memory has never seen are corrected, by one edit: a letter deleted, inserted, replaced, or
transposed with the next. Most typing errors are one edit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_lowercase

# Shorter words have too many neighbours, also in other languages (noon, non); longer strings are no words.
MIN_LETTERS = 4
MAX_LETTERS = 24
# In shorter words a replaced letter (tuner, toner) or another ending (scarf, scar) usually makes another
# word. There letters are only deleted, inserted or transposed, and only inside the word.
MIN_LETTERS_REPLACED = 7
MAX_CANDIDATES = 5


def is_correctable(word: str) -> bool:
    """Whether a word consists of letters that can be edited, and enough of them."""
    return MIN_LETTERS <= len(word) <= MAX_LETTERS and word.isascii() and word.isalpha()


def candidates(word: str, frequencies: Callable[[Sequence[str]], Sequence[int]]) -> list[str]:
    """The most frequent words of enough letters that are one edit away, the most frequent first.

    `frequencies` gives the number of chunks that contain each of some words.
    """
    found = [other for other in edits(word) if len(other) >= MIN_LETTERS]
    counted = [(count, other) for count, other in zip(frequencies(found), found, strict=True) if count]
    counted.sort(key=lambda pair: (-pair[0], pair[1]))
    return [other for _, other in counted[:MAX_CANDIDATES]]


def edits(word: str) -> set[str]:
    """The strings that are one plausible edit away, with the same first letter: few errors are made there."""
    is_long = len(word) >= MIN_LETTERS_REPLACED
    first, rest, end = (word[0], word[1:], "") if is_long else (word[0], word[1:-1], word[-1])
    splits = [(rest[:place], rest[place:]) for place in range(len(rest) + 1)]
    left_out = {head + tail[1:] for head, tail in splits if tail}
    swapped = {head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1}
    put_in = {head + letter + tail for head, tail in splits for letter in ascii_lowercase}
    found = left_out | swapped | put_in
    if is_long:
        found |= {head + letter + tail[1:] for head, tail in splits if tail for letter in ascii_lowercase}
    return {first + ending + end for ending in found} - {word}
