"""Extra words for identifiers, so that they are found whole and in parts.

`analysis.words` splits retry_after into its parts, but keeps retryAfter as one word: add the other form.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ragcommon.text.rules import PART_END

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# A longer word is not an identifier, but perhaps base64.
MAX_IDENTIFIER = 64
CACHED_IDENTIFIERS = 50_000
# Kinds of bytes. A word with non-ASCII letters is not an identifier.
BREAK, LOWER, UPPER, DIGIT, UNDERSCORE, OTHER = 0, 1, 2, 4, 8, 16


def _kind(byte: int) -> int:
    char = chr(byte)
    if not char.isascii():
        return OTHER
    if char.isalpha():
        return UPPER if char.isupper() else LOWER
    return DIGIT if char.isdigit() else UNDERSCORE if char == "_" else BREAK


KINDS = bytes(map(_kind, range(256)))
# Matches every word with parts: for a single short text far faster than `_candidates`.
JOINT = re.compile("_|[a-z0-9][A-Z]|[A-Z]{2}[a-z]")


def identifier_words(texts: Sequence[str]) -> list[bytes]:
    """For each text the words to add, separated by spaces.

    Numpy finds the few words that may have parts; a loop over all words takes four times as long.
    """
    encoded = [text.encode(errors="replace") for text in texts]
    data = b" ".join([b"", *encoded, b""])
    starts, ends = _candidates(data)
    forms = [_other_form(data[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    texts_end = np.cumsum([0, *(1 + len(text) for text in encoded)])
    bounds = np.searchsorted(starts, texts_end).tolist()
    return [b" ".join(filter(None, forms[first:last])) for first, last in pairwise(bounds)]


def _candidates(data: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n,) the starts and ends of words with an underscore or an inner capital; spaces enclose `data`."""
    kinds = np.frombuffer(data.translate(KINDS), np.uint8)
    upper = kinds == UPPER
    joints = kinds == UNDERSCORE
    joints[1:] |= upper[1:] & (kinds[:-1] & (LOWER | DIGIT) != 0)
    joints[2:] |= upper[:-2] & upper[1:-1] & (kinds[2:] == LOWER)
    breaks = np.flatnonzero(kinds == BREAK)
    words = np.searchsorted(breaks, np.flatnonzero(joints))
    # The numbers are sorted: this takes a fifth of the time of `np.unique`.
    words = words[np.flatnonzero(np.diff(words, prepend=-1))]
    starts, ends = breaks[words - 1] + 1, breaks[words]
    are_short = np.flatnonzero(ends - starts <= MAX_IDENTIFIER)
    return starts[are_short], ends[are_short]


@lru_cache(CACHED_IDENTIFIERS)
def _other_form(word: bytes) -> bytes:
    if not word.isascii():
        return b""
    if word.islower():  # Its parts are words already. The most frequent case, and three times as fast.
        inner = word.strip(b"_")
        return inner.replace(b"_", b"") if b"_" in inner else b""
    name = word.decode()
    parts_of_name = [part.lower() for part in re.split(PART_END, name) if part]
    if len(parts_of_name) < 2:
        return b""
    # The pieces between underscores are words already, and parts of one character are useless.
    known = name.lower().split("_")
    found = "".join(parts_of_name), *parts_of_name
    return " ".join(part for part in found if part not in known and len(part) > 1).encode()
