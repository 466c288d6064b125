"""The search: BM25 and cosine similarity, fused, without copies. Blocking."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragmemory.search.index.sorted_arrays import distinct, is_among, union
from ragmemory.search.ranking import Scored, balance, focus, fuse, pair_scores, relevance, without_copies
from ragmemory.search.spelling import candidates, is_correctable
from ragmemory.text.analysis import (
    STOP_WORDS,
    content_words,
    is_one_word,
    numbered_names,
    query_stems,
    query_terms,
    stemmer,
    stems,
    telling_words,
    terms_of_word,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ragmemory.search.index.bigrams import WordSequences
    from ragmemory.search.index.bm25 import BM25Scores
    from ragmemory.search.index.candidates import CandidateIndex
    from ragmemory.search.index.chunk_index import ChunkIndex
    from ragmemory.search.queries import SearchRequest

# Best passages by words in which the coverage of the question is measured.
CLEARLY_BEST = 5
# Multiplies the score of a passage that lacks a part of a name such as CVE-2021-44228: it has another one.
OTHER_NAME = 0.3


class _Candidates(NamedTuple):
    """Rows that may be found. The arrays are in the order of `rows`."""

    rows: NDArray[np.int64]  # (n,) ascending
    lexical: BM25Scores
    frequencies: NDArray[np.float32]  # (terms, n)
    cosines: NDArray[np.float32] | None  # (n,)
    best_by_words: NDArray[np.int64]  # the places of the CLEARLY_BEST
    is_boosted: NDArray[np.bool_]  # (n,)


class Retriever:
    """Every method raises DamagedFile if a file of the index fails its checksum."""

    def __init__(self, index: ChunkIndex | CandidateIndex) -> None:
        self.index = index
        self.settings = index.settings

    def word_weights(self, words: list[str]) -> list[float]:
        """The weight of each word: √IDF of its rarest term. Safe while another thread applies changes."""
        return [math.sqrt(idf) for idf in _highest(words, self.index.bm25.idf)]

    def weights(self, words: list[str]) -> dict[str, float]:
        """How rare each word is, in (0, 1]: 1 for a word that no chunk contains."""
        return dict(zip(words, _highest(words, self.index.bm25.rarity), strict=True))

    def corrections(self, words: list[str], pieces: Callable[[str], int]) -> dict[str, list[str]]:
        """Similar words for each word that no chunk contains, most frequent first.

        `pieces` is that of the embedder.
        """
        index = self.index.bm25

        def frequencies(words: Sequence[str], of: Callable[[Sequence[str]], list[int]]) -> list[int]:
            stems = stemmer().stemWords(words)
            return [
                count if count and word not in STOP_WORDS and stem not in STOP_WORDS else 0
                for word, stem, count in zip(words, stems, of(stems), strict=True)
            ]

        doubtful = [word for word in words if is_correctable(word, pieces)]
        counts = frequencies(doubtful, index.frequencies)
        unknown = [word for word, count in zip(doubtful, counts, strict=True) if not count]
        similar = {
            word: candidates(word, partial(frequencies, of=index.count_many), pieces) for word in unknown
        }
        return {word: others for word, others in similar.items() if others}

    def search(self, request: SearchRequest, allowed: NDArray[np.int64] | None) -> list[Scored]:
        """The best `top_k` chunks, best first, without copies; no score exceeds the one before it.

        `allowed` are the ids of the chunks that match the filter; None allows all.
        """
        index = self.index
        index.checking.end()
        excluded = index.rows.excluded
        if allowed is not None:
            others = np.delete(np.arange(len(index.rows)), index.rows.with_ids(allowed))
            excluded = union(excluded, others)
        candidates = self._candidates(request, excluded)
        if candidates is None:
            return []
        sequences = index.sequences.of(candidates.rows)
        order = self._order(request, candidates, sequences).tolist()
        best = without_copies(((place, sequences.pairs(place)) for place in order), request.top_k)
        found = self._scored(request, candidates, best)
        index.checking.begin()
        return found

    def _candidates(self, request: SearchRequest, excluded: NDArray[np.int64]) -> _Candidates | None:
        """The boosted rows, and those that are the best by words or by meaning; None without any."""
        index, vector, most = self.index, request.vector, self.settings.candidates
        by_meaning = None if vector is None else index.vectors.begin(vector, excluded)
        lexical = index.bm25.search(query_terms(request.query.text), excluded)
        boosted = self._boosted_rows(request.boosted, excluded, lexical)
        by_words = lexical.best(most)
        similarity = by_meaning() if by_meaning else None
        near = similarity.best(most) if similarity else by_words[:0]
        rows = distinct(np.concatenate([boosted, by_words, near]))
        if not len(rows):
            return None
        return _Candidates(
            rows=rows,
            lexical=lexical,
            frequencies=lexical.frequencies(rows),
            cosines=similarity.at(rows) if similarity else None,
            best_by_words=rows.searchsorted(by_words[:CLEARLY_BEST]),
            is_boosted=is_among(rows, np.sort(boosted)),
        )

    def _order(
        self, request: SearchRequest, candidates: _Candidates, sequences: WordSequences
    ) -> NDArray[np.int64]:
        """The places of all candidates, best first; equal ones in the order of rows."""
        text, lexical, frequencies = request.query.text, candidates.lexical, candidates.frequencies
        fused = lexical.at(candidates.rows, frequencies)
        fused += self.settings.pair_weight * self._pair_scores(text, candidates.rows, sequences)
        if candidates.cosines is not None:
            coverage = lexical.coverage(frequencies[:, candidates.best_by_words] > 0, 0.5)
            fused = fuse(candidates.cosines, fused, self._alpha(text, coverage, request.embedder.pieces))
        places = {term.name: place for place, term in enumerate(lexical.terms)}
        for name in numbered_names(text):
            parts = [places[term] for term in terms_of_word(name) if term in places]
            fused[~(frequencies[parts] > 0).all(axis=0)] *= OTHER_NAME
        # The parts of a single name are common words, and its cosines differ by noise only.
        is_lacking = ~(frequencies > 0).all(axis=0) & is_one_word(text)
        return np.lexsort((-fused, 2 * ~candidates.is_boosted + is_lacking))

    def _scored(self, request: SearchRequest, candidates: _Candidates, best: list[int]) -> list[Scored]:
        """The candidates at the places `best`, with their relevance and the words that they contain."""
        lexical, held = candidates.lexical, candidates.frequencies[:, best] > 0
        words = content_words(request.query.text)
        # Without content words no passage can be relevant.
        coverage = lexical.coverage(held) if words else np.zeros(len(best), np.float32)
        cosines = None if candidates.cosines is None else candidates.cosines[best]
        relevant = self._relevance(request, coverage, cosines, candidates.is_boosted[best])
        rows, places = np.unique(candidates.rows[best], return_inverse=True)
        ids = self.index.rows.take(rows, lambda segment: segment.chunk_ids)[places]
        holding = _words_of(words, [term.name for term in lexical.terms], held)
        scores = np.minimum.accumulate(relevant)
        found = zip(ids.tolist(), scores.tolist(), holding, strict=True)
        return [Scored(*one) for one in found]

    def _relevance(
        self,
        request: SearchRequest,
        coverage: NDArray[np.float32],
        cosines: NDArray[np.float32] | None,
        is_boosted: NDArray[np.bool_],
    ) -> NDArray[np.float32]:
        """See `ranking.relevance`; the cosines are those of the model, None without a vector."""
        if cosines is None or request.vector is None:
            return relevance(coverage, None, 0.0, is_boosted)
        to_local = request.embedder.scale.to_local
        mean = to_local(np.full(1, self.index.vectors.mean_cosine(request.vector))).item()
        return relevance(coverage, to_local(cosines), mean, is_boosted)

    def _alpha(self, text: str, coverage: NDArray[np.float32], pieces: Callable[[str], int]) -> float:
        words = telling_words(text)
        known = sum(1 for word in words if pieces(word) == 1) / max(1, len(words))
        return balance(self.settings, focus(words) * math.sqrt(known), coverage.max(initial=0.0))

    def _boosted_rows(
        self, boosted: set[int], excluded: NDArray[np.int64], lexical: BM25Scores
    ) -> NDArray[np.int64]:
        """The rows of boosted chunks; if there are too many, those with the best BM25 scores."""
        if not boosted:
            return np.empty(0, np.int64)
        rows = self.index.rows.with_ids(np.array(sorted(boosted), np.int64))
        rows = rows[~is_among(rows, excluded)]
        scores = lexical.at(rows, lexical.frequencies(rows))
        return rows[np.argsort(-scores, kind="stable")[: self.settings.candidates]]

    def _pair_scores(
        self, text: str, rows: NDArray[np.int64], sequences: WordSequences
    ) -> NDArray[np.float32]:
        """BM25 of the question's word pairs in each of `rows`; pairs of two stop words are ignored."""
        content = set(query_stems(text))
        pairs = [pair for pair in pairwise(stems(text)) if content.intersection(pair)]
        if not pairs:
            return np.zeros(len(rows), np.float32)
        return pair_scores(sequences.count_pairs(pairs), self.index.bm25.saturation(rows), self.settings.k1)


def _highest(words: Sequence[str], measure: Callable[[Sequence[str]], list[float]]) -> list[float]:
    """For each word the highest value of its terms."""
    terms = list(dict.fromkeys(term for word in words for term in terms_of_word(word)))
    values = dict(zip(terms, measure(terms), strict=True))
    return [max((values[term] for term in terms_of_word(word)), default=0.0) for word in words]


def _words_of(words: Sequence[str], names: Sequence[str], held: NDArray[np.bool_]) -> list[frozenset[str]]:
    """The words that each of k passages contains; `held` is (names, k), whether it contains each term."""
    terms_of = {word: {*terms_of_word(word)} for word in words}
    contained = [{name for name, is_held in zip(names, column, strict=True) if is_held} for column in held.T]
    return [frozenset(word for word in words if terms_of[word] & found) for found in contained]
