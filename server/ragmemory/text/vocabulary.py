"""Number the words of many texts with numpy, three times as fast as a Python loop.

A table of bytes defines words. Callers store their data about each word by its number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Keys = NDArray[np.uint64]

SPACE = b" "
# Bonds that make every byte except the space a part of a word.
SPACED = bytes(byte != SPACE[0] for byte in range(256))
# Bytes scanned at a time, so that most intermediate arrays stay in the processor's cache.
BLOCK = 1 << 18
# Limits of a vocabulary (about 20 MB). A single call may exceed them.
MAX_WORDS = 200_000
MAX_BYTES = 8_000_000
# Words are hashed eight bytes at a time, with two arbitrary odd factors; bytes beyond LONG with `hash`.
LONG = 64
FACTORS = np.array([0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93], np.uint64)
# Random per process, so that no text can be crafted from colliding words.
SECRET = np.frombuffer(os.urandom(8), np.uint64)[0]
# The first 0 … 8 bytes of eight.
MASKS = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
# Slots of a new hash table, as a power of two.
TABLE_BITS = 14
# The key of an empty slot. A word with this hash, one in 2^64, gets a new number each time.
EMPTY = 0


class Words(NamedTuple):
    """The words of several texts, one text after the other."""

    numbers: Integers  # (w,)
    owners: Integers  # (w,) the number of each word's text, ascending
    new: list[bytes]  # the words numbered by this call, in order


class Vocabulary:
    """Numbers distinct words in the order of their first occurrence. Not thread-safe.

    Words are identified by 64-bit hashes: among 200,000, two collide in one of a billion vocabularies.

    `bonds` is a table of 256 bytes: neighbouring bytes belong to one word if their entries share a bit.
    Spaces are in no word. `with_space`: a word includes a space before it, and so differs from the same word
    elsewhere.
    """

    def __init__(self, bonds: bytes, *, with_space: bool = False) -> None:
        self._bonds = bonds
        self._with_space = with_space
        self._table = HashTable()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._table)

    @property
    def is_full(self) -> bool:
        """Whether to start a new vocabulary."""
        return len(self) > MAX_WORDS or self._bytes > MAX_BYTES

    def look_up(self, texts: Sequence[bytes]) -> Words:
        """Number all words of some texts."""
        none = np.empty(0, np.int64)
        numbers, counts, new = [none], [none], []
        for block in blocks(texts):
            data, starts, ends, sizes = self._scan(block)
            found, examples = self._table.numbers(range_hashes(data, starts, ends))
            fresh = [data[start:end] for start, end in zip(starts[examples], ends[examples], strict=True)]
            self._bytes += sum(map(len, fresh))
            numbers.append(found)
            counts.append(sizes)
            new += fresh
        owners = np.repeat(np.arange(len(texts)), np.concatenate(counts))
        return Words(np.concatenate(numbers), owners, new)

    def _scan(self, texts: Sequence[bytes]) -> tuple[bytes, Integers, Integers, Integers]:
        """The joined texts, the start and end of each word in them, and the number of words per text."""
        data = SPACE + SPACE.join([*texts, SPACE])
        is_space = np.frombuffer(data, np.uint8) == SPACE[0]
        bonds = np.frombuffer(data.translate(self._bonds), np.uint8)
        # For all bytes except the first. The first and the last one are spaces.
        is_bound = (bonds[1:] & bonds[:-1]) == 0
        starts = np.flatnonzero(is_bound & ~is_space[1:])
        ends = np.flatnonzero(is_bound & ~is_space[:-1])
        starts += 1
        ends += 1
        if self._with_space:
            starts -= is_space.take(starts - 1)
        texts_end = np.cumsum([1 + len(text) for text in texts])
        return data, starts, ends, np.diff(np.searchsorted(ends, texts_end, side="right"), prepend=0)


class HashTable:
    """Maps keys to 0, 1, 2 … in the order of their first occurrence, vectorized in numpy.

    Open addressing with linear probing, at most half full.
    """

    def __init__(self) -> None:
        self._resize(TABLE_BITS)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def numbers(self, keys: Keys) -> tuple[Integers, Integers]:
        """(n,) the number of each key; and for each new number an index in `keys`."""
        slots = self._find(keys)
        new = np.flatnonzero(self._keys.take(slots) == EMPTY)
        before = self._count
        numbers = self._numbers.take(slots)
        if len(new):
            # With `return_index` numpy does not import its masked arrays, which takes 20 ms of a start.
            self._insert(np.unique(keys[new], return_index=True)[0])
            numbers[new] = self._numbers[self._find(keys[new])]
        examples = np.empty(self._count - before, np.int64)
        examples[numbers[new] - before] = new
        return numbers, examples

    def _find(self, keys: Keys) -> Integers:
        """(n,) the slot of each key, or the empty slot where the search for it ended."""
        slots = (keys >> np.uint64(64 - self._bits)).view(np.int64)
        rest = np.flatnonzero(self._keys.take(slots) != keys)
        while len(rest):
            rest = rest[self._keys[slots[rest]] != EMPTY]
            slots[rest] = (slots[rest] + 1) & (len(self._keys) - 1)
            rest = rest[self._keys[slots[rest]] != keys[rest]]
        return slots

    def _insert(self, keys: Keys) -> None:
        """Number distinct keys that are not in the table."""
        count = self._count + len(keys)
        if 2 * count > len(self._keys):
            old = self._keys[self._keys != EMPTY]
            numbers = self._numbers[self._keys != EMPTY]
            self._resize((2 * count).bit_length())
            self._put(old, numbers)
        self._put(keys, np.arange(self._count, count))
        self._count = count

    def _put(self, keys: Keys, numbers: Integers) -> None:
        rest = np.arange(len(keys))
        while len(rest):
            slots = self._find(keys[rest])
            # Where several keys claim one empty slot, the first gets it and the others try again.
            _, first = np.unique(slots, return_index=True)
            self._keys[slots[first]] = keys[rest[first]]
            self._numbers[slots[first]] = numbers[rest[first]]
            rest = np.delete(rest, first)

    def _resize(self, bits: int) -> None:
        self._bits = bits
        self._keys = np.full(1 << bits, EMPTY, np.uint64)
        self._numbers = np.zeros(1 << bits, np.int64)


def blocks(texts: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Groups of texts of about BLOCK bytes."""
    start = size = 0
    for end, text in enumerate(texts, 1):
        size += len(text)
        if size >= BLOCK or end == len(texts):
            yield texts[start:end]
            start, size = end, 0


