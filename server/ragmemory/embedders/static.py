"""Texts → vectors by pooling static token vectors, in numpy, many texts at once. Pure but for its cache of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from ragmemory.types import Embedding

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    Floats = NDArray[np.float32]
    Integers = NDArray[np.int64]

# No merge of the tokenizer crosses a space, so words can be tokenized once and remembered: 10 times as fast.
# The length is bounded for texts without spaces.
WORD = re.compile(r"\S{1,64}")
# Words remembered before starting anew: some 50 MB.
REMEMBERED = 200_000
# Windows of 60 words, one beginning every 30: the sum of two neighbouring steps.
STEP = 30
# Texts pooled at once: their token vectors stay within the cache.
BATCH = 32
# Weight of the title's vector against the text's.
TITLE_WEIGHT = 0.4


class StaticModel:
    """`vectors` is (tokens, d) float16."""

    def __init__(self, tokenizer: Tokenizer, vectors: NDArray[np.float16]) -> None:
        self.tokenizer = tokenizer
        self.vectors = vectors.astype(np.float32)
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[str, int] = {}
        self._tokens: list[list[int]] = []
        self._sizes: list[int] = []

    def _learn(self, words: list[list[str]]) -> None:
        """Tokenize the words that are new, all in one call."""
        if len(self._numbers) > REMEMBERED:
            self._forget()
        fresh = list(set(chain.from_iterable(words)).difference(self._numbers))
        for word, encoding in zip(
            fresh, self.tokenizer.encode_batch_fast(fresh, add_special_tokens=False), strict=True
        ):
            self._numbers[word] = len(self._tokens)
            self._tokens.append(encoding.ids)
            self._sizes.append(len(encoding.ids))

    def count_tokens(self, texts: list[str]) -> list[int]:
        words = [WORD.findall(text) for text in texts]
        self._learn(words)
        numbers, sizes = self._numbers, self._sizes
        return [sum([sizes[numbers[word]] for word in found]) for found in words]

    def embed_documents(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        return [
            embedding
            for i in range(0, len(texts), BATCH)
            for embedding in self._embed(texts[i : i + BATCH], titles[i : i + BATCH])
        ]

    def embed_query(self, text: str) -> Floats | None:
        words = [WORD.findall(text)]
        self._learn(words)
        tokens, _, _ = self._flatten(words)
        if not len(tokens):
            return None
        return unit(self.vectors[tokens].sum(axis=0))

    def _embed(self, texts: Sequence[str], titles: Sequence[str]) -> list[Embedding]:
        words = [WORD.findall(text) for text in chain(texts, titles)]
        self._learn(words)
        sums, steps, of_step = self._pool(words)
        n = len(texts)
        whole = unit(sums[:n]) + TITLE_WEIGHT * unit(sums[n:])
        pairs = np.flatnonzero((of_step[:-1] == of_step[1:]) & (of_step[1:] < n))
        windows = unit(steps[pairs] + steps[pairs + 1]).astype("<f2")
        bounds = np.searchsorted(of_step[pairs], np.arange(n + 1)).tolist()
        return [
            Embedding(vector.tobytes(), windows[bounds[i] : bounds[i + 1]].tobytes())
            for i, vector in enumerate(unit(whole).astype("<f2"))
        ]

    def _flatten(self, words: list[list[str]]) -> tuple[Integers, Integers, Integers]:
        """All tokens in a row, with the text and the step of 30 words each belongs to (steps numbered through)."""
        numbers = [self._numbers[word] for word in chain.from_iterable(words)]
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        tokens = np.fromiter(chain.from_iterable(map(self._tokens.__getitem__, numbers)), np.int64)
        sizes = np.fromiter(map(self._sizes.__getitem__, numbers), np.int64, len(numbers))
        text = np.repeat(np.arange(len(words)), lengths)
        within = np.arange(len(numbers)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        steps_before = np.cumsum(-(-lengths // STEP)) - (-(-lengths // STEP))
        step = steps_before[text] + within // STEP
        return tokens, np.repeat(text, sizes), np.repeat(step, sizes)

    def _pool(self, words: list[list[str]]) -> tuple[Floats, Floats, Integers]:
        """Per text the sum weighted by 1 + log(frequency), per step the plain sum, and the text of each step."""
        tokens, text, step = self._flatten(words)
        steps = np.zeros((int(step[-1]) + 1 if len(step) else 0, self.vectors.shape[1]), np.float32)
        of_step = np.zeros(len(steps), np.int64)
        sums = np.zeros((len(words), self.vectors.shape[1]), np.float32)
        if not len(tokens):
            return sums, steps, of_step
        of_step[step] = text
        starts = np.flatnonzero(np.diff(step, prepend=-1))
        steps[step[starts]] = np.add.reduceat(self.vectors[tokens], starts, axis=0)
        firsts = np.flatnonzero(np.diff(of_step, prepend=-1))
        sums[of_step[firsts]] = np.add.reduceat(steps, firsts, axis=0)
        # A token that occurs f times is in the sum f times and should be 1 + log f times.
        pair, counts = np.unique(text * len(self.vectors) + tokens, return_counts=True)
        pair, counts = pair[counts > 1], counts[counts > 1]
        if len(pair):
            excess = (1 + np.log(counts) - counts).astype(np.float32)[:, None] * self.vectors[
                pair % len(self.vectors)
            ]
            owners = pair // len(self.vectors)
            starts = np.flatnonzero(np.diff(owners, prepend=-1))
            sums[owners[starts]] += np.add.reduceat(excess, starts, axis=0)
        return sums, steps, of_step


def unit(vectors: Floats) -> Floats:
    """Scaled to length 1 along the last axis; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norms > 0, norms, np.float32(1))
