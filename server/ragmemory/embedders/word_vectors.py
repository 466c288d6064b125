"""The vectors of single words, for late interaction between the words of a question and each text."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from ragmemory.embedders.byte_pairs import BytePairEncoder
from ragmemory.embedders.unit import unit
from ragmemory.text.analysis import ASCII
from ragmemory.text.growing_array import GrowingArray
from ragmemory.text.vocabulary import SPACE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# Words whose vectors are cached (20 MB): passages of different searches share most of their words.
CACHED_WORDS = 20_000
# Longer sequences of bytes are not words.
MAX_WORD_BYTES = 64
# Pieces of a word that are used: few words have more.
PIECES = 3
# Punctuation and symbols in UTF-8: U+0080 to U+00BF, U+2000 to U+2EFF, U+3000 to U+303F.
MARKS = re.compile(rb"\xc2.|\xe2[\x80-\xbb].|\xe3\x80.", re.DOTALL)


class WordVectors:
    """`tokens` is (tokens, d) float16, and may be mapped from a file: few rows of it are read.

    Safe for several threads.
    """

    def __init__(self, tokens: NDArray[np.float16], encoder: BytePairEncoder) -> None:
        self._tokens = tokens
        self._encoder = encoder
        self._lock = threading.Lock()
        self._forget()

    def matches(self, words: Sequence[str], texts: Sequence[str]) -> Floats:
        """(texts, words) the highest cosine of each word with a word of each text; 0 if that has none.

        Late interaction (Khattab and Zaharia 2020), here of static vectors: one vector for a whole text blurs
        the word that answers.
        """
        matches = np.zeros((len(texts), len(words)), np.float32)
        asked = np.zeros((len(words), self._tokens.shape[1]), np.float32)
        parts, found = [words_of(word) for word in words], [{*words_of(text)} for text in texts]
        with self._lock:
            self._learn({*chain.from_iterable([*parts, *found])})
            vectors, row = self._vectors.rows, self._rows.__getitem__
            of_words = [[*map(row, part)] for part in parts]
            of_texts = [[*map(row, one)] for one in found]
            if len(vectors) > CACHED_WORDS:
                self._forget()
        for number, rows in enumerate(of_words):
            asked[number] = vectors[rows].sum(axis=0)
        sizes = np.fromiter(map(len, of_texts), np.int64, len(texts))
        if words and sizes.any():
            every = np.fromiter(chain.from_iterable(of_texts), np.int64)
            used, places = np.unique(every, return_inverse=True)
            cosines = (unit(asked) @ vectors[used].T).take(places, axis=1)
            starts = (np.cumsum(sizes) - sizes)[sizes > 0]
            matches[sizes > 0] = np.maximum.reduceat(cosines, starts, axis=1).T
        return matches

    def _learn(self, words: Iterable[bytes]) -> None:
        new = [word for word in words if word not in self._rows]
        if not new:
            return
        pieces = [self._encoder.longest_pieces(word.decode(), PIECES) for word in new]
        sizes = np.fromiter(map(len, pieces), np.int64, len(new))
        vectors = self._tokens[list(chain.from_iterable(pieces))].astype(np.float32)
        self._vectors.append(unit(np.add.reduceat(vectors, np.cumsum(sizes) - sizes)))
        self._rows.update(zip(new, range(len(self._rows), len(self._rows) + len(new)), strict=True))

    def _forget(self) -> None:
        self._rows: dict[bytes, int] = {}
        self._vectors = GrowingArray(np.empty((0, self._tokens.shape[1]), np.float32))


def words_of(text: str) -> list[bytes]:
    """The words of a text in lower case."""
    encoded = text.lower().encode()
    plain = (encoded if encoded.isascii() else MARKS.sub(SPACE, encoded)).translate(ASCII)
    return [word for word in plain.split() if len(word) <= MAX_WORD_BYTES]
