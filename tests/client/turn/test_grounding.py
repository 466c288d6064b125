"""The judgement of what passages hold of a question, before and after an answer."""

from __future__ import annotations

import pytest

from ragchat.answer import Candidate
from ragchat.grounding.judging import Closeness
from ragchat.turn.grounding import Grounding, judge_passages
from ragchat.turn.passages import as_candidate
from ragchat.turn.retrieval import Retrieval
from ragcommon.contract.search import Hit
from tests.support.turns import ListMemory, hit

KILN = hit("The kiln of the potters is heated to 980 degrees.", chunk_id=1, title="Pottery")
CLAY = hit("Clay rests for a week before it is thrown.", chunk_id=2)
QUESTION = "How hot is the kiln of the potters?"


async def grounding(question: str, *hits: Hit, query: str = "") -> Grounding:
    """Compared by words alone."""
    retrieval = Retrieval([as_candidate(found, 0.3) for found in hits])
    return await judge_passages(question, query or question, retrieval, ListMemory())


@pytest.mark.parametrize(
    ("question", "score", "state"),
    [
        (QUESTION, 0.97, Closeness.GROUNDED),
        (QUESTION, 0.1, Closeness.NEAREST),
        ("To how many degrees is the kiln of the potters of Selb heated?", 0.95, Closeness.NEAREST),
        ("Does the oven reach its highest temperature?", 0.9, Closeness.NEAREST),
        ("Who composed the opera Tosca?", 0.01, Closeness.NOTHING),
    ],
)
async def test_neither_the_words_nor_the_score_of_the_search_decide_alone(
    question: str, score: float, state: Closeness
) -> None:
    assert (await grounding(question, hit(KILN.text, score=score))).state is state


async def test_nothing_found_is_nothing() -> None:
    assert (await grounding(QUESTION)).state is Closeness.NOTHING


async def test_a_name_in_the_title_of_a_passage_is_not_missing() -> None:
    named = hit(KILN.text, title="Selb")
    judged = await grounding("To how many degrees is the kiln of the potters of Selb heated?", named)
    assert (judged.state, judged.judgement.missing) == (Closeness.GROUNDED, [])


async def test_if_passages_come_close_those_below_the_score_are_used() -> None:
    clay = hit(CLAY.text, score=0.1, chunk_id=2)
    near = await grounding(QUESTION, KILN, clay)
    assert [(candidate.used, candidate.reason) for candidate in near.candidates][1] == (
        True,
        "among the nearest, though not relevant: its score 0.10 is below 0.30",
    )
    far = await grounding("Who composed the opera Tosca?", hit(CLAY.text, score=0.01, chunk_id=2))
    assert [candidate.used for candidate in far.candidates] == [False]


async def test_only_the_passages_that_an_answer_cites_count_for_it() -> None:
    asked = await grounding(QUESTION, KILN, CLAY)
    judgement, parts = await asked.of({4: KILN})
    assert (judgement.state, judgement.missing) == (Closeness.GROUNDED, ["hot"])
    assert [(part.n, part.chunk_id, part.quote, part.quote_start_line) for part in parts] == [
        (4, 1, KILN.text, 1)
    ]
    judgement, _ = await asked.of({5: CLAY})
    assert judgement.state is not Closeness.GROUNDED
    assert judgement.missing == ["hot", "kiln", "potters"]


async def test_passages_that_only_a_tool_found_are_compared_too() -> None:
    asked = await grounding(QUESTION, CLAY)
    judgement, parts = await asked.of({1: CLAY, 2: KILN})
    assert judgement.state is Closeness.GROUNDED
    assert {part.n: part.chunk_id for part in parts} == {2: 1}


async def test_two_neighbouring_passages_keep_their_own_numbers() -> None:
    asked = await grounding("kiln clay", KILN)
    other = hit(CLAY.text, chunk_id=3)
    _, parts = await asked.of({7: KILN, 9: other})
    assert [(part.n, part.quote) for part in parts] == [(7, KILN.text), (9, CLAY.text)]


async def test_words_of_earlier_questions_are_no_evidence() -> None:
    judged = await grounding(
        "and the opera of Selb?", KILN, query="and the opera of Selb? kiln potters degrees"
    )
    assert judged.state is not Closeness.GROUNDED


async def test_passages_that_the_user_attached_are_what_the_question_is_about() -> None:
    attached = Grounding.of_attached([Candidate(KILN, True, "attached", 1)])
    judgement, parts = await attached.of({1: KILN})
    assert (attached.state, judgement.state, parts) == (Closeness.GROUNDED, Closeness.GROUNDED, [])


async def test_in_a_small_memory_the_only_passage_that_comes_close_is_not_grounded_for_that() -> None:
    """All others are unrelated there."""
    roses = hit("## Roses\n\nCut the roses in March.", score=0.65)
    others = [hit(f"Unrelated text {number}.", chunk_id=number, score=0.0) for number in range(2, 6)]
    judged = await grounding("Are the roses watered in winter?", roses, *others)
    assert (judged.state, judged.judgement.missing) == (Closeness.NEAREST, ["watered", "winter"])
