"""The answer without a model: grounded, nearest, or nothing, through a memory that answers from lists."""

from __future__ import annotations

from ragchat.errors import MemoryUnavailable
from ragchat.offline.answer import EMPTY_MEMORY, NEAREST, NOTHING
from ragchat.offline.windows import MAX_NEAREST
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.offline import answer_offline
from ragchat.turn.retrieval import retrieve
from ragchat.types import Answer, Hit
from tests.support.turns import ListMemory, hit

LIMITS = RetrievalLimits(top_k=2, min_score=0.3, seconds=5.0)
BOILER = hit("The boiler needs a pressure of 1.2 bar.", chunk_id=1)
KEYS = hit("Spare keys are kept by Carla.", chunk_id=2, score=0.2)
TENT = hit("The marquee cannot be larger, since the lawn is small.", chunk_id=3, score=0.1)


class ForgetfulMemory(ListMemory):
    """Fails to compare."""

    async def similarities(self, query: str, texts: object) -> list[float]:
        raise MemoryUnavailable(f"it is gone: {query} {texts}")


async def ask(question: str, memory: ListMemory) -> Answer:
    retrieval = await retrieve(memory, question, LIMITS)
    return await answer_offline(question, question, retrieval, memory, LIMITS)


def places(answer: Answer) -> list[int]:
    return [citation.chunk_id for citation in answer.nearest]


async def test_a_grounded_answer_asks_memory_once() -> None:
    memory = ListMemory([BOILER, KEYS])
    answer = await ask("Which pressure does the boiler need?", memory)
    assert (answer.grounded, answer.nearest) == (True, [])
    assert (len(memory.asked), memory.compared) == (1, 0)


async def test_the_nearest_come_by_their_meaning_and_from_more_passages() -> None:
    memory = ListMemory([KEYS, BOILER, TENT])
    answer = await ask("Why is the pavilion no larger?", memory)
    assert answer.text.startswith(NEAREST)
    assert (answer.grounded, answer.citations) == (False, [])
    assert places(answer)[0] == TENT.chunk_id  # not among the first two
    assert TENT.chunk_id in [candidate.hit.chunk_id for candidate in answer.candidates if candidate.used]


async def test_a_passage_that_is_quoted_though_it_is_not_relevant_says_so() -> None:
    answer = await ask("Why is the pavilion no larger?", ListMemory([KEYS, BOILER, TENT]))
    reasons = {candidate.hit.chunk_id: candidate.reason for candidate in answer.candidates}
    assert reasons[TENT.chunk_id] == "quoted, though not relevant: its score 0.10 is below 0.30"
    assert reasons[BOILER.chunk_id] == "quoted"
    answer = await ask("Who keeps the spare keys?", ListMemory([KEYS]))
    assert (answer.grounded, answer.candidates[0].reason) == (True, "quoted")


async def test_the_best_passage_is_among_the_nearest_if_it_is_relevant() -> None:
    lawns = [hit(f"The marquee {n} is on the lawn today.", chunk_id=n) for n in range(4, 4 + MAX_NEAREST)]
    memory = ListMemory([BOILER, TENT, *lawns])
    answer = await ask("How large is the lawn of the marquee for boilers in Spain?", memory)
    assert places(answer)[:2] == [BOILER.chunk_id, TENT.chunk_id]
    assert len(answer.nearest) <= MAX_NEAREST
    assert "boilers" not in answer.missing


async def test_a_question_far_from_memory_has_no_quotation() -> None:
    answer = await ask("Who composed Tosca?", ListMemory([BOILER]))
    assert (answer.text, answer.nearest, answer.grounded) == (NOTHING, [], False)


async def test_a_question_without_a_word_has_no_quotation() -> None:
    answer = await ask("😀 ?!", ListMemory([BOILER]))
    assert (answer.text, answer.grounded) == (NOTHING, False)


async def test_of_many_words_that_are_not_mentioned_the_first_are_shown() -> None:
    strange = " ".join(f"qualm{letter}" for letter in "abcdefghijkl")
    answer = await ask(f"Which pressure does the boiler need? {strange}", ForgetfulMemory([BOILER]))
    assert answer.missing == strange.split()
    assert answer.text.count("qualm") == 10
    assert "*qualmj* and 2 more" in answer.text


async def test_an_empty_memory_says_so() -> None:
    assert (await ask("Who composed Tosca?", ListMemory(empty=True))).text == EMPTY_MEMORY


async def test_a_memory_that_cannot_compare_leaves_the_nearest_by_words() -> None:
    answer = await ask("Which plumber mends boilers cheaply on Sundays?", ForgetfulMemory([BOILER]))
    assert places(answer) == [BOILER.chunk_id]
    assert answer.missing == ["plumber", "mends", "cheaply", "Sundays"]


async def test_corrected_words_are_the_words_of_the_question() -> None:
    memory = ListMemory([BOILER], corrections={"boilr": "boiler", "presure": "pressure"})
    answer = await ask("Which presure does the boilr need?", memory)
    assert (answer.grounded, answer.missing) == (True, [])


async def test_every_citation_names_a_passage_that_was_found() -> None:
    found: list[Hit] = [BOILER, KEYS, TENT]
    answer = await ask("Where may the marquee stand on Sundays?", ListMemory(found))
    numbers = {candidate.hit.chunk_id: candidate.n for candidate in answer.candidates if candidate.used}
    assert {citation.chunk_id: citation.n for citation in answer.nearest} == numbers
