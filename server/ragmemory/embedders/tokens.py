"""Texts → tokens, every word tokenized once and remembered. No vectors here."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragmemory.indexes.matrix import Matrix
from ragmemory.numbering import Numbering

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    Integers = NDArray[np.int64]

# What the tokenizer writes for a space. No merge crosses one, so words are tokenized apart from each other.
SPACE = "▁"
# The characters after which a word is cut: a text without spaces is one word.
LONGEST = 64
# Words tokenized as one text: three times as fast as each alone, and the tokenizer takes several at once.
LEARNED = 300


class Tokens(NamedTuple):
    """The tokens of several texts, one after the other."""

    ids: NDArray[np.int32]  # (t,)
    owners: Integers  # (t,) the number of the text that each is of, ascending


class _Words(NamedTuple):
    """The words of several texts."""

    owners: Integers  # (w,) the number of the text that each is of, ascending
    starts: Integers  # (w,) where the tokens of each begin in `tokens`, and where they end
    ends: Integers
    tokens: NDArray[np.int32]


class TokenMemory:
    """Safe for several threads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        # "</s>" in a text is a text.
        tokenizer.encode_special_tokens = True
        self.tokenizer = tokenizer
        names = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        self._begins_word = np.array([name.startswith(SPACE) for name, _ in names])
        self._lock = threading.Lock()
        self._forget()

    def counts(self, texts: Sequence[str]) -> Integers:
        """(n,) how many tokens each text has."""
        words = self._look_up(texts)
        return np.bincount(words.owners, words.ends - words.starts, len(texts)).astype(np.int64)

    def tokens(self, texts: Sequence[str]) -> Tokens:
        """Of all texts."""
        words = self._look_up(texts)
        sizes = words.ends - words.starts
        ends = np.cumsum(sizes)
        places = np.arange(sizes.sum()) + np.repeat(words.ends - ends, sizes)
        return Tokens(words.tokens[places], np.repeat(words.owners, sizes))

    def _look_up(self, texts: Sequence[str]) -> _Words:
        words = [words_of(text) for text in texts]
        owners = np.repeat(np.arange(len(texts)), [len(found) for found in words])
        with self._lock:
            if self._numbering.is_full:
                self._forget()
            numbers = self._numbering.numbers(words)
            if fresh := self._numbering.take_fresh():
                try:
                    self._learn(fresh)
                except BaseException:
                    self._forget()  # else these words would have numbers and no tokens
                    raise
            bounds = self._bounds.recent
            return _Words(owners, bounds[numbers], bounds[numbers + 1], self._tokens.recent)

    def _forget(self) -> None:
        self._numbering = Numbering()
        # The tokens of word i are those from bounds[i] to bounds[i + 1].
        self._bounds = Matrix(np.empty(0, np.int64))
        self._bounds.add(np.zeros(1, np.int64))
        self._tokens = Matrix(np.empty(0, np.int32))

    def _learn(self, words: Sequence[str]) -> None:
        """Tokenize words that have numbers already. What others still read does not change."""
        parts = [[word[i : i + LONGEST] for i in range(0, len(word), LONGEST)] for word in words]
        flat = list(chain.from_iterable(parts))
        texts = [" ".join(flat[i : i + LEARNED]) for i in range(0, len(flat), LEARNED)]
        encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        tokens = np.fromiter(chain.from_iterable(encoding.ids for encoding in encodings), np.int32)
        begins = np.flatnonzero(self._begins_word[tokens])
        counts = np.array([len(cut) for cut in parts])
        ends = np.append(begins, len(tokens))[np.cumsum(counts)]
        self._bounds.add(len(self._tokens) + ends)
        self._tokens.add(tokens)


def words_of(text: str) -> list[str]:
    """In lower case: it tells more of style than of meaning."""
    return text.lower().replace(SPACE, " ").split()
