"""Hashes → numbers 0, 1, 2 … in the order they first came: a hash table whose look-ups are numpy's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Keys = NDArray[np.uint64]

# Places of a new table, as a power of two.
BITS = 14
# A key stands for a word, and 0 for none: one in 2^64 is numbered anew each time it comes.
NONE = 0


class Numbering:
    """Open addressing with linear probing, at most half full."""

    def __init__(self) -> None:
        self._resize(BITS)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def numbers(self, keys: Keys) -> tuple[Integers, Integers]:
        """(n,) of each key its number; and where in `keys` there is an example of each that is new."""
        places = self._find(keys)
        new = np.flatnonzero(self._keys[places] == NONE)
        before = self._count
        if len(new):
            self._insert(np.unique(keys[new]))
            places = self._find(keys)
        numbers = self._numbers[places]
        examples = np.empty(self._count - before, np.int64)
        examples[numbers[new] - before] = new
        return numbers, examples

    def _find(self, keys: Keys) -> Integers:
        """For each key its place, or the empty one where the search for it ends."""
        places = (keys >> np.uint64(64 - self._bits)).astype(np.int64)
        rest = np.flatnonzero(self._keys[places] != keys)
        while len(rest):
            rest = rest[self._keys[places[rest]] != NONE]
            places[rest] = (places[rest] + 1) & (len(self._keys) - 1)
            rest = rest[self._keys[places[rest]] != keys[rest]]
        return places

    def _insert(self, keys: Keys) -> None:
        """Distinct ones that are not there yet."""
        count = self._count + len(keys)
        if 2 * count > len(self._keys):
            old = self._keys[self._keys != NONE]
            numbers = self._numbers[self._keys != NONE]
            self._resize((2 * count).bit_length())
            self._put(old, numbers)
        self._put(keys, np.arange(self._count, count))
        self._count = count

    def _put(self, keys: Keys, numbers: Integers) -> None:
        rest = np.arange(len(keys))
        while len(rest):
            places = self._find(keys[rest])
            # Of several that end at the same empty place the first one gets it, and the others try again.
            _, first = np.unique(places, return_index=True)
            self._keys[places[first]] = keys[rest[first]]
            self._numbers[places[first]] = numbers[rest[first]]
            rest = np.delete(rest, first)

    def _resize(self, bits: int) -> None:
        self._bits = bits
        self._keys = np.full(1 << bits, NONE, np.uint64)
        self._numbers = np.zeros(1 << bits, np.int64)
