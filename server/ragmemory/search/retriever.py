"""The search: words and meaning, fused, without near copies. Blocking."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from ragmemory.search.index.ascending import distinct, is_among
from ragmemory.search.ranking import Scored, fuse, pair_scores, relevance, without_duplicates
from ragmemory.text.analysis import is_telling, query_stems, stems, terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.search.index.bigrams import Texts
    from ragmemory.search.index.bm25 import WordScores
    from ragmemory.search.index.chunk_index import ChunkIndex
    from ragmemory.search.queries import ParsedQuery


class Retriever:
    """Everything raises DamagedFile where a file of the index is not as it was written."""

    def __init__(self, index: ChunkIndex) -> None:
        self.index = index
        self.settings = index.settings

    def weigh(self, words: list[str]) -> list[float]:
        """How much each word tells here: √IDF of its rarest term. Safe beside `apply`."""
        index = self.index.words
        return [
            math.sqrt(max((index.idf(term) for term in terms(stems(word))), default=0.0)) for word in words
        ]

    def search(
        self,
        query: ParsedQuery,
        vector: NDArray[np.float32] | None,
        allowed: NDArray[np.int64] | None,
        boosted: set[int],
        top_k: int,
    ) -> list[Scored]:
        """The best `top_k` chunks, best first, near copies left out.

        `vector` is (d,) float32 of unit length, None: by words alone; `allowed` are the chunk ids that pass
        the filter, None: all; `boosted` those that hold the quoted phrases or prefixes, which come first.
        """
        import numpy as np

        index = self.index
        closed = index.closed
        if allowed is not None:
            closed = np.union1d(closed, np.delete(np.arange(len(index.rows)), index.rows.with_ids(allowed)))
        words = index.words.search(terms(query_stems(query.text)), closed)
        meaning = None if vector is None else index.vectors.search(vector, closed)
        halves = [half for half in (words, meaning) if half]
        first = self._first(boosted, closed, words)
        rows = distinct(np.concatenate([first, *(half.best(self.settings.candidates) for half in halves)]))
        if not len(rows):
            return []
        texts = index.sequences.texts(rows)
        bm25 = words.at(rows) + self.settings.pair_weight * self._pair_scores(query.text, rows, texts)
        cosines = meaning.at(rows) if meaning else None
        fused = bm25 if cosines is None else fuse(cosines, bm25, self.settings.alpha)
        held = is_among(rows, np.sort(first))
        order = np.lexsort((-fused, ~held))  # where both are equal, rows ascend
        passages = ((place, texts.pairs(place)) for place in order.tolist())
        best = without_duplicates(passages, self.settings.duplicate_overlap, top_k)
        found = cosines[best] if cosines is not None else None
        usual = index.vectors.mean_cosine(vector) if vector is not None else 0.0
        coverage = words.coverage(rows)[best] if is_telling(query.text) else np.zeros(len(best), np.float32)
        scores = relevance(coverage, found, usual, held[best])
        ids = index.rows.take(rows, lambda segment: segment.chunk_ids)[best].tolist()
        similar = found.tolist() if found is not None else [0.0] * len(best)
        return [Scored(*one) for one in zip(ids, scores.tolist(), similar, bm25[best].tolist(), strict=True)]

    def _first(self, boosted: set[int], closed: NDArray[np.int64], words: WordScores) -> NDArray[np.int64]:
        """The rows that come before all others; of too many, the best by their words."""
        import numpy as np

        if not boosted:
            return np.empty(0, np.int64)
        rows = np.setdiff1d(self.index.rows.with_ids(np.array(sorted(boosted), np.int64)), closed)
        return rows[np.argsort(-words.at(rows), kind="stable")[: self.settings.candidates]]

    def _pair_scores(self, text: str, rows: NDArray[np.int64], texts: Texts) -> NDArray[np.float32]:
        """BM25 of the question's neighbouring words in each of `rows`; two stop words are no pair."""
        import numpy as np

        telling = set(query_stems(text))
        pairs = [pair for pair in pairwise(stems(text)) if telling.intersection(pair)]
        if not pairs:
            return np.zeros(len(rows), np.float32)
        return pair_scores(texts.count_pairs(pairs), self.index.words.saturation(rows), self.settings.k1)
