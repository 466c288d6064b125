"""A small index over some chunks of a large collection, with the statistics of the whole collection.

So the candidates that another index has chosen get the scores that they would have in an index of all chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragmemory.search.index.bigrams import SequenceIndex
from ragmemory.search.index.bm25 import BM25Index, TermRange
from ragmemory.search.index.checking import Checking
from ragmemory.search.index.rows import Rows
from ragmemory.search.index.vectors import VectorIndex
from ragmemory.text.analysis import content_words, hashes, query_terms, telling_words, terms_of_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragmemory.search.index.segments import Segment
    from ragmemory.settings import RankingSettings


class Collection(NamedTuple):
    """The statistics of a whole collection. Terms that are not in `frequencies` are in no chunk."""

    chunks: int
    length: float  # the sum of their lengths, in weighted terms
    total: NDArray[np.float64]  # (d,) the sum of their vectors
    frequencies: Mapping[str, int]  # how many chunks contain each term


class CandidateIndex:
    """Some segments, of which chunks with `excluded` ids, ascending, are not searched. See `ChunkIndex`."""

    def __init__(
        self,
        segments: Sequence[Segment],
        excluded: NDArray[np.int64],
        settings: RankingSettings,
        collection: Collection,
    ) -> None:
        self.settings = settings
        self.rows = Rows(segments, Rows(segments).with_ids(excluded))
        self.bm25 = _CollectionBM25(self.rows, settings, collection)
        self.vectors = _CollectionVectors(self.rows, collection)
        self.sequences = SequenceIndex(self.rows)
        self.checking = Checking(self.rows)


class _CollectionBM25(BM25Index):
    def __init__(self, rows: Rows, settings: RankingSettings, collection: Collection) -> None:
        super().__init__(rows, settings.k1, settings.b)
        self._collection = collection

    @property
    def texts(self) -> int:
        return self._collection.chunks

    @property
    def length(self) -> float:
        return self._collection.length

    def count_many(self, terms: Sequence[str]) -> list[int]:
        return [self._collection.frequencies.get(term, 0) for term in terms]

    def _look_up(self, terms: Sequence[str]) -> list[TermRange]:
        found = zip(super()._look_up(terms), self.count_many(terms), strict=True)
        return [place._replace(df=df) for place, df in found]


class _CollectionVectors(VectorIndex):
    def __init__(self, rows: Rows, collection: Collection) -> None:
        super().__init__(rows)
        self._collection = collection

    def mean_cosine(self, query: NDArray[np.float32]) -> float:
        return float(self._collection.total @ query) / max(1, self._collection.chunks)


def terms_of_query(text: str) -> list[str]:
    """All terms of a query whose frequencies a search may ask for."""
    words = {*text.lower().split(), *content_words(text), *telling_words(text)}
    return list({*query_terms(text), *(term for word in words for term in terms_of_word(word))})


def term_ids(terms: Iterable[str]) -> list[int]:
    """Each term as a number of 32 bits."""
    numbers: list[int] = term_bits(hashes(terms)).tolist()
    return numbers


def term_bits(names: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """The last 32 bits of each hash: as many as a sparse vector of Qdrant has for a dimension.

    In a memory of a million terms, one in 4,000 counts the chunks of another term as well.
    """
    return names.astype(np.uint32)
