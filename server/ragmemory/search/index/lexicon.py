"""The terms of many texts as numbers; every distinct word is stemmed and hashed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragmemory.text.analysis import folded, hashes, stemmer, terms
from ragmemory.text.growing_array import GrowingArray

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Terms(NamedTuple):
    """The terms of several texts, one text after the other."""

    names: NDArray[np.uint64]  # (k,) the hash of each term number; several may share one
    numbers: NDArray[np.int64]  # (t,)
    owners: NDArray[np.int64]  # (t,) the number of each term's text
    texts: int


class Analysed(NamedTuple):
    """`stems` in the order of the texts; `terms` differ in scripts without spaces, and in identifiers."""

    stems: Terms
    terms: Terms


class Lexicon:
    """Caches every word; when it `is_full`, the caller starts a new one."""

    def __init__(self) -> None:
        from ragmemory.text.vocabulary import SPACED, Vocabulary

        self._vocabulary = Vocabulary(SPACED)
        self._names = GrowingArray(np.empty(0, np.uint64))

    @property
    def is_full(self) -> bool:
        return self._vocabulary.is_full

    def analyse(self, texts: Sequence[str]) -> Analysed:
        """Words, stems and terms of some texts, as `text.analysis` defines them."""
        from ragmemory.text.identifiers import identifier_words

        split = [split_words(text) for text in texts]
        stems = self._numbered([words for words, _ in split])
        is_same = all(words is terms for words, terms in split)
        terms = stems if is_same else self._numbered([terms for _, terms in split])
        more = identifier_words(texts)
        return Analysed(stems, joined([terms, self._numbered(more)]) if any(more) else terms)

    def _numbered(self, texts: Sequence[bytes]) -> Terms:
        numbers, owners, new = self._vocabulary.look_up(texts)
        if new:
            self._names.append(hashes(stemmer().stemWords([word.decode() for word in new])))
        return Terms(self._names.rows, numbers, owners, len(texts))


def joined(fields: Sequence[Terms]) -> Terms:
    """All terms of the same texts. The fields were numbered in this order: the last one has all names."""
    return fields[-1]._replace(
        numbers=np.concatenate([field.numbers for field in fields]),
        owners=np.concatenate([field.owners for field in fields]),
    )


def split_words(text: str) -> tuple[bytes, bytes]:
    """The words and the terms of a text, separated by spaces; one object if they are equal."""
    split = folded(text)
    if split.isascii():
        return split, split
    found = split.decode().split()
    counted = terms(found)
    return split, split if counted is found else " ".join(counted).encode()
