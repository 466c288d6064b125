"""Hits and scores follow from the chunks that are there, not from how the index came about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ragconfig.settings import load_settings
from ragmemory.embedders.local import LocalEmbedder
from ragmemory.search.index.chunk_index import ChunkIndex
from ragmemory.search.index.folder import IndexFolder
from ragmemory.search.index.saving import SavedIndex, next_merge
from ragmemory.search.index.segments import Segment
from ragmemory.search.queries import SearchRequest, parse
from ragmemory.search.retriever import Retriever
from ragmemory.search.sync import FEW, MANY
from ragmemory.settings import RankingSettings
from ragmemory.types.changes import Changes, Checkpoint

RANKING = load_settings(environ={}).table("ranking", RankingSettings)
DIMENSIONS = 128
EMBEDDER = LocalEmbedder()
WORDS = [first + second + third for first in "bdfgk" for second in "aeiou" for third in "lmnrst"]
# A few words are in most texts, and most words in few.
WEIGHTS = [1 / (1 + number) for number in range(len(WORDS))]


class History:
    """Texts that come and go, and the index that follows them."""

    def __init__(self, chance: Random, folder: Path) -> None:
        self.chance = chance
        self.vectors = np.random.default_rng(chance.randrange(100))
        self.saved = SavedIndex(IndexFolder(folder), "store")
        self.index = ChunkIndex(DIMENSIONS, RANKING)
        self.texts: dict[int, Any] = {}  # titles, texts and embeddings by chunk id
        self.hidden: list[tuple[int, int]] = []
        self.last_id = self.removals = 0

    def add(self, count: int, removed: Sequence[int] = ()) -> None:
        first = self.last_id + 1
        for number in range(first, first + count):
            words = self.chance.choices(WORDS, WEIGHTS, k=self.chance.randint(0, 30))
            vector = self.vectors.normal(size=DIMENSIONS)
            embedding = (vector / np.linalg.norm(vector)).astype("<f2").tobytes()
            self.texts[number] = (self.chance.choice(WORDS), " ".join(words), embedding)
        self.last_id += count
        self.removals += len(removed)
        checkpoint = Checkpoint(self.last_id, self.removals)
        self.index.apply(changes(self.texts, first, checkpoint, removed, self.hidden))
        for number in removed:
            del self.texts[number]

    def remove(self, share: float) -> None:
        self.add(0, self.chance.sample(sorted(self.texts), int(share * len(self.texts))))

    def hide(self, ranges: list[tuple[int, int]]) -> None:
        self.hidden = ranges
        self.add(0)

    def merge(self) -> None:
        while run := self.index.mergeable():
            assert self.index.replace(run, Segment.merge(run, [None] * len(run)))

    def save(self, most_segments: int = MANY) -> None:
        with self.saved.folder.locked():
            while (merge := next_merge(self.index, 1, 1 << 18, most_segments))[0]:
                assert self.index.replace(merge[0], self.saved.write(merge, lambda: False))
            self.saved.commit(*self.saved.describe(self.index))

    def open_again(self) -> None:
        self.saved = SavedIndex(self.saved.folder, "store")
        self.index = ChunkIndex(DIMENSIONS, RANKING)
        self.index.adopt(*self.saved.read())
        self.add(0)

    def rebuilt(self) -> ChunkIndex:
        index = ChunkIndex(DIMENSIONS, RANKING)
        index.apply(changes(self.texts, 0, Checkpoint(self.last_id, self.removals), [], self.hidden))
        return index

    def check(self) -> None:
        asked = [" ".join(self.chance.choices(WORDS, k=self.chance.randint(1, 6))) for _ in range(6)]
        vectors = self.vectors.normal(size=(6, DIMENSIONS)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        assert found(self.index, asked, vectors) == found(self.rebuilt(), asked, vectors)


def changes(
    texts: dict[int, Any],
    first: int,
    checkpoint: Checkpoint,
    removed: Sequence[int] = (),
    hidden: Sequence[tuple[int, int]] = (),
) -> Changes:
    ids = [number for number in texts if number >= first]
    titles, bodies, embeddings = ([texts[number][part] for number in ids] for part in range(3))
    none = [""] * len(ids)
    return Changes(checkpoint, ids, titles, none, bodies, none, embeddings, list(removed), list(hidden))


def found(index: ChunkIndex, questions: list[str], vectors: NDArray[np.float32]) -> list[Any]:
    """All that a question has of an index."""
    retriever = Retriever(index)
    words = " ".join(questions).split()
    hits = [
        retriever.search(SearchRequest(parse(question), vector, EMBEDDER, None, set(), 10), None)
        for question, one in zip(questions, vectors, strict=True)
        for vector in (one, None)
    ]
    corrected = retriever.corrections([words[0] + "e", words[1] + "t"], lambda _: False)
    return [hits, retriever.weights(words), retriever.word_weights(words), corrected]


@pytest.fixture(params=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is large is searched by its codes."""
    if request.param == "large":
        monkeypatch.setattr("ragmemory.search.index.vectors.ALL_EXACT", 100)
        monkeypatch.setattr("ragmemory.search.index.vectors.RESCORED", 40)
        monkeypatch.setattr("ragmemory.search.index.vectors.SHORTLIST", 100)
    return str(request.param)


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("seed", range(2))
def test_hits_and_scores_are_those_of_an_index_that_is_made_again(seed: int, tmp_path: Path) -> None:
    history = History(Random(seed), tmp_path / "index")
    for number in range(4):
        history.add(history.chance.randint(1, 150))
        history.check()
        history.add(history.chance.randint(1, 150))
        history.merge()
        history.check()
        history.remove(history.chance.choice([0.02, 0.1, 0.4]))
        history.check()
        history.save(history.chance.choice([FEW, MANY]))
        history.check()
        history.hide(history.chance.choice([[], [(1, 5)], [(3, history.last_id // 2)]]))
        history.check()
        if number % 2:
            history.open_again()
            history.check()


def test_neighbours_in_memory_are_merged_until_each_is_much_longer_than_the_next(tmp_path: Path) -> None:
    history = History(Random(1), tmp_path / "index")
    for count in (100, 10, 10, 3):
        history.add(count)
    assert [len(segment) for segment in history.index.segments] == [100, 10, 10, 3]
    assert [len(segment) for segment in history.index.mergeable()] == [10, 10, 3]
    history.merge()
    assert [len(segment) for segment in history.index.segments] == [100, 23]
    history.add(3)
    assert history.index.mergeable() == []
    history.add(10)
    history.merge()
    assert [len(segment) for segment in history.index.segments] == [136]
    history.save()
    history.add(100)
    assert history.index.mergeable() == []  # The older one is in a file.


def test_a_lost_file_that_is_filled_from_the_store_changes_nothing(tmp_path: Path) -> None:
    history = History(Random(1), tmp_path / "index")
    for _ in range(3):
        history.add(50)
        history.remove(0.1)
        history.save()
    lost = history.index.segments[1]
    assert lost.path is not None
    history.index.drop(lost.path)
    lost.path.unlink()
    for is_open_again in (False, True):
        if is_open_again:
            history.open_again()
        ids = [number for number in history.texts if lost.after < number <= lost.upto]
        there = {number: history.texts[number] for number in ids}
        history.index.fill(lost.after, lost.upto, changes(there, 0, Checkpoint()))
        history.check()
