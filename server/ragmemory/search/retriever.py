"""The search: BM25 and cosine similarity, fused, without near-duplicates. Blocking."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from ragmemory.search.index.ascending import distinct, is_among
from ragmemory.search.ranking import Scored, fuse, pair_scores, relevance, without_duplicates
from ragmemory.search.spelling import candidates, is_correctable
from ragmemory.text.analysis import (
    STOP_WORDS,
    has_content_words,
    query_stems,
    query_terms,
    stemmer,
    stems,
    terms,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ragmemory.embedders.calibration import CosineScale
    from ragmemory.search.index.bigrams import WordSequences
    from ragmemory.search.index.bm25 import BM25Scores
    from ragmemory.search.index.chunk_index import ChunkIndex
    from ragmemory.search.queries import ParsedQuery


class Retriever:
    """Every method raises DamagedFile if a file of the index is not as it was written."""

    def __init__(self, index: ChunkIndex) -> None:
        self.index = index
        self.settings = index.settings

    def word_weights(self, words: list[str]) -> list[float]:
        """The weight of each word: √IDF of its rarest term. Safe while another thread applies changes."""
        index = self.index.bm25
        return [
            math.sqrt(max((index.idf(term) for term in terms(stems(word))), default=0.0)) for word in words
        ]

    def weights(self, words: list[str]) -> list[float]:
        """How rare each word is, in (0, 1]: 1 for a word that no chunk contains."""
        index = self.index.bm25
        return [max((index.rarity(term) for term in terms(stems(word))), default=0.0) for word in words]

    def corrections(self, words: list[str], is_common: Callable[[str], bool]) -> dict[str, list[str]]:
        """The words that no chunk contains, and similar ones whose stems some do, the most frequent first.

        Common words are not errors.
        """
        index = self.index.bm25

        def frequencies(words: Sequence[str]) -> list[int]:
            stems = stemmer().stemWords(words)
            counts: list[int] = index.frequencies(stems).tolist()
            stop = [word in STOP_WORDS or stem in STOP_WORDS for word, stem in zip(words, stems, strict=True)]
            return [0 if is_stop else count for is_stop, count in zip(stop, counts, strict=True)]

        doubtful = [word for word in words if is_correctable(word) and not is_common(word)]
        unknown = [word for word, count in zip(doubtful, frequencies(doubtful), strict=True) if not count]
        return {word: found for word in unknown if (found := candidates(word, frequencies))}

    def missing(self, words: list[str], chunk_ids: Sequence[int]) -> list[str]:
        """The words that none of these chunks contains, their titles and headings included."""
        import numpy as np

        rows = self.index.rows.with_ids(np.sort(np.array(chunk_ids, np.int64)))
        index = self.index.bm25
        return [
            word for word in words if not any(index.contain(term, rows).any() for term in terms(stems(word)))
        ]

    def search(
        self,
        query: ParsedQuery,
        vector: NDArray[np.float32] | None,
        allowed: NDArray[np.int64] | None,
        boosted: set[int],
        top_k: int,
        scale: CosineScale,
    ) -> list[Scored]:
        """The best `top_k` chunks, best first, without near-duplicates.

        `vector` is (d,) float32, unit length; None searches by words alone. `allowed` are the ids of the
        chunks that match the filter; None allows all. `boosted` are the ids of the chunks that contain the
        quoted phrases and prefixes; they come first. `scale` is that of the vectors' model.
        """
        import numpy as np

        index = self.index
        excluded = index.excluded
        if allowed is not None:
            excluded = np.union1d(
                excluded, np.delete(np.arange(len(index.rows)), index.rows.with_ids(allowed))
            )
        lexical = index.bm25.search(query_terms(query.text), excluded)
        similarity = None if vector is None else index.vectors.search(vector, excluded)
        halves = [half for half in (lexical, similarity) if half]
        first = self._boosted_rows(boosted, excluded, lexical)
        rows = distinct(np.concatenate([first, *(half.best(self.settings.candidates) for half in halves)]))
        if not len(rows):
            return []
        sequences = index.sequences.of(rows)
        bm25 = lexical.at(rows) + self.settings.pair_weight * self._pair_scores(query.text, rows, sequences)
        cosines = similarity.at(rows) if similarity else None
        fused = bm25 if cosines is None else fuse(cosines, bm25, self.settings.alpha)
        is_boosted = is_among(rows, np.sort(first))
        order = np.lexsort((-fused, ~is_boosted))  # Ties are in the order of rows.
        passages = ((place, sequences.pairs(place)) for place in order.tolist())
        best = without_duplicates(passages, self.settings.duplicate_overlap, top_k)
        best_rows, places = np.unique(rows[best], return_inverse=True)
        found = cosines[best] if cosines is not None else None
        mean = index.vectors.mean_cosine(vector) if vector is not None else 0.0
        coverage = np.zeros(len(best), np.float32)
        if has_content_words(query.text):
            coverage = lexical.coverage(best_rows)[places]
        placed = None if found is None else scale.to_local(found)
        scores = relevance(coverage, placed, scale.to_local(np.full(1, mean)).item(), is_boosted[best])
        ids = index.rows.take(best_rows, lambda segment: segment.chunk_ids)[places].tolist()
        similar = found.tolist() if found is not None else [0.0] * len(best)
        return [Scored(*one) for one in zip(ids, scores.tolist(), similar, bm25[best].tolist(), strict=True)]

    def _boosted_rows(
        self, boosted: set[int], excluded: NDArray[np.int64], lexical: BM25Scores
    ) -> NDArray[np.int64]:
        """The rows of boosted chunks; if there are too many, those with the best BM25 scores."""
        import numpy as np

        if not boosted:
            return np.empty(0, np.int64)
        rows = np.setdiff1d(self.index.rows.with_ids(np.array(sorted(boosted), np.int64)), excluded)
        return rows[np.argsort(-lexical.at(rows), kind="stable")[: self.settings.candidates]]

    def _pair_scores(
        self, text: str, rows: NDArray[np.int64], sequences: WordSequences
    ) -> NDArray[np.float32]:
        """BM25 of the question's neighbouring words in each of `rows`; two stop words form no pair."""
        import numpy as np

        content = set(query_stems(text))
        pairs = [pair for pair in pairwise(stems(text)) if content.intersection(pair)]
        if not pairs:
            return np.zeros(len(rows), np.float32)
        return pair_scores(sequences.count_pairs(pairs), self.index.bm25.saturation(rows), self.settings.k1)
