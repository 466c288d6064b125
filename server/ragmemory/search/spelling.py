"""Correct misspelt words of a query by the words of this memory (Norvig 2007). Pure.

Only words that memory has never seen are corrected, by one edit: a letter deleted, inserted, replaced, or
transposed with the next. Most typing errors are one edit.

A word that memory does not have may be correct all the same, or belong to another language. Two signs tell
that it is misspelt: it is long, for a short word has many neighbours by chance; and the embedder cuts it into
more pieces than its correction, because the vocabulary was learnt from correct words. British and American
spellings of one word, such as licence and license, need no such sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from string import ascii_lowercase

# Shorter words have too many neighbours, also in other languages (noon, non); longer strings are no words.
MIN_LETTERS = 4
MAX_LETTERS = 24
# Letters that a word must have to be corrected, one less for each piece that the correction saves. Common
# errors are letters left out, doubled or transposed. Of 3,000 misspelt words 61 % are corrected, and of
# 12,000 correct words in four languages 3 %; without these limits 64 and 14 %.
MIN_LETTERS_COMMON = 6
MIN_LETTERS_OTHER = 9
MAX_CANDIDATES = 5
_ENDING = r"(?=e[drs]?\Z|ing\Z|ations?\Z)"
# British and American spellings, in both directions.
_SPELLINGS = [
    (re.compile(pattern), other)
    for pattern, other in (
        (r"(?<=[a-z]{3})our", "or"),
        (r"(?<=[a-z]{3})or", "our"),
        (r"(?<=[a-z]{2})tre(?=s?\Z)", "ter"),
        (r"(?<=[a-z]{2})ter(?=s?\Z)", "tre"),
        (rf"(?<=[a-z]{{3}}[iy])s{_ENDING}", "z"),
        (rf"(?<=[a-z]{{3}}[iy])z{_ENDING}", "s"),
        (r"(?<=[a-z]{3}[aeiou]l)l(?=ed|ing|er)", ""),
        (r"(?<=[a-z]{3}[aeiou]l)(?=ed|ing|er)", "l"),
        (r"(?<=^licen|^defen|^offen)c", "s"),
        (r"(?<=^licen|^defen|^offen)s", "c"),
        (r"(?<=log)ue(?=s?\Z)", ""),
        (r"(?<=log)(?=s?\Z)", "ue"),
    )
]


def is_correctable(word: str, pieces: Callable[[str], int]) -> bool:
    """Whether a word may be misspelt, and consists of letters that can be edited, and enough of them.

    `pieces`: see `Embedder.pieces`.
    """
    is_word = MIN_LETTERS <= len(word) <= MAX_LETTERS and word.isascii() and word.isalpha()
    return is_word and (pieces(word) != 1 or bool(other_spellings(word)))


def candidates(
    word: str, frequencies: Callable[[Sequence[str]], Sequence[int]], pieces: Callable[[str], int]
) -> list[str]:
    """The most frequent words of enough letters that are one edit away, the most frequent first.

    `frequencies` gives the number of chunks that contain each of some words.
    """
    spelt = other_spellings(word)
    similar = edits(word) if pieces(word) != 1 else spelt
    found = [other for other in similar if len(other) >= MIN_LETTERS]
    counted = [
        (count, other)
        for count, other in zip(frequencies(found), found, strict=True)
        if count
        and (other in spelt or len(word) + pieces(word) - pieces(other) >= least_letters(word, other))
    ]
    counted.sort(key=lambda pair: (-pair[0], pair[1]))
    return [other for _, other in counted[:MAX_CANDIDATES]]


def other_spellings(word: str) -> set[str]:
    """A word as it would be spelt on the other side of the Atlantic, if it is spelt by these rules."""
    return {pattern.sub(other, word) for pattern, other in _SPELLINGS} - {word}


def least_letters(word: str, other: str) -> int:
    """How many letters a word must have for this correction, if it saves no pieces."""
    # Two letters transposed at the end may be French instead (chambre).
    is_transposed = sorted(word) == sorted(other) and word[-1] == other[-1]
    is_common = is_transposed or len(word) < len(other) or undoubled(word) == undoubled(other)
    return MIN_LETTERS_COMMON if is_common else MIN_LETTERS_OTHER


def undoubled(word: str) -> str:
    return "".join(letter for letter, _ in groupby(word))


def edits(word: str) -> set[str]:
    """The strings that are one plausible edit away, or another spelling.

    The first letter stays, since few errors are made there; so does the last unless it is transposed, since
    another ending makes another word (scarf, scar).
    """
    first, rest, end = word[0], word[1:-1], word[-1]
    splits = [(rest[:place], rest[place:]) for place in range(len(rest) + 1)]
    left_out = {head + tail[1:] for head, tail in splits if tail}
    put_in = {head + letter + tail for head, tail in splits for letter in ascii_lowercase}
    replaced = {head + letter + tail[1:] for head, tail in splits if tail for letter in ascii_lowercase}
    swapped = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(1, len(word) - 1)}
    return (
        {first + inside + end for inside in left_out | put_in | replaced} | swapped | other_spellings(word)
    ) - {word}
