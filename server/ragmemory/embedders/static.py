"""Texts → vectors by pooling static token vectors, many texts at once. Pure, but it remembers words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from ragmemory.embedders.unit import unit

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    Floats = NDArray[np.float32]
    Integers = NDArray[np.int64]

# No merge of the tokenizer crosses a space, so each word is tokenized once and remembered: ten times as fast.
# Words remembered before beginning anew (some 50 MB), and the characters after which a word is cut.
REMEMBERED = 200_000
LONGEST = 64
# Texts taken at once.
BATCH = 64
# Weight of the title's vector against the text's. nDCG@10 is flat from .4 to .8.
TITLE_WEIGHT = 0.8
# Scripts that the tokenizer spells letter by letter, which leaves no meaning to pool: Greek, Armenian to
# Arabic, India's to Myanmar's, Georgian, Ethiopic, Khmer. Questions in them are answered by words alone.
SPELLED = re.compile("[\u0370-\u03ff\u0530-\u07bf\u0900-\u10ff\u1200-\u139f\u1780-\u17ff]")
LETTER = re.compile(r"[^\W\d_]")

Weigh = Callable[[list[str]], Sequence[float]]


class StaticModel:
    """`vectors` is (tokens, d)."""

    def __init__(self, tokenizer: Tokenizer, vectors: NDArray[np.float16]) -> None:
        self.tokenizer = tokenizer
        self.vectors = vectors.astype(np.float32)
        self._known: dict[str, list[int]] = {}

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has."""
        return [sum(map(len, tokens)) for tokens in self._tokenize(texts)]

    def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> Floats:
        """(n, d) float32 of unit length; zeros where there is nothing to embed."""
        parts = [
            unit(self._pool(texts[i : i + BATCH]) + TITLE_WEIGHT * self._pool(titles[i : i + BATCH]))
            for i in range(0, len(texts), BATCH)
        ]
        return np.concatenate([np.empty((0, self.vectors.shape[1]), np.float32), *parts])

    def embed_query(self, text: str, weigh: Weigh) -> Floats | None:
        """(d,) float32 of unit length, every word's tokens weighed; None where there is nothing to embed."""
        if 2 * len(SPELLED.findall(text)) > len(LETTER.findall(text)):
            return None
        words = words_of(text)
        tokens = next(self._tokenize([text]))
        weights = np.repeat(np.asarray(weigh(words), np.float32), [len(ids) for ids in tokens])
        pooled = weights @ self.vectors[list(chain.from_iterable(tokens))] if tokens else weights
        return unit(pooled) if pooled.any() else None

    def _tokenize(self, texts: Sequence[str]) -> Iterator[list[list[int]]]:
        """For each text the tokens of each of its words."""
        for start in range(0, len(texts), BATCH):
            words = [words_of(text) for text in texts[start : start + BATCH]]
            known = self._known  # another thread may begin anew meanwhile
            try:
                tokens = [[known[word] for word in found] for found in words]
            except KeyError:
                known = self._learn(words)
                tokens = [[known[word] for word in found] for found in words]
            yield from tokens

    def _learn(self, words: Sequence[list[str]]) -> dict[str, list[int]]:
        """Remember the words that are new, all tokenized in one call."""
        if len(self._known) > REMEMBERED:
            self._known = {}
        known = self._known
        fresh = list(set(chain.from_iterable(words)).difference(known))
        encodings = self.tokenizer.encode_batch_fast(fresh, add_special_tokens=False)
        known.update((word, encoding.ids) for word, encoding in zip(fresh, encodings, strict=True))
        return known

    def _pool(self, texts: Sequence[str]) -> Floats:
        """(n, d) float32 of unit length: the sum of a text's tokens, each 1 + log(how often) times."""
        sums = np.zeros((len(texts), self.vectors.shape[1]), np.float32)
        tokenized = [list(chain.from_iterable(tokens)) for tokens in self._tokenize(texts)]
        sizes = [len(tokens) for tokens in tokenized]
        # Text and token as one number, so that all texts are counted at once.
        owners = np.repeat(np.arange(len(texts)) * len(self.vectors), sizes)
        tokens = np.fromiter(chain.from_iterable(tokenized), np.int64, len(owners))
        distinct, counts = np.unique(owners + tokens, return_counts=True)
        weights = (1 + np.log(counts)).astype(np.float32)
        bounds = np.searchsorted(distinct, np.arange(len(texts) + 1) * len(self.vectors)).tolist()
        distinct %= len(self.vectors)
        # But they are summed up one by one: a text's vectors stay in the processor's cache (5 times faster).
        for row, (start, end) in enumerate(pairwise(bounds)):
            sums[row] = weights[start:end] @ self.vectors.take(distinct[start:end], axis=0)
        return unit(sums)


def words_of(text: str) -> list[str]:
    """In lower case: it tells more of style than of meaning. Cut where a text has no spaces."""
    words = text.lower().split()
    if max(map(len, words), default=0) <= LONGEST:
        return words
    return [word[i : i + LONGEST] for word in words for i in range(0, len(word), LONGEST)]
