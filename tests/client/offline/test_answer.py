"""The answer made of cards: in Markdown, as citations, and as candidates of the trace."""

from __future__ import annotations

from msgspec.structs import replace

from ragchat.answer import Answer
from ragchat.grounding.evidence import gather
from ragchat.grounding.judging import Closeness, Judgement
from ragchat.grounding.question import Question
from ragchat.offline.answer import EMPTY_MEMORY, NEAREST, NOTHING, answer_with, nothing
from ragchat.offline.windows import chosen, ranked
from ragchat.turn.passages import as_candidate
from ragcommon.contract.search import Hit
from tests.support.turns import ListMemory, hit

TESLA = hit("Nikola Tesla moved to New York.\n\nThat was in 1884.", title="Tesla", heading="Life > Youth")
EDISON = hit("Thomas Edison moved to New York in 1869.", chunk_id=2, score=0.2)
CERTAIN = Judgement(Closeness.GROUNDED, 0.9, {"late": 0.8}, [])


async def ask(question: str, *hits: Hit, judgement: Judgement = CERTAIN) -> Answer:
    shown, further = chosen(ranked(await gather(Question.of(question), hits, ListMemory())))
    return answer_with(shown, further, [as_candidate(found, 0.3) for found in hits], judgement)


async def test_an_answer_is_cards_with_numbers_places_and_text() -> None:
    answer = await ask("Who moved to New York?", TESLA, EDISON)
    assert answer.text == (
        "[1] 1.md:1–3  Life › Youth\n\n> Nikola Tesla moved to New York.  \n>  \n> That was in 1884."
        "\n\n[2] 2.md:1\n\n> Thomas Edison moved to New York in 1869."
    )
    assert [(card.n, card.location, card.heading) for card in answer.cards] == [
        (1, "1.md:1–3", "Life > Youth"),
        (2, "2.md:1", ""),
    ]
    assert [(found.n, found.quote, found.verified) for found in answer.citations] == [
        (1, "Nikola Tesla moved to New York.", True),
        (2, EDISON.text, True),
    ]
    assert (answer.grounded, answer.nearest, answer.missing, answer.further) == (True, [], [], None)
    assert answer.judgement == {"probability": 0.9, "late": 0.8}


async def test_the_nearest_are_no_citations_and_missing_words_are_named() -> None:
    near = Judgement(Closeness.NEAREST, 0.3, {}, ["school", "Prague"])
    answer = await ask("Which school did Tesla attend in Prague?", TESLA, judgement=near)
    assert answer.text.startswith(f"{NEAREST}\n\n[1] 1.md:")
    assert answer.text.endswith("\n\nNot mentioned there: school, Prague")
    assert (answer.grounded, answer.citations) == (False, [])
    assert [(found.n, found.chunk_id) for found in answer.nearest] == [(1, 1)]


async def test_of_many_missing_words_the_first_are_shown_and_all_are_data() -> None:
    words = [f"qualm{letter}" for letter in "abcdefghijkl"]
    near = Judgement(Closeness.NEAREST, 0.3, {}, words)
    answer = await ask("When did Tesla move?", TESLA, judgement=near)
    assert answer.missing == words
    assert answer.text.count("qualm") == 10
    assert answer.text.endswith("qualmj and 2 more")


async def test_what_more_shows_has_the_next_numbers_and_is_not_used_yet() -> None:
    many = [hit(f"The fee {n} is due in week {n} of the year.", chunk_id=n) for n in range(1, 6)]
    answer = await ask("When is the fee due?", *many)
    assert [card.n for card in answer.cards] == [1, 2, 3]
    assert [found.n for found in answer.citations] == [1, 2, 3]
    assert answer.further is not None
    assert (
        [card.n for card in answer.further.cards] == [found.n for found in answer.further.citations] == [4, 5]
    )
    used = {candidate.hit.chunk_id: candidate.n for candidate in answer.candidates if candidate.used}
    assert used == {1: 1, 2: 2, 3: 3}


async def test_further_cards_know_the_neighbours_and_the_names_of_those_that_are_shown() -> None:
    many = [
        replace(hit(f"The fee {n} is due in week {n} of the year.", chunk_id=n), uri=f"file:///{n}/a.md")
        for n in range(1, 6)
    ]
    answer = await ask("When is the fee due?", *many)
    assert answer.further is not None
    places = [card.location for card in (*answer.cards, *answer.further.cards)]
    assert places == [f"{n}/a.md:1" for n in range(1, 6)]


async def test_a_passage_that_is_shown_though_it_is_not_relevant_says_so() -> None:
    answer = await ask("Who moved to New York?", TESLA, EDISON)
    assert [candidate.reason for candidate in answer.candidates] == [
        "shown",
        "shown, though not relevant: its score 0.20 is below 0.30",
    ]


async def test_code_and_tables_are_shown_as_code_whatever_they_hold() -> None:
    code = replace(hit("```\nx = *a*\n```"), uri="file:///a.py")
    table = hit("| tent | seats |\n|---|---|\n| red | 4 |", chunk_id=2)
    block = hit("To prime the pump, run:\n\n```\nwater --prime\n```", chunk_id=3)
    for passage, question in ((code, "x"), (table, "red tent seats"), (block, "prime the pump")):
        answer = await ask(question, passage)
        fence = "`" * max(3, passage.text.count("```") and 4)
        assert answer.text.endswith(f"\n\n{fence}\n{passage.text}\n{fence}")


def test_nothing_is_shown_where_memory_has_nothing_on_the_topic() -> None:
    answer = nothing([as_candidate(hit("Tea is hot.", score=0.9), 0.3)], missing=["Tosca"])
    assert (answer.text, answer.grounded, answer.cards, answer.nearest) == (NOTHING, False, [], [])
    assert [candidate.used for candidate in answer.candidates] == [False]
    assert answer.missing == ["Tosca"]
    assert nothing([], empty=True).text == EMPTY_MEMORY


async def test_a_block_of_code_ends_where_it_ends_whatever_it_holds() -> None:
    passage = hit("````\n```\nwater --prime\n```\n````")
    answer = await ask("water --prime", passage)
    assert answer.text.endswith(f"\n\n`````\n{passage.text}\n`````")
