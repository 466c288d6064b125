"""The texts of many chunks → terms as numbers, every distinct word stemmed and hashed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ragmemory.indexes.matrix import Matrix
from ragmemory.indexes.terms import hashes, stemmer, terms, words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    # The number of each word of some texts, and how many words each text has.
    Numbered = tuple[NDArray[np.int64], list[int]]

# Texts whose words are made and looked up before the next: they are still in the processor's cache.
BATCH = 32


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

        from ragmemory.numbering import Numbering

        self._numbering = Numbering()
        self._names = Matrix(np.empty(0, np.uint64))

    @property
    def is_full(self) -> bool:
        return self._numbering.is_full

    def analyse(self, texts: Sequence[str]) -> Analysed:
        """See `indexes.terms`, which says what words, stems and terms are."""
        import numpy as np

        parts = [self._numbered(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)]
        stems, terms = (
            Terms(
                self._names.recent,
                np.concatenate([numbers for numbers, _ in column]),
                np.repeat(np.arange(len(texts)), np.concatenate([sizes for _, sizes in column])),
                len(texts),
            )
            for column in zip(*parts, strict=True)
        )
        return Analysed(stems, terms)

    def _numbered(self, texts: Sequence[str]) -> tuple[Numbered, Numbered]:
        """The stems, and the terms."""
        found = [words(text) for text in texts]
        counted = [terms(one) for one in found]
        stems = self._look_up(found)
        is_same = all(one is other for one, other in zip(found, counted, strict=True))
        return stems, stems if is_same else self._look_up(counted)

    def _look_up(self, texts: Sequence[list[str]]) -> Numbered:
        numbers = self._numbering.numbers(texts)
        if fresh := self._numbering.take_fresh():
            self._names.add(hashes(stemmer().stemWords(fresh)))
        return numbers, [len(text) for text in texts]
