"""The words of many texts, found, hashed and numbered in numpy: three times as fast as one by one in Python.

What a word is, callers say by a table of bytes; what is known of each word is theirs as well.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragmemory.text.numbering import Numbering

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

SPACE = b" "
# Bytes taken at once: what is made of them hardly leaves the processor's cache.
BLOCK = 1 << 18
# Bounds of what is worth remembering (some 20 MB); one call may go beyond, and the next begins anew.
MOST_WORDS = 200_000
MOST_BYTES = 8_000_000
# A word is hashed by eights, with two odd numbers without meaning; a longer one than this by Python.
LONG = 64
FACTORS = np.array([0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93], np.uint64)
# Another in every process: else a text could be written whose words are taken for others, or all meet.
SECRET = np.frombuffer(os.urandom(8), np.uint64)[0]
# The first 0 … 8 bytes of eight.
MASKS = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


class Words(NamedTuple):
    """The words of several texts, one text after the other."""

    numbers: Integers  # (w,)
    owners: Integers  # (w,) the number of the text that each is of, ascending
    fresh: list[bytes]  # those that got a number just now, in its order


class Vocabulary:
    """Every distinct word gets the next number when it first comes. Not safe for several threads.

    Words are told apart by 64 bits of hash alone: of 200,000 two are taken for one once in a billion times.

    `bonds` is a table of 256 bytes: neighbours whose bonds have a bit in common are of one word. Spaces are
    of no word. `with_space`: a word after a space begins with it, and is another than the same one elsewhere.
    """

    def __init__(self, bonds: bytes, *, with_space: bool = False) -> None:
        self._bonds = bonds
        self._with_space = with_space
        self._numbering = Numbering()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._numbering)

    @property
    def is_full(self) -> bool:
        """Time to begin a new one."""
        return len(self) > MOST_WORDS or self._bytes > MOST_BYTES

    def look_up(self, texts: Sequence[bytes]) -> Words:
        none = np.empty(0, np.int64)
        numbers, counts, fresh = [none], [none], []
        for block in blocks(texts):
            data, starts, ends, sizes = self._scan(block)
            found, examples = self._numbering.numbers(hashes(data, starts, ends))
            new = [data[start:end] for start, end in zip(starts[examples], ends[examples], strict=True)]
            self._bytes += sum(map(len, new))
            numbers.append(found)
            counts.append(sizes)
            fresh += new
        owners = np.repeat(np.arange(len(texts)), np.concatenate(counts))
        return Words(np.concatenate(numbers), owners, fresh)

    def _scan(self, texts: Sequence[bytes]) -> tuple[bytes, Integers, Integers, Integers]:
        """The texts as one, where words begin and end in it, and how many there are in each text."""
        data = SPACE + SPACE.join([*texts, SPACE])
        bytes_ = np.frombuffer(data, np.uint8)
        bonds = np.frombuffer(data.translate(self._bonds), np.uint8)
        # The first byte and the last one are spaces.
        bounds = np.flatnonzero((bonds[1:] & bonds[:-1]) == 0) + 1
        words = np.flatnonzero(bytes_[bounds] != SPACE[0])
        starts, ends = bounds[words], bounds[words + 1]
        if self._with_space:
            starts -= bytes_[starts - 1] == SPACE[0]
        texts_end = np.cumsum([1 + len(text) for text in texts])
        return data, starts, ends, np.diff(np.searchsorted(ends, texts_end, side="right"), prepend=0)


def blocks(texts: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """As many as have BLOCK bytes at a time."""
    start = size = 0
    for end, text in enumerate(texts, 1):
        size += len(text)
        if size >= BLOCK or end == len(texts):
            yield texts[start:end]
            start, size = end, 0


def hashes(data: bytes, starts: Integers, ends: Integers) -> NDArray[np.uint64]:
    """(w,) of each range data[start:end]. Not the same in every process."""
    _, other = FACTORS
    padded = data.ljust(len(data) + 8)
    # At every byte the eight that begin there.
    eights = np.ndarray((len(data),), "<u8", padded, strides=(1,))
    sizes = ends - starts
    keys: NDArray[np.uint64] = (eights[starts] & MASKS[np.minimum(sizes, 8)]) ^ (
        sizes.astype(np.uint64) * other
    )
    keys = mixed(keys ^ SECRET)
    rest = np.flatnonzero(sizes > 8)
    for at in range(8, LONG, 8):
        more = eights[starts[rest] + at] & MASKS[np.minimum(sizes[rest] - at, 8)]
        keys[rest] = mixed(keys[rest] ^ more)
        rest = rest[sizes[rest] > at + 8]
    for word in rest.tolist():
        keys[word] ^= np.uint64(hash(data[starts[word] : ends[word]]) & 0xFFFF_FFFF_FFFF_FFFF)
    return mixed(keys)


def mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit into about every one: multiplied, which mixes the high ones best, and these into low ones."""
    for factor in FACTORS:
        keys = keys * factor
        keys ^= keys >> np.uint64(32)
    return keys
