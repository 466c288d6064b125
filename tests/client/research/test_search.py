"""Several searches as one ranking."""

from __future__ import annotations

from msgspec.structs import replace

from ragchat.answer import Candidate
from ragchat.research.search import fused
from tests.support.turns import hit


def found(*numbers: int, score: float = 0.5) -> list[Candidate]:
    return [Candidate(hit(f"Text {n}.", chunk_id=n, score=score), True, "") for n in numbers]


def test_what_stands_high_in_more_rankings_comes_first_and_once_with_its_best_score() -> None:
    ranked = fused([found(1, 2, 3), found(2, 4, score=0.9)])
    assert [one.hit.chunk_id for one in ranked] == [2, 1, 4, 3]
    assert ranked[0].hit.score == 0.9


def test_what_a_model_wrote_is_left_out() -> None:
    [report, own] = found(1, 2)
    report = Candidate(replace(report.hit, metadata={"generated": True}), True, "")
    assert fused([[report, own]]) == [own]
