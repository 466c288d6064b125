"""Other wordings of a question, and the search for them."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from ragchat.errors import MemoryUnavailable
from ragchat.llm.client import Model
from ragchat.llm.types import ModelEndpoint
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.passages import as_candidate
from ragchat.turn.retrieval import Retrieval
from ragchat.turn.rewriting import rewrite, search_again, standalone
from tests.client.llm.test_client import settings
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.turns import ListMemory, hit, turn

LIMITS = RetrievalLimits(top_k=2, min_score=0.3, seconds=5.0)


async def test_a_model_that_takes_too_long_is_not_waited_for() -> None:
    with OpenAIServer([Reply("late", hold_after=0)]) as server, anyio.fail_after(60):
        model = Model(ModelEndpoint("test-model", server.base_url), settings())
        await model.load()
        rewriting = await rewrite("Why?", model, "Reword.", 0.05)
        await model.aclose()
    assert rewriting.failure == "test-model did not rephrase the question within 0.05 s."
    assert not rewriting.wordings


async def test_a_busy_server_is_not_waited_for() -> None:
    with OpenAIServer([Reply(status=429, retry_after=1), Reply("Wherefore?")]) as server:
        model = Model(ModelEndpoint("test-model", server.base_url), settings(retries=1))
        rewriting = await rewrite("Why?", model, "Reword.", 60)
        await model.aclose()
    assert "accepts no more requests for now" in rewriting.failure
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("How hot is kiln 1200?", ["How hot is kiln 1200?"]),
        ("How hot is the kiln?", []),
        ("first point\nHow hot is kiln 1200?", ["How hot is kiln 1200?"]),
    ],
)
async def test_a_standalone_question_keeps_the_numbers_of_the_follow_up(
    reply: str, expected: list[str]
) -> None:
    before = turn("How hot is kiln 30?", "- first point\n- second point")
    with OpenAIServer([Reply(reply)]) as server:
        model = Model(ModelEndpoint("test-model", server.base_url), settings())
        rewriting = await standalone("And kiln 1200?", before, model, "Rewrite.", 60)
        await model.aclose()
    assert rewriting.wordings == expected


@pytest.mark.parametrize(
    ("question", "reply", "is_used"),
    [
        ("And the 2nd one?", "How hot is kiln B?", True),
        ("And the 12th one?", "How hot is kiln B?", True),
        ("What about [1]?", "What does the manual say about kiln B?", True),
        ("And [10, 12]?", "What does the manual say about kiln B?", True),
        ("The 2 of them?", "Are kiln A and kiln B hot?", True),
        ("Explain point 2.", "How does kiln B cool?", True),
        ("And at 5pm?", "How hot is the kiln at 5 pm?", True),
        ("And at 11pm?", "How hot is the kiln at 11 pm?", True),
        ("And 50kg?", "How long does the kiln take for 50 kg?", True),
        ("And 1200?", "How hot is kiln 1,200?", True),
        ("And 1.200?", "How hot is kiln 1200?", True),
        ("And 3.5 bar?", "How hot is the kiln at 3,5 bar?", True),
        ("And on 12.3.2024?", "How hot was the kiln on 12 March 2024?", True),
        ("And at 11pm?", "How hot is the kiln at 10 pm?", False),
        ("And kiln 20?", "How hot is kiln 1200?", False),
        ("And in 1990s?", "How hot was the kiln?", False),
    ],
)
async def test_of_the_numbers_those_that_refer_to_the_answer_before_may_be_replaced(
    question: str, reply: str, is_used: bool
) -> None:
    before = turn("How hot is kiln A?", "Kiln A is hot, kiln B cools.")
    with OpenAIServer([Reply(reply)]) as server:
        model = Model(ModelEndpoint("test-model", server.base_url), settings())
        rewriting = await standalone(question, before, model, "Rewrite.", 60)
        await model.aclose()
    assert rewriting.wordings == ([reply] if is_used else [])


async def test_the_searches_take_turns_and_each_passage_is_kept_once_with_its_best_score() -> None:
    first = [as_candidate(hit("tea", score=score, chunk_id=n), 0.3) for n, score in ((1, 0.2), (2, 0.1))]
    memory = ListMemory([hit("sea", score=0.9, chunk_id=3), hit("tea", score=0.8, chunk_id=2)])
    limits = replace(LIMITS, top_k=3)
    merged = await search_again(memory, Retrieval(first), ["a", "b"], limits)
    assert memory.asked == ["a", "b"]
    assert [(one.hit.chunk_id, one.used) for one in merged.candidates] == [(1, False), (3, True), (2, True)]
    # What the question itself found best is never displaced.
    merged = await search_again(memory, Retrieval(first), ["a", "b"], LIMITS)
    assert [one.hit.chunk_id for one in merged.candidates] == [1, 3]


async def test_a_memory_that_fails_meanwhile_leaves_what_was_found() -> None:
    first = Retrieval([as_candidate(hit("tea"), 0.3)])
    memory = ListMemory(error=MemoryUnavailable("it is gone"))
    assert await search_again(memory, first, ["a"], LIMITS) == first
