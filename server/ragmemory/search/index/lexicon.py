"""The texts of many chunks → terms as numbers, every distinct word stemmed and hashed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ragmemory.text.analysis import folded, hashes, stemmer, terms
from ragmemory.text.growing_array import GrowingArray

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Of bytes: all but spaces are of one word.
BONDS = bytes(int(chr(i) != " ") for i in range(256))


class Terms(NamedTuple):
    """The terms of several texts, one text after the other."""

    names: NDArray[np.uint64]  # (k,) of term number i its hash; several may have the same
    numbers: NDArray[np.int64]  # (t,)
    owners: NDArray[np.int64]  # (t,) the number of the text that each is of
    texts: int


class Analysed(NamedTuple):
    """`stems` in the order of the texts, and `terms`, which differ where words are written without spaces."""

    stems: Terms
    terms: Terms


class Lexicon:
    """Remembers every word; a new one begins when it `is_full`."""

    def __init__(self) -> None:
        import numpy as np

        from ragmemory.text.vocabulary import Vocabulary

        self._vocabulary = Vocabulary(BONDS)
        self._names = GrowingArray(np.empty(0, np.uint64))

    @property
    def is_full(self) -> bool:
        return self._vocabulary.is_full

    def analyse(self, texts: Sequence[str]) -> Analysed:
        """See `text.analysis`, which says what words, stems and terms are."""
        split = [split_words(text) for text in texts]
        stems = self._numbered([words for words, _ in split])
        is_same = all(words is terms for words, terms in split)
        return Analysed(stems, stems if is_same else self._numbered([terms for _, terms in split]))

    def _numbered(self, texts: Sequence[bytes]) -> Terms:
        numbers, owners, new = self._vocabulary.look_up(texts)
        if new:
            self._names.append(hashes(stemmer().stemWords([word.decode() for word in new])))
        return Terms(self._names.rows, numbers, owners, len(texts))


def split_words(text: str) -> tuple[bytes, bytes]:
    """The words, and what is counted of them, with spaces between; one object if they are the same."""
    split = folded(text)
    if split.isascii():
        return split, split
    found = split.decode().split()
    counted = terms(found)
    return split, split if counted is found else " ".join(counted).encode()
