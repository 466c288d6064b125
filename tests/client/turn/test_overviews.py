"""Outlines and comparisons of documents in a real memory: which document or place a name means.

Covers `ragchat.turn.overviews` and `ragchat.offline.places`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ragchat.memory.client import MemoryClient
from ragchat.offline.lists import MOST_ITEMS
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.offline import answer_offline
from ragchat.turn.retrieval import Memory, retrieve
from ragchat.turn.scope import Scope
from ragchat.types import Answer
from tests.support.memory import memory_in

LIMITS = RetrievalLimits(top_k=8, min_score=0.3, seconds=30.0)
DOCUMENTS = {
    "wren.md": "# The boat\n\nShe is kept on the lower lake.\n\n## Sails\n\nThe mainsail is red.\n",
    "hut-2021.md": "# Hut rules 2021\n\n## Keys\n\nThe key is in the shed.\n\n## Wood\n\nTwo crates a day.\n",
    "hut-2023.md": "# Hut rules 2023\n\n## Keys\n\nThe key is with Nora.\n\n## Wood\n\nTwo crates a day.\n",
}


TRIPS = "day,port,skipper\n3 May,Kiel,Nora\n4 May,Damp,Max\n9 May,Bagenkop,Nora\n"


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MemoryClient]:
    async with memory_in(tmp_path) as memory:
        for name, text in DOCUMENTS.items():
            await memory.inject(text, {"uri": f"file:///notes/{name}"})
        yield memory


async def ask(question: str, memory: Memory) -> Answer:
    return await answer_offline(question, question, await retrieve(memory, question, LIMITS), memory, LIMITS)


@pytest.mark.parametrize(
    "question",
    [
        "Summarise wren.md",
        "summarise the boat",
        "outline of notes/wren.md",
        "What is in wren?",
        "Worum geht es in wren.md?",
    ],
)
async def test_an_outline_of_a_document_by_its_name_or_title(question: str, memory: MemoryClient) -> None:
    answer = await ask(question, memory)
    assert answer.text.startswith(
        "- **The boat**: She is kept on the lower lake. [1]\n  - **Sails**: The mainsail is red. [2]\n"
    )
    assert answer.grounded
    assert [(found.n, found.quote_start_line, found.verified) for found in answer.citations] == [
        (1, 3, True),
        (2, 7, True),
    ]
    assert all(found.chunk_id for found in answer.citations)


async def test_a_part_of_a_name_is_enough_only_where_an_outline_is_certainly_asked_for(
    memory: MemoryClient,
) -> None:
    assert (await ask("Summarise the 2021 rules", memory)).text.startswith("- **Hut rules 2021**")
    assert "- **Hut rules" not in (await ask("What is in 2021?", memory)).text


async def test_a_name_of_two_documents_is_not_guessed(memory: MemoryClient) -> None:
    assert "- **Hut rules" not in (await ask("Summarise the hut rules", memory)).text


async def test_a_short_section_is_quoted_whole(memory: MemoryClient) -> None:
    answer = await ask("Summarise sails", memory)
    assert answer.text.startswith("> ## Sails  \n>\n> The mainsail is red.  \n\n[1]")
    assert [found.quote for found in answer.citations] == ["## Sails\n\nThe mainsail is red."]


async def test_a_document_outside_the_scope_has_no_outline(memory: MemoryClient) -> None:
    scope = Scope(memory)
    await scope.narrow("hut-2021.md")
    assert not (await ask("Summarise wren.md", scope)).grounded
    assert (await ask("Summarise hut-2021.md", scope)).grounded


async def test_two_documents_are_compared_by_what_only_one_of_them_says(memory: MemoryClient) -> None:
    answer = await ask("What changed between hut-2021.md and hut-2023.md?", memory)
    assert answer.text.startswith(
        "**Hut rules 2021**\n\n> The key is in the shed. [1]\n\n"
        "**Hut rules 2023**\n\n> The key is with Nora. [2]"
    )
    assert "Two crates" not in answer.text
    assert [(found.quote_start_line, found.heading, found.verified) for found in answer.citations] == [
        (5, "Hut rules 2021 > Keys", True),
        (5, "Hut rules 2023 > Keys", True),
    ]


async def test_neighbouring_differences_are_one_quotation(memory: MemoryClient) -> None:
    await memory.inject("# Kite 1\n\nIt has two lines. It is blue.\n", {"uri": "file:///kite-1.md"})
    await memory.inject(
        "# Kite 2\n\nIt has four lines. It is red.\n\nIt folds.\n", {"uri": "file:///kite-2.md"}
    )
    answer = await ask("Compare kite-1 and kite-2", memory)
    assert [found.quote for found in answer.citations] == [
        "It has two lines. It is blue.",
        "It has four lines. It is red.",
        "It folds.",
    ]
    assert all(found.verified for found in answer.citations)


async def test_two_documents_are_compared_by_a_topic(memory: MemoryClient) -> None:
    answer = await ask("What changed in the wood between hut-2021 and hut-2023?", memory)
    assert answer.grounded
    assert [found.quote for found in answer.citations] == ["Two crates a day."] * 2


async def test_two_things_are_quoted_under_their_names(memory: MemoryClient) -> None:
    await memory.inject("The oak table seats four.", {"uri": "note:oak", "title": "Oak"})
    await memory.inject("The elm table seats eight.", {"uri": "note:elm", "title": "Elm"})
    answer = await ask("Compare the table of oak and elm", memory)
    assert answer.text.startswith(
        "**table of oak**\n\n> The oak table seats four. [1]\n\n**elm**\n\n> The elm table seats eight. [2]"
    )
    assert (answer.grounded, answer.missing) == (True, [])


async def test_a_thing_that_memory_does_not_have_is_said_to_be_missing(memory: MemoryClient) -> None:
    answer = await ask("Compare the mainsail and the outboard", memory)
    assert "**outboard**\n\nNothing in your documents is about this." in answer.text
    assert (answer.grounded, answer.citations, answer.missing) == (False, [], ["outboard"])
    assert [found.quote for found in answer.nearest] == ["The mainsail is red."]


async def test_a_sentence_about_both_things_is_quoted_once(memory: MemoryClient) -> None:
    await memory.inject("Larch dries faster than spruce.", {"uri": "note:wood"})
    assert "**larch**" not in (await ask("Compare larch and spruce", memory)).text


async def test_a_list_of_what_records_hold_has_the_matching_records(memory: MemoryClient) -> None:
    await memory.inject(TRIPS, {"uri": "file:///notes/trips.csv"})
    answer = await ask("List all trips of Nora", memory)
    assert answer.text.startswith(
        "> day: 3 May · port: Kiel · skipper: Nora  \n> day: 9 May · port: Bagenkop · skipper: Nora [1]"
    )
    assert (answer.grounded, answer.missing) == (True, [])
    assert [(found.quote_start_line, found.verified) for found in answer.citations] == [(2, True), (4, True)]


async def test_of_many_matching_records_the_first_are_shown_with_their_number(memory: MemoryClient) -> None:
    rows = "".join(f"{day} May,Nora,{day * 3} miles\n" for day in range(1, MOST_ITEMS + 6))
    await memory.inject(f"day,skipper,distance\n{rows}", {"uri": "file:///notes/trips.csv"})
    answer = await ask("List all trips of Nora", memory)
    assert len(answer.citations) == MOST_ITEMS
    assert f"{MOST_ITEMS} of {MOST_ITEMS + 5} rows shown." in answer.text


async def test_matching_records_without_all_that_is_asked_for_are_the_nearest(memory: MemoryClient) -> None:
    await memory.inject(TRIPS, {"uri": "file:///notes/trips.csv"})
    answer = await ask("List all regattas of Nora", memory)
    assert not answer.grounded
    assert [found.quote_start_line for found in answer.nearest] == [2, 4]
    assert answer.missing == ["regattas"]
