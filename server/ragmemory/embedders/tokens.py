"""Texts → tokens, every part of a word tokenized once and remembered. No vectors here."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tokenizers import normalizers

from ragmemory.search.index.growing_array import Matrix
from ragmemory.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    Integers = NDArray[np.int64]

# What the tokenizer writes for a space.
SPACE = "▁"
# No merge of the tokenizer crosses a space or touches a digit, and none is of both ASCII letters and ASCII
# punctuation: so these are tokenized apart from each other, with the same result.
ALONE, LETTER, PUNCTUATION = 0, 1, 2
BONDS = bytes(
    ALONE if chr(i).isdigit() or chr(i).isspace() else LETTER if chr(i).isalpha() else PUNCTUATION
    for i in range(128)
).ljust(256, bytes([LETTER | PUNCTUATION]))
# ASCII in lower case, and all its white space as spaces.
LOWER = bytes(ord(" " if chr(i).isspace() else chr(i).lower()) if i < 128 else i for i in range(256))
# Parts are tokenized that many in one text, each as a line: three times as fast as one by one.
LEARNED = 300
END = "\n"


class Tokens(NamedTuple):
    """The tokens of several texts, one after the other."""

    ids: NDArray[np.int32]  # (t,)
    owners: Integers  # (t,) the number of the text that each is of, ascending


class _Parts(NamedTuple):
    """The parts of several texts."""

    owners: Integers  # (p,) the number of the text that each is of, ascending
    starts: Integers  # (p,) where the tokens of each begin in `tokens`, and where they end
    ends: Integers
    tokens: NDArray[np.int32]


class TokenMemory:
    """Safe for several threads. Takes the tokenizer for itself."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        # "</s>" in a text is a text. Spaces are written as the tokenizer does, but only where words begin.
        tokenizer.encode_special_tokens = True
        tokenizer.normalizer = normalizers.Sequence([])
        self._tokenizer = tokenizer
        [self._end] = tokenizer.encode(END, add_special_tokens=False).ids
        self._lock = threading.Lock()
        self._forget()

    def counts(self, texts: Sequence[str]) -> Integers:
        """(n,) how many tokens each text has."""
        parts = self._look_up(texts)
        return np.bincount(parts.owners, parts.ends - parts.starts, len(texts)).astype(np.int64)

    def tokens(self, texts: Sequence[str]) -> Tokens:
        """Of all texts."""
        parts = self._look_up(texts)
        sizes = parts.ends - parts.starts
        ends = np.cumsum(sizes)
        places = np.arange(sizes.sum()) + np.repeat(parts.ends - ends, sizes)
        return Tokens(parts.tokens[places], np.repeat(parts.owners, sizes))

    def _look_up(self, texts: Sequence[str]) -> _Parts:
        lowered = [lower(text) for text in texts]
        with self._lock:
            if self._vocabulary.is_full:
                self._forget()
            numbers, owners, fresh = self._vocabulary.look_up(lowered)
            if fresh:
                try:
                    self._learn(fresh)
                except BaseException:
                    self._forget()  # else these would have numbers and no tokens
                    raise
            bounds = self._bounds.recent
            return _Parts(owners, bounds[numbers], bounds[numbers + 1], self._tokens.recent)

    def _forget(self) -> None:
        self._vocabulary = Vocabulary(BONDS, with_space=True)
        # The tokens of part i are those from bounds[i] to bounds[i + 1].
        self._bounds = Matrix(np.empty(0, np.int64))
        self._bounds.add(np.zeros(1, np.int64))
        self._tokens = Matrix(np.empty(0, np.int32))

    def _learn(self, fresh: Sequence[bytes]) -> None:
        """Tokenize parts that have numbers already. What others still read does not change."""
        lines = [part.decode().replace(" ", SPACE) + END for part in fresh]
        texts = ["".join(lines[i : i + LEARNED]) for i in range(0, len(lines), LEARNED)]
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        ids = np.fromiter(chain.from_iterable(encoding.ids for encoding in encodings), np.int32)
        is_end = ids == self._end
        self._bounds.add(len(self._tokens) + np.flatnonzero(is_end) - np.arange(len(fresh)))
        self._tokens.add(ids[~is_end])


def lower(text: str) -> bytes:
    """In lower case, as that tells more of style than of meaning; all white space is spaces."""
    if text.isascii():
        return text.encode().translate(LOWER)
    return " ".join(text.lower().replace(SPACE, " ").split()).encode()
