"""The judgement of what passages hold of a question, before and after an answer."""

from __future__ import annotations

import pytest

from ragchat.turn.grounding import Grounding, State, judge_passages
from ragchat.turn.passages import judge
from ragchat.turn.retrieval import Retrieval
from ragchat.types import Hit
from tests.support.turns import hit

KILN = hit("The kiln of the potters is heated to 980 degrees.", chunk_id=1, title="Pottery")
CLAY = hit("Clay rests for a week before it is thrown.", chunk_id=2)


def grounding(question: str, *hits: Hit, query: str = "", min_score: float = 0.3) -> Grounding:
    return judge_passages(question, query or question, Retrieval([judge(found, min_score) for found in hits]))


@pytest.mark.parametrize(
    ("question", "score", "state"),
    [
        ("How hot is the kiln of the potters?", 0.9, State.GROUNDED),
        ("How hot is the kiln of the potters?", 0.1, State.GROUNDED),  # the words decide, not the score
        ("Which fuel did the kiln of the potters at Selb burn in 1910?", 0.9, State.NEAREST),
        ("Which fuel did the kiln of the potters at Selb burn in 1910?", 0.1, State.NEAREST),
        ("Who composed Tosca?", 0.9, State.NEAREST),  # near by meaning
        ("Who composed Tosca?", 0.1, State.NOTHING),
    ],
)
def test_the_state_follows_words_and_then_scores(question: str, score: float, state: State) -> None:
    found = hit(KILN.text, score=score)
    assert grounding(question, found).state is state


def test_nothing_found_is_nothing() -> None:
    assert grounding("How hot is the kiln?").state is State.NOTHING


def test_a_passage_below_the_score_is_used_if_it_holds_the_answer_or_is_among_the_nearest() -> None:
    kiln, clay = hit(KILN.text, score=0.1, chunk_id=1), hit(CLAY.text, score=0.1, chunk_id=2)
    held = grounding("How hot is the kiln of the potters?", kiln, clay)
    assert [candidate.used for candidate in held.candidates] == [True, False]
    near = grounding("Which fuel does the kiln burn on Sundays?", kiln, clay)
    assert [candidate.used for candidate in near.candidates] == [True, True]
    said = "among the nearest, though not relevant: its score 0.10 is below 0.30"
    assert near.candidates[0].reason == said
    assert not any(candidate.used for candidate in grounding("Who composed Tosca?", kiln).candidates)


def test_only_the_cited_passages_count_for_an_answer() -> None:
    judged = grounding("How hot is the kiln of the potters?", KILN, CLAY)
    assert judged.holds_answer([KILN])
    assert not judged.holds_answer([CLAY])
    assert (judged.missing([KILN]), judged.missing([CLAY])) == ([], ["kiln", "potters"])


def test_the_title_of_a_passage_holds_words_too() -> None:
    assert grounding("Is pottery heated?", KILN).missing([KILN]) == []


def test_the_nearest_have_the_numbers_and_the_lines_of_their_quotations() -> None:
    [citation] = grounding("How hot is the kiln of the potters?", CLAY, KILN).nearest({4: KILN, 5: CLAY})
    assert (citation.n, citation.chunk_id, citation.quote_start_line) == (4, 1, 1)


def test_carried_words_are_no_evidence() -> None:
    assert grounding("and Selb?", KILN, query="and Selb? kiln potters degrees").state is State.NEAREST
