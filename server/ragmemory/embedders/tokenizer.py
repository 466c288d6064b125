"""Texts to token ids. Every part of a word is tokenized once and cached."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tokenizers import Tokenizer, normalizers

from ragmemory.embedders.byte_pairs import SPACE_MARK
from ragmemory.text.growing_array import GrowingArray
from ragmemory.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

# No token crosses a space or includes a digit with other characters, and none has both ASCII letters and
# ASCII punctuation. So a text can be split there, and its parts tokenized separately with the same result.
SEPARATE, LETTER, PUNCTUATION = 0, 1, 2
BONDS = bytes(
    SEPARATE if chr(i).isdigit() or chr(i).isspace() else LETTER if chr(i).isalpha() else PUNCTUATION
    for i in range(128)
).ljust(256, bytes([LETTER | PUNCTUATION]))
# ASCII in lower case, and all its white space as spaces.
LOWER = bytes(ord(" " if chr(i).isspace() else chr(i).lower()) if i < 128 else i for i in range(256))
# Parts per call of the tokenizer, one on each line: three times as fast as one call for each.
PARTS_PER_CALL = 300
END = "\n"


class Tokens(NamedTuple):
    """The tokens of several texts, one after the other."""

    ids: NDArray[np.int32]  # (t,)
    owners: Integers  # (t,) the number of each token's text, ascending


class _Parts(NamedTuple):
    """The parts of several texts."""

    owners: Integers  # (p,) the number of each part's text, ascending
    starts: Integers  # (p,) where the tokens of each part begin in `tokens`
    ends: Integers  # (p,) where they end
    tokens: NDArray[np.int32]


class CachingTokenizer:
    """Safe for several threads. It changes the tokenizer, which must not be used elsewhere."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        # "</s>" in a text is plain text. `_learn` writes SPACE_MARK itself, at the beginning of words only.
        tokenizer.encode_special_tokens = True
        tokenizer.normalizer = normalizers.Sequence([])
        self._tokenizer = tokenizer
        [self._end] = tokenizer.encode(END, add_special_tokens=False).ids
        self._lock = threading.Lock()
        self._clear()

    def counts(self, texts: Sequence[str]) -> Integers:
        """(n,) how many tokens each text has."""
        parts = self._look_up(texts)
        return np.bincount(parts.owners, parts.ends - parts.starts, len(texts)).astype(np.int64)

    def encode(self, texts: Sequence[str]) -> Tokens:
        """The tokens of all texts."""
        parts = self._look_up(texts)
        sizes = parts.ends - parts.starts
        ends = np.cumsum(sizes)
        places = np.arange(sizes.sum())
        places += np.repeat(parts.ends - ends, sizes)
        return Tokens(parts.tokens.take(places), np.repeat(parts.owners, sizes))

    def _look_up(self, texts: Sequence[str]) -> _Parts:
        lowered = [lower(text) for text in texts]
        with self._lock:
            if self._vocabulary.is_full:
                self._clear()
            numbers, owners, new = self._vocabulary.look_up(lowered)
            if new:
                try:
                    self._learn(new)
                except BaseException:
                    self._clear()  # Otherwise these parts would have numbers but no tokens.
                    raise
            bounds = self._bounds.rows
            return _Parts(owners, bounds.take(numbers), bounds.take(numbers + 1), self._tokens.rows)

    def _clear(self) -> None:
        self._vocabulary = Vocabulary(BONDS, with_space=True)
        # The tokens of part i are those from bounds[i] to bounds[i + 1].
        self._bounds = GrowingArray(np.empty(0, np.int64))
        self._bounds.append(np.zeros(1, np.int64))
        self._tokens = GrowingArray(np.empty(0, np.int32))

    def _learn(self, new: Sequence[bytes]) -> None:
        """Tokenize parts that have just been numbered. Arrays that other threads still read do not change."""
        lines = [part.decode().replace(" ", SPACE_MARK) + END for part in new]
        texts = ["".join(lines[i : i + PARTS_PER_CALL]) for i in range(0, len(lines), PARTS_PER_CALL)]
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        ids = np.fromiter(chain.from_iterable(encoding.ids for encoding in encodings), np.int32)
        is_end = ids == self._end
        self._bounds.append(len(self._tokens) + np.flatnonzero(is_end) - np.arange(len(new)))
        self._tokens.append(ids[~is_end])


def lower(text: str) -> bytes:
    """The text in lower case, because case carries little meaning, and with white space as spaces."""
    if text.isascii():
        return text.encode().translate(LOWER)
    return " ".join(text.lower().replace(SPACE_MARK, " ").split()).encode()
