"""The real loading code on a tiny cross-encoder that is built here."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import UNSET

from ragcommon.contract.search import Hit
from ragconfig.settings import load_settings
from ragmemory.app import make_service
from ragmemory.errors import RerankerUnavailable
from ragmemory.search import reranking
from ragmemory.search.reranking import Reranker, RerankerSettings
from tests.support.memories import ORIGIN

pytest.importorskip("fastembed", reason="the extra `fastembed` is not installed")
pytest.importorskip("onnx", reason="the tests' package `onnx` is not installed")

from tests.support.onnx_models import cross_encoder_in

TEXT = "the car is parked in an automobile garage, the cat sleeps on a mat"
SYNONYMS = {"automobile": "car"}
PASSAGES = ["cat", "mat", "automobile", "garage"]


def hit(rank: int, text: str) -> Hit:
    return Hit(rank, 1 - rank / 10, rank, f"d{rank}", f"note:{rank}", "", "", 1, 1, text, {})


HITS = [hit(rank, text) for rank, text in enumerate(PASSAGES, 1)]


def reranker_of(model: Path | str, cache: Path, *, passages: int = 20, seconds: float = 20.0) -> Reranker:
    return Reranker(RerankerSettings("fastembed", str(model), passages, seconds, 1), cache)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cross_encoder_in(tmp_path_factory.mktemp("models") / "cross", TEXT, synonyms=SYNONYMS)


async def test_the_passage_that_says_the_same_comes_first_and_scores_stay(
    model: Path, tmp_path: Path
) -> None:
    best, *others = await reranker_of(model, tmp_path).rerank("car", HITS, set())
    assert best.text == "automobile"
    assert [one.rank for one in (best, *others)] == [1, 2, 3, 4]
    assert best.score == HITS[2].score
    given = [one.rerank_score for one in (best, *others)]
    assert all(isinstance(score, float) and 0 <= score <= 1 for score in given)


async def test_only_the_best_passages_are_judged_and_the_others_follow(model: Path, tmp_path: Path) -> None:
    found = await reranker_of(model, tmp_path, passages=3).rerank("garage car", HITS, set())
    assert found[0].text == "automobile"
    assert (found[-1].text, found[-1].rerank_score) == ("garage", UNSET)


async def test_passages_with_the_quoted_words_stay_before_the_others(model: Path, tmp_path: Path) -> None:
    found = await reranker_of(model, tmp_path).rerank("car", HITS, {2})
    assert [one.text for one in found[:2]] == ["mat", "automobile"]


async def test_a_download_is_not_waited_for_and_the_model_is_ready_later(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_load, load = anyio.Event(), reranking.load

    def slow(*arguments: Any) -> Any:
        anyio.from_thread.run(may_load.wait, token=token)
        return load(*arguments)

    token, before = anyio.lowlevel.current_token(), {*threading.enumerate()}
    monkeypatch.setattr(reranking, "load", slow)
    monkeypatch.setattr(reranking, "LOADING_SECONDS", 0.01)
    reranker = reranker_of(model, tmp_path)
    for _ in range(2):
        with pytest.raises(RerankerUnavailable, match="being loaded or downloaded"):
            await reranker.rerank("car", HITS, set())
    may_load.set()
    # That of an earlier test may be about to end.
    [loading] = [one for one in {*threading.enumerate()} - before if one.name == "reranker"]
    await anyio.to_thread.run_sync(loading.join)
    assert (await reranker.rerank("car", HITS, set()))[0].text == "automobile"


async def test_a_model_that_is_slow_is_not_waited_for_beyond_the_deadline(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_score = threading.Event()

    class Slow:
        def rerank(self, *_: object) -> list[float]:
            may_score.wait()
            return []

    monkeypatch.setattr(reranking, "load", lambda *_: Slow())
    with pytest.raises(RerankerUnavailable, match=r"longer than 0\.05 s"):
        await reranker_of(model, tmp_path, seconds=0.05).rerank("car", HITS, set())
    may_score.set()


async def test_a_model_that_cannot_be_loaded_is_not_tried_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = reranker_of(tmp_path / "nowhere", tmp_path)
    with pytest.raises(RerankerUnavailable, match="does not exist"):
        await reranker.rerank("car", HITS, set())
    monkeypatch.setattr(reranking, "load", lambda *_: pytest.fail("it was tried again"))
    with pytest.raises(RerankerUnavailable, match="does not exist"):
        await reranker.rerank("car", HITS, set())


async def test_a_query_is_reranked_and_without_the_model_keeps_its_order_with_a_notice(
    model: Path, tmp_path: Path
) -> None:
    results = {}
    for name in (model, tmp_path / "nowhere"):
        flags = {
            "reranker.kind": "fastembed",
            "reranker.model": str(name),
            "reranker.deadline_seconds": 20.0,
        }
        settings = load_settings(None, flags, {"RAGCHAT_HOME": str(tmp_path)}, tmp_path)
        async with make_service(settings) as service:
            for text in (
                "The automobile sleeps.",
                "The car, the car: a car is parked on a mat, in a garage.",
            ):
                await service.writer.inject(text, {}, ORIGIN)
            results[name] = await service.search.query("where sleeps the car", 1)
    reranked, plain = results.values()
    assert len(reranked.hits) == len(plain.hits) == 1
    assert reranked.hits[0].rerank_score is not UNSET
    assert reranked.notice == ""
    assert plain.hits[0].rerank_score is UNSET
    assert plain.notice.startswith("In the order of the search. The reranker ")
