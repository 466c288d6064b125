"""Segments of the index: what they hold, and how they are searched and merged.

Covers `bigrams`, `bm25`, `errors`, `lexicon`, `postings`, `rows`, `scores`, `sorted_arrays` and
`vectors`.
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ragmemory.search.index.bigrams import SequenceIndex, WordSequences
from ragmemory.search.index.bm25 import BM25Index, BM25Scores
from ragmemory.search.index.columns import Column
from ragmemory.search.index.errors import MergeStopped
from ragmemory.search.index.lexicon import Analysed, Lexicon
from ragmemory.search.index.postings import frequencies_of, rows_of
from ragmemory.search.index.rows import Rows
from ragmemory.search.index.scores import BLOCK, best_of
from ragmemory.search.index.segments import Segment, as_float32
from ragmemory.search.index.vectors import VectorIndex
from ragmemory.text.analysis import hashes

K1, B = 0.9, 0.6
NONE = np.empty(0, np.int64)
LEXICON = Lexicon()
TEXTS = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=8), min_size=1, max_size=12)


def rows(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, np.int64)


def analysed(*texts: list[str]) -> Analysed:
    """Words that are their own stems."""
    return LEXICON.analyse([" ".join(text) for text in texts])


def segment(first_id: int, texts: list[list[str]], vectors: NDArray[np.float32] | None = None) -> Segment:
    """Of chunks with neighbouring ids."""
    if vectors is None:
        vectors = np.zeros((len(texts), 8), np.float32)
    ids = (first_id - 1, first_id - 1 + len(texts), range(first_id, first_id + len(texts)))
    found = analysed(*texts)
    return Segment.build(ids, as_bytes(vectors), found, [], vectors.shape[1])


def segments_of(texts: list[list[str]], batch: int = 3) -> list[Segment]:
    return [segment(start + 1, texts[start : start + batch]) for start in range(0, len(texts), batch)]


def vector_segments(vectors: NDArray[np.float32], *cuts: int) -> list[Segment]:
    bounds = [0, *cuts, len(vectors)]
    return [segment(start + 1, [[]] * (end - start), vectors[start:end]) for start, end in pairwise(bounds)]


def word_index(texts: list[list[str]], batch: int = 3) -> BM25Index:
    return BM25Index(Rows(segments_of(texts, batch)), K1, B)


def scores_at(scores: BM25Scores, wanted: NDArray[np.int64]) -> NDArray[np.float32]:
    return scores.at(wanted, scores.frequencies(wanted))


def bm25(texts: list[list[str]], query: list[str]) -> list[float]:
    """As the textbook says it."""
    average = sum(map(len, texts)) / len(texts) or 1.0

    def score(text: list[str]) -> float:
        total = 0.0
        for term in query:
            df = sum(term in other for other in texts)
            tf = text.count(term)
            idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
            total += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * len(text) / average))
        return total

    return [score(text) for text in texts]


@given(TEXTS, st.lists(st.sampled_from("abcxyz"), max_size=5), st.integers(1, 5))
def test_scores_are_those_of_bm25_however_the_texts_came(
    texts: list[list[str]], query: list[str], batch: int
) -> None:
    scores = word_index(texts, batch).search(query, NONE)
    assert scores_at(scores, np.arange(len(texts))) == pytest.approx(bm25(texts, query), rel=1e-4)


@pytest.mark.parametrize("k", [1, 10])
@pytest.mark.parametrize("closed", [rows(), rows(0, 1, 2, 3, 40)], ids=["all rows", "some are left out"])
def test_the_best_are_found_without_scoring_every_posting_of_a_common_term(
    k: int, closed: NDArray[np.int64], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragmemory.search.index.bm25.AT_ONCE", 10)
    monkeypatch.setattr("ragmemory.search.index.scores.BLOCK", 4)
    random = np.random.default_rng(2)
    texts = [["the", *random.choice([*"abcdefghij"], 3)] for _ in range(600)]
    for text in random.choice(len(texts), 60, replace=False):
        texts[text] += ["rare", *["a"] * random.integers(3)]
    index = word_index(texts, 250)
    query = ["the", "rare", "a", "b"]
    scores = index.search(query, closed)
    expected = np.array(bm25(texts, query))
    expected[closed] = 0
    best = scores.best(k)
    assert expected[best] == pytest.approx(np.sort(expected)[: -k - 1 : -1], rel=1e-4)
    assert scores_at(scores, np.sort(best)) == pytest.approx(expected[np.sort(best)], rel=1e-4)


@given(TEXTS, st.integers(1, 5), st.data())
def test_merged_segments_are_one_that_never_held_the_dropped_rows(
    texts: list[list[str]], batch: int, data: st.DataObject
) -> None:
    parts = segments_of(texts, batch)
    kept = [
        data.draw(st.none() | st.lists(st.sampled_from(range(len(part))), unique=True).map(sorted))
        for part in parts
    ]
    merged = Segment.merge(parts, [None if keep is None else rows(*keep) for keep in kept])
    stay = [
        part.chunk_ids.all[row] - 1
        for part, keep in zip(parts, kept, strict=True)
        for row in (range(len(part)) if keep is None else keep)
    ]
    assert (merged.after, merged.upto) == (0, len(texts))
    assert (merged.chunk_ids.all - 1).tolist() == stay
    left = [texts[row] for row in stay]
    if left:
        index = Rows([merged])
        scores = scores_at(BM25Index(index, K1, B).search(["a", "b"], NONE), np.arange(len(left)))
        assert scores == pytest.approx(bm25(left, ["a", "b"]), rel=1e-4)
        counts = SequenceIndex(index).of(np.arange(len(left))).count_pairs([("a", "b")])
        assert counts[:, 0].tolist() == [list(pairwise(text)).count(("a", "b")) for text in left]


def test_an_empty_word_index_finds_nothing() -> None:
    assert len(BM25Index(Rows([]), K1, B).search(["a"], NONE).best(5)) == 0


def test_coverage_is_the_share_of_the_question_that_a_text_holds() -> None:
    scores = word_index([["cat", "mat"], ["cat"], ["dog"]]).search(["cat", "mat"], NONE)
    whole, half, none = scores.coverage(scores.frequencies(rows(0, 1, 2)) > 0).tolist()
    assert whole == pytest.approx(1)
    assert 0.4 < half < 0.6
    assert none == 0


def postings_of(built: Segment, *terms: str) -> list[NDArray[np.uint32]]:
    return [built.postings.packed.slice(*bounds) for bounds in built.postings.ranges(hashes(terms)).T]


def test_words_of_one_stem_are_one_term_and_other_fields_count_as_often_as_their_weights() -> None:
    lexicon = Lexicon()
    texts = lexicon.analyse(["run running fox", ""])
    others = [(lexicon.analyse(["runs", "fox"]), 3.0), (lexicon.analyse(["", "fox dog"]), 0.5)]
    built = Segment.build((0, 2, [1, 2]), as_bytes(unit_rows(2)), texts, others, 8)
    run, fox = postings_of(built, "run", "fox")
    assert (rows_of(run).tolist(), frequencies_of(run).tolist()) == ([0], [5])
    assert (rows_of(fox).tolist(), frequencies_of(fox).tolist()) == ([0, 1], [1, 3.5])
    assert built.lengths.all.tolist() == [6, 4]


def test_a_text_without_spaces_is_counted_by_its_characters_and_pairs_beside_others() -> None:
    found = Lexicon().analyse(["黑豹队 a", "a"])
    built = Segment.build((0, 2, [1, 2]), as_bytes(unit_rows(2)), found, [], 8)
    assert list(map(len, postings_of(built, "黑", "黑豹", "黑豹队", "a"))) == [1, 1, 0, 2]
    assert np.bincount(found.stems.owners).tolist() == [2, 1]


def unit_rows(count: int, dimensions: int = 8) -> NDArray[np.float32]:
    vectors = np.random.default_rng(0).normal(size=(count, dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float16).astype(np.float32)


def as_bytes(vectors: NDArray[np.float32]) -> list[bytes]:
    return [row.astype("<f2").tobytes() for row in vectors]


def test_cosines_are_exact_over_all_segments() -> None:
    vectors = unit_rows(50)
    index = VectorIndex(Rows(vector_segments(vectors, 30, 31)))
    assert index.begin(vectors[7], NONE)().at(np.arange(50)) == pytest.approx(vectors @ vectors[7], abs=1e-6)


def test_every_finite_float16_becomes_the_same_float32() -> None:
    every = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    assert as_float32(finite).tobytes() == finite.astype(np.float32).tobytes()


@given(st.lists(st.floats(-1, 1, width=32), max_size=600), st.integers(1, 12))
def test_the_best_are_the_highest_above_zero_in_order(scores: list[float], k: int) -> None:
    array = np.array(scores, np.float32)
    best = best_of(array, k)
    expected = [row for row in np.argsort(-array, kind="stable").tolist() if array[row] > 0]
    assert best.tolist() == expected[:k]


def test_the_best_of_many_are_the_highest_wherever_they_lie() -> None:
    scores = np.random.default_rng(1).normal(size=BLOCK * 100 + 17).astype(np.float32)
    scores[rows(3, 4, 5)] = 9  # neighbours, and so in different blocks
    best = best_of(scores, 20)
    assert best[:3].tolist() == [3, 4, 5]
    assert best.tolist() == np.argsort(-scores, kind="stable")[:20].tolist()


def test_closed_rows_are_not_among_the_best() -> None:
    assert word_index([["a"], ["a", "b"]]).search(["a"], rows(0)).best(5).tolist() == [1]
    index = VectorIndex(Rows(vector_segments(unit_rows(3))))
    assert 1 not in index.begin(unit_rows(3)[1], rows(1))().best(5).tolist()


@pytest.mark.parametrize("dimensions", [64, 100, 256])
def test_many_vectors_go_through_the_codes_and_the_best_are_found(
    dimensions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragmemory.search.index.vectors.BLOCK", 64)
    monkeypatch.setattr("ragmemory.search.index.vectors.SHORTLIST", 300)
    monkeypatch.setattr("ragmemory.search.index.vectors.ALL_EXACT", 100)
    monkeypatch.setattr("ragmemory.search.index.vectors.RESCORED", 200)
    vectors = unit_rows(1000, dimensions)
    parts = vector_segments(vectors, 500, 700)
    index = VectorIndex(Rows([Segment.merge(parts[:2], [None, None]), parts[2]]))
    for row in (5, 600, 900):
        scores = index.begin(vectors[row], NONE)()
        assert scores.best(3)[0] == row
        assert scores.at(rows(1, 2)) == pytest.approx(vectors[[1, 2]] @ vectors[row], abs=1e-6)
        assert row not in index.begin(vectors[row], rows(row))().best(3).tolist()
    only = rows(*range(10))
    others = np.arange(10, 1000)
    assert set(index.begin(vectors[0], others)().best(20).tolist()) <= set(only.tolist())
    assert index.mean_cosine(vectors[0]) == pytest.approx(float((vectors @ vectors[0]).mean()), abs=1e-5)


def texts_of(texts: list[list[str]], *wanted: int) -> WordSequences:
    return SequenceIndex(Rows(segments_of(texts, batch=2))).of(rows(*wanted))


def test_neighbours_are_counted_within_a_text_only() -> None:
    texts = [["red", "fox", "red", "fox"], [], ["fox"], ["red"], ["fox", "red"]]
    pairs = [("red", "fox"), ("fox", "red")]
    assert texts_of(texts, 0, 1, 2, 3, 4).count_pairs(pairs).tolist() == [
        [2, 1],
        [0, 0],
        [0, 0],
        [0, 0],
        [0, 1],
    ]
    assert texts_of(texts, 0, 4).count_pairs(pairs).tolist() == [[2, 1], [0, 1]]
    assert [len(texts_of(texts, 0, 1, 4).pairs(number)) for number in range(3)] == [2, 0, 1]


def test_rows_are_taken_from_the_segments_that_hold_them() -> None:
    index = Rows(segments_of([["a"]] * 8))
    assert index.take(rows(0, 3, 7), lambda one: one.chunk_ids).tolist() == [1, 4, 8]
    assert index.with_ids(rows(1, 4, 8, 99)).tolist() == [0, 3, 7]
    assert len(index.take(NONE, lambda one: one.chunk_ids)) == 0


def test_a_written_segment_is_the_merged_one(tmp_path: Path) -> None:
    texts = [["cat", "mat"], ["cat"], [], ["dog", "火"]]
    parts = [*vector_segments(unit_rows(3), 1), segment(4, texts)]
    kept = [None, rows(1), rows(0, 2, 3)]
    merged = Segment.merge(parts, kept)
    written = Segment.write(tmp_path / "file", parts, kept, lambda: False)
    assert (written.after, written.upto, written.path) == (0, 7, tmp_path / "file")
    for name, column in vars(merged).items():
        if isinstance(column, Column):
            assert np.array_equal(column.all, getattr(written, name).all), name
    assert np.array_equal(merged.postings.packed.all, written.postings.packed.all)


def test_segments_without_a_row_can_be_merged_written_and_searched(tmp_path: Path) -> None:
    parts = [segment(1, []), segment(1, [])]
    assert len(Segment.write(tmp_path / "empty", parts, [None, None], lambda: False)) == 0
    both = Segment.merge([segment(1, []), segment(1, [["cat"]])], [None, None])
    assert BM25Index(Rows([segment(1, []), both]), K1, B).search(["cat"], NONE).best(1).tolist() == [0]


def test_a_merge_that_is_stopped_ends_at_once(tmp_path: Path) -> None:
    with pytest.raises(MergeStopped):
        Segment.write(tmp_path / "file", segments_of([["a"]] * 3), [None], lambda: True)
