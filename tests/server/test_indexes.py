from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ragmemory.indexes.chunks import weighed
from ragmemory.indexes.lexicon import Lexicon, Terms
from ragmemory.indexes.matrix import Matrix
from ragmemory.indexes.scores import BLOCK, DenseScores
from ragmemory.indexes.sequences import SequenceIndex
from ragmemory.indexes.vectors import VectorIndex
from ragmemory.indexes.words import WordIndex

K1, B = 0.9, 0.6
NONE = np.empty(0, np.int64)
LEXICON = Lexicon()
TEXTS = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=8), min_size=1, max_size=12)


def rows(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, np.int64)


def terms(*texts: list[str]) -> Terms:
    """Words that are their own stems."""
    return LEXICON.analyse([" ".join(text) for text in texts]).terms


def add(index: WordIndex, texts: list[list[str]]) -> None:
    found = terms(*texts)
    index.add(found, np.ones(len(found.numbers), np.float32))


def word_index(texts: list[list[str]], batch: int = 3) -> WordIndex:
    index = WordIndex.empty(K1, B)
    for start in range(0, len(texts), batch):
        add(index, texts[start : start + batch])
    return index


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
    assert word_index(texts, batch).search(query, NONE).scores == pytest.approx(bm25(texts, query), rel=1e-4)


@given(TEXTS, st.data())
def test_a_word_index_without_some_rows_is_one_that_never_had_them(
    texts: list[list[str]], data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.sampled_from(range(len(texts))), unique=True, min_size=1).map(sorted))
    fewer = word_index(texts).kept(rows(*kept))
    assert fewer.search(["a", "b"], NONE).scores == pytest.approx(
        bm25([texts[i] for i in kept], ["a", "b"]), rel=1e-4
    )


def test_an_empty_word_index_finds_nothing() -> None:
    assert len(WordIndex.empty(K1, B).search(["a"], NONE).best(5)) == 0


def test_a_term_that_was_asked_before_is_found_in_what_came_after() -> None:
    index = word_index([["cat"]])
    assert index.search(["cat"], NONE).best(5).tolist() == [0]
    add(index, [["cat"], ["dog"]])
    assert index.search(["cat"], NONE).best(5).tolist() == [0, 1]


def test_many_small_additions_leave_few_segments() -> None:
    index = word_index([["a", str(n)] for n in range(200)], batch=1)
    assert len(index.segments) < 8


def test_coverage_is_the_share_of_the_question_that_a_text_holds() -> None:
    scores = word_index([["cat", "mat"], ["cat"], ["dog"]]).search(["cat", "mat"], NONE)
    whole, half, none = scores.coverage(rows(0, 1, 2)).tolist()
    assert whole == pytest.approx(1)
    assert 0.4 < half < 0.6
    assert none == 0


def test_a_saved_word_index_is_mapped_and_grows_on(tmp_path: Path) -> None:
    texts = [["cat", "mat"], ["cat"], [], ["dog", "火"]]
    word_index(texts).save(tmp_path)
    index = WordIndex.load(tmp_path, K1, B)
    add(index, [["火", "cat"]])
    assert index.search(["cat", "火"], NONE).scores == pytest.approx(
        bm25([*texts, ["火", "cat"]], ["cat", "火"]), rel=1e-4
    )


def test_words_of_one_stem_are_one_term_and_a_title_counts_as_told() -> None:
    lexicon = Lexicon()
    texts, titles = lexicon.analyse(["run running fox", ""]), lexicon.analyse(["runs", "fox"])
    index = WordIndex.empty(K1, B)
    index.add(*weighed(texts.terms, titles.terms, 3))
    assert [part.tolist() for part in index.segments[0].postings("run")] == [[0], [5]]
    assert [part.tolist() for part in index.segments[0].postings("fox")] == [[0, 1], [1, 3]]
    assert np.concatenate(index.lengths.parts).tolist() == [6, 3]


def test_a_text_without_spaces_is_counted_by_its_characters_and_pairs_beside_others() -> None:
    analysed = Lexicon().analyse(["黑豹队 a", "a"])
    index = WordIndex.empty(K1, B)
    index.add(analysed.terms, np.ones(len(analysed.terms.numbers), np.float32))
    assert [len(index.segments[0].postings(term)[0]) for term in ("黑", "黑豹", "黑豹队", "a")] == [
        1,
        1,
        0,
        2,
    ]
    assert np.bincount(analysed.stems.owners).tolist() == [2, 1]