def range_hashes(data: bytes, starts: Integers, ends: Integers) -> NDArray[np.uint64]:
    """(w,) the hash of each range data[start:end]. It differs from process to process."""
    _, other = FACTORS
    padded = data.ljust(len(data) + 8)
    # The eight bytes from every offset on.
    eights = np.ndarray((len(data),), "<u8", padded, strides=(1,))
    sizes = ends - starts
    # `take` is up to twice as fast as an array of indexes in brackets; operations in place are, too.
    keys: NDArray[np.uint64] = eights.take(starts)
    keys &= MASKS.take(sizes, mode="clip")
    keys ^= sizes.astype(np.uint64) * other
    keys ^= SECRET
    keys = mixed(keys)
    rest = np.flatnonzero(sizes > 8)
    for at in range(8, LONG, 8):
        more = eights[starts[rest] + at] & MASKS.take(sizes[rest] - at, mode="clip")
        keys[rest] = mixed(keys[rest] ^ more)
        rest = rest[sizes[rest] > at + 8]
    for word in rest.tolist():
        keys[word] ^= np.uint64(hash(data[starts[word] : ends[word]]) & 0xFFFF_FFFF_FFFF_FFFF)
    return mixed(keys)


def mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix all bits: multiplication mixes the high bits best, so they are folded into the low ones."""
    for factor in FACTORS:
        keys = keys * factor
        keys ^= keys >> np.uint64(32)
    return keys
