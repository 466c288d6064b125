from __future__ import annotations

import numpy as np
import pytest

from ragmemory.embedders.calibration import LOCAL, PAIRS, CosineScale, scale_of
from ragmemory.embedders.local import LocalEmbedder


def test_the_local_scale_is_as_measured() -> None:
    embedder = LocalEmbedder()
    questions = [embedder.query_model().embed(question, alike) for question, _ in PAIRS]
    answers = embedder.document_model().embed([answer for _, answer in PAIRS], [""] * len(PAIRS))
    measured = scale_of(np.array(questions, np.float32), answers)
    assert measured.mean == pytest.approx(LOCAL.mean, abs=5e-3)
    assert measured.deviation == pytest.approx(LOCAL.deviation, abs=5e-3)


def test_cosines_keep_their_order_and_their_distance_from_unrelated_ones() -> None:
    crowded = CosineScale(mean=0.75, deviation=0.03)
    placed = crowded.to_local(np.array([0.72, 0.75, 0.81], np.float32))
    assert placed == pytest.approx([LOCAL.mean + n * LOCAL.deviation for n in (-1, 0, 2)], abs=1e-5)


def test_a_model_without_any_deviation_is_taken_as_it_is() -> None:
    cosines = np.array([0.2, 0.9], np.float32)
    assert (CosineScale(mean=1.0, deviation=0.0).to_local(cosines) == cosines).all()


def alike(words: list[str]) -> list[float]:
    return [1.0] * len(words)