def unit_rows(count: int, dimensions: int = 8) -> NDArray[np.float32]:
    vectors = np.random.default_rng(0).normal(size=(count, dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float16).astype(np.float32)


def as_bytes(vectors: NDArray[np.float32]) -> list[bytes]:
    return [row.astype("<f2").tobytes() for row in vectors]


def test_cosines_are_exact_over_the_mapped_and_the_recent_part(tmp_path: Path) -> None:
    vectors = unit_rows(50)
    first = VectorIndex.empty(8)
    first.add(as_bytes(vectors[:30]))
    first.save(tmp_path)
    index = VectorIndex.load(tmp_path)
    for row in as_bytes(vectors[30:]):
        index.add([row])
    assert index.search(vectors[7], NONE).at(np.arange(50)) == pytest.approx(vectors @ vectors[7], abs=1e-6)
    assert index.kept(rows(3, 40)).search(vectors[40], NONE).best(1).tolist() == [1]


@given(st.lists(st.floats(-1, 1, width=32), max_size=600), st.integers(1, 12))
def test_the_best_are_the_highest_above_zero_in_order(scores: list[float], k: int) -> None:
    array = np.array(scores, np.float32)
    best = DenseScores(array).best(k)
    expected = [row for row in np.argsort(-array, kind="stable").tolist() if array[row] > 0]
    assert best.tolist() == expected[:k]


def test_the_best_of_many_are_the_highest_wherever_they_lie() -> None:
    scores = np.random.default_rng(1).normal(size=BLOCK * 50 + 17).astype(np.float32)
    scores[rows(3, 4, 5)] = 9  # neighbours, and so in different blocks
    best = DenseScores(scores).best(20)
    assert best[:3].tolist() == [3, 4, 5]
    assert best.tolist() == np.argsort(-scores, kind="stable")[:20].tolist()


def test_closed_rows_are_not_among_the_best() -> None:
    assert word_index([["a"], ["a", "b"]]).search(["a"], rows(0)).best(5).tolist() == [1]
    index = VectorIndex.empty(8)
    index.add(as_bytes(unit_rows(3)))
    assert 1 not in index.search(unit_rows(3)[1], rows(1)).best(5).tolist()


@pytest.mark.parametrize("dimensions", [64, 100])
def test_many_vectors_go_through_the_codes_and_the_best_are_found(
    dimensions: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ragmemory.indexes.vectors.ALL_EXACT", 100)
    monkeypatch.setattr("ragmemory.indexes.vectors.RESCORED", 200)
    vectors = unit_rows(1000, dimensions)
    index = VectorIndex.empty(dimensions)
    index.add(as_bytes(vectors[:700]))
    index.save(tmp_path)
    index = VectorIndex.load(tmp_path)
    index.add(as_bytes(vectors[700:]))
    for row in (5, 900):
        scores = index.search(vectors[row], NONE)
        assert scores.best(3)[0] == row
        assert scores.at(rows(1, 2)) == pytest.approx(vectors[[1, 2]] @ vectors[row], abs=1e-6)
        assert row not in index.search(vectors[row], rows(row)).best(3).tolist()
    only = rows(*range(10))
    others = np.arange(10, 1000)
    assert set(index.search(vectors[0], others).best(20).tolist()) <= set(only.tolist())
    assert index.mean_cosine(vectors[0]) == pytest.approx(float((vectors @ vectors[0]).mean()), abs=0.1)


@pytest.mark.parametrize("shape", [(0,), (0, 4)])
def test_a_matrix_takes_rows_of_both_parts_in_any_order(shape: tuple[int, ...], tmp_path: Path) -> None:
    def numbered(start: int, stop: int) -> NDArray[Any]:
        return np.broadcast_to(
            np.arange(start, stop, dtype=np.int64).reshape(-1, *[1] * (len(shape) - 1)),
            (stop - start, *shape[1:]),
        )

    matrix = Matrix(np.empty(shape, np.int64))
    matrix.add(numbered(0, 5))
    matrix.save(tmp_path / "matrix.npy")
    mapped = Matrix.load(tmp_path / "matrix.npy")
    mapped.add(numbered(5, 9))
    assert len(mapped) == 9
    taken = mapped.take(rows(8, 0, 5, 4))
    assert np.array_equal(taken, numbered(0, 9)[[8, 0, 5, 4]])
    assert len(mapped.kept(rows(1, 7))) == 2


def test_neighbours_are_counted_within_a_text_only() -> None:
    index = SequenceIndex.empty()
    index.add(terms(["red", "fox", "red", "fox"], [], ["fox"], ["red"], ["fox", "red"]))
    pairs = [("red", "fox"), ("fox", "red")]
    assert index.texts(rows(0, 1, 2, 3, 4)).count_pairs(pairs).tolist() == [
        [2, 1],
        [0, 0],
        [0, 0],
        [0, 0],
        [0, 1],
    ]
    assert index.texts(rows(4, 0)).count_pairs(pairs).tolist() == [[0, 1], [2, 1]]
    assert [len(index.texts(rows(0, 1, 4)).pairs(number)) for number in range(3)] == [2, 0, 1]


def test_sequences_survive_saving_and_dropping_rows(tmp_path: Path) -> None:
    index = SequenceIndex.empty()
    index.add(terms(["a", "b"], ["b", "a"], ["a", "b", "c"]))
    index.save(tmp_path)
    loaded = SequenceIndex.load(tmp_path).kept(rows(0, 2))
    assert loaded.texts(rows(0, 1)).count_pairs([("b", "c")]).tolist() == [[0], [1]]
