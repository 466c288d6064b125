"""Words as numbers, so that what is known of them lies in arrays. What that is, is not known here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, count, islice
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Bounds of what is worth remembering (some 40 MB): a text without spaces is one word.
MOST_WORDS = 200_000
MOST_CHARACTERS = 8_000_000


class Numbering:
    """Every word gets the next number when it first comes."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._taken = 0
        self._characters = 0

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def is_full(self) -> bool:
        """Time to begin a new one."""
        return len(self) > MOST_WORDS or self._characters > MOST_CHARACTERS

    def numbers(self, texts: Sequence[list[str]]) -> NDArray[np.int64]:
        """Of the words of all texts, one after the other."""
        each = map(self._numbers.__getitem__, chain.from_iterable(texts))
        return np.fromiter(each, np.int64, sum(map(len, texts)))

    def take_fresh(self) -> list[str]:
        """The words that came since the last time, in the order of their numbers."""
        fresh = list(islice(reversed(self._numbers), len(self) - self._taken))[::-1]
        self._taken = len(self)
        self._characters += sum(map(len, fresh))
        return fresh
