"""Points of a map. Covers `ragmemory.search.projection`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ragmemory.search.projection import clusters, layout


def topics(count: int, size: int) -> NDArray[Any]:
    """(count * size, 64) vectors of unit length, around as many directions as topics, in turns."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(count, 64))
    vectors = np.tile(centres, (size, 1)) + 0.5 * random.normal(size=(count * size, 64))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def points_of(vectors: NDArray[Any]) -> NDArray[Any]:
    [points] = [found for found in layout(vectors) if found is not None]
    return points


def test_texts_of_one_topic_are_one_cluster_of_the_map() -> None:
    points = points_of(topics(6, 50))
    assert points.shape == (300, 2)
    assert 0.9 < np.abs(points).max() <= 1
    found = clusters(points, 6).reshape(50, 6)
    assert (found == found[0]).all()
    assert len(set(found[0].tolist())) == 6


def test_the_same_vectors_give_the_same_map() -> None:
    vectors = topics(3, 20)
    assert np.array_equal(points_of(vectors), points_of(vectors))


@pytest.mark.parametrize("count", [1, 2, 3, 17])
def test_few_vectors_and_equal_ones_have_a_map(count: int) -> None:
    for vectors in (topics(count, 1), np.repeat(topics(1, 1), count, axis=0)):
        points = points_of(vectors)
        assert points.shape == (count, 2)
        assert np.isfinite(points).all()
        assert len(clusters(points, 3)) == count


def test_the_work_comes_in_short_pieces() -> None:
    assert sum(found is None for found in layout(topics(6, 100))) > 10
