"""The answer without a model, from a real memory: grounded, nearest, or nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from ragchat.answer import Answer
from ragchat.errors import MemoryUnavailable
from ragchat.memory.client import MemoryClient
from ragchat.offline.answer import EMPTY_MEMORY, NEAREST, NOTHING
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.offline import answer_offline
from ragchat.turn.retrieval import Memory, retrieve
from ragcommon.contract.search import Comparison
from tests.support.memory import memory_in, memory_of
from tests.support.turns import ListMemory, hit

LIMITS = RetrievalLimits(top_k=8, min_score=0.3, seconds=30.0)
DOCUMENTS = {
    "boiler.md": (
        "# Boiler\n\n## Pressure\n\nThe boiler needs a pressure of 1.2 bar.\nTop it up in autumn.\n\n"
        "## Service\n\nCarl from Selb services the boiler in March.\n"
    ),
    "crane.txt": "The gearbox of the crane holds 40 litres of oil.\nIt is changed each year.\n",
    "nas.md": "| What | Room | Price |\n|---|---|---|\n| NAS | cellar | 300 EUR |\n| TV | attic | 8 EUR |\n",
    "plum.md": "Plums ripen in August. We dry them on the roof, and cook jam.\n",
    "lists/server.toml": "[server]\n# Where it listens.\nport = 8080\n# Seconds.\ntimeout = 30\n",
}
GREEN = hit("The boiler needs a pressure of 1.2 bar.", chunk_id=1)


class ForgetfulMemory(ListMemory):
    """Fails to compare."""

    async def compare(self, *arguments: object) -> Comparison:
        raise MemoryUnavailable(f"it is gone: {arguments}")


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MemoryClient]:
    async with memory_of(tmp_path, DOCUMENTS) as memory:
        yield memory


async def ask(question: str, memory: Memory) -> Answer:
    return await answer_offline(question, question, await retrieve(memory, question, LIMITS), memory, LIMITS)


@pytest.mark.parametrize(
    ("question", "best", "place"),
    [
        ("Which pressure does the boiler need?", "The boiler needs a pressure of 1.2 bar.", "boiler.md:"),
        ("Who services the boiler?", "Carl from Selb services the boiler in March.", "boiler.md:"),
        ("In which room is the NAS?", "| NAS | cellar | 300 EUR |", "nas.md:1–4"),
        ("Which port does the server use?", "port = 8080", "server.toml:"),
    ],
)
async def test_what_answers_is_on_the_first_card_where_it_stands(
    question: str, best: str, place: str, memory: MemoryClient
) -> None:
    answer = await ask(question, memory)
    first = answer.cards[0]
    assert first.text[slice(*first.best)] == best
    assert first.location.startswith(place)
    assert (answer.grounded, answer.missing, answer.nearest) == (True, [], [])
    lines = DOCUMENTS[next(name for name in DOCUMENTS if name.endswith(place.split(":")[0]))].split("\n")
    for citation in answer.citations:
        if citation.n == 1:
            assert citation.quote_start_line is not None
            assert citation.quote.split("\n")[0] == lines[citation.quote_start_line - 1]


async def test_cards_are_in_the_order_of_their_passages_and_citations_have_their_numbers(
    memory: MemoryClient,
) -> None:
    answer = await ask("Is the boiler or the crane serviced?", memory)
    assert [card.n for card in answer.cards] == list(range(1, len(answer.cards) + 1))
    numbers = {candidate.hit.chunk_id: candidate.n for candidate in answer.candidates if candidate.used}
    places = answer.citations or answer.nearest
    assert {citation.chunk_id: citation.n for citation in places} == numbers
    assert {card.chunk_id for card in answer.cards} <= numbers.keys()


async def test_a_name_that_stands_nowhere_makes_it_the_nearest(memory: MemoryClient) -> None:
    answer = await ask("How many litres of oil does the gearbox of the Titanic hold?", memory)
    assert answer.text.startswith(f"{NEAREST}\n\n[1] crane.txt:1")
    assert "Not mentioned there: Titanic" in answer.text
    assert (answer.grounded, answer.citations, answer.missing) == (False, [], ["Titanic"])
    assert answer.nearest[0].uri.endswith("crane.txt")


async def test_a_name_that_stands_only_in_passages_that_are_not_shown_makes_it_the_nearest(
    tmp_path: Path,
) -> None:
    documents = {
        "interview.txt": "The town where I was born is Breslau. My sister was born in that town too.\n",
        "novel.txt": "Barnaby looked at the sea, and the gulls, and the harbour, and said nothing at all.\n",
    }
    async with memory_of(tmp_path, documents) as memory:
        answer = await ask("In which town was the sister of Barnaby born?", memory)
    assert [card.location for card in answer.cards] == ["interview.txt:1"]
    assert (answer.grounded, answer.missing) == (False, ["Barnaby"])


@pytest.mark.parametrize("question", ["Who composed the opera Tosca?", "😀 ?!"])
async def test_a_question_far_from_memory_has_no_card(question: str, memory: MemoryClient) -> None:
    answer = await ask(question, memory)
    assert (answer.text, answer.cards, answer.nearest, answer.grounded) == (NOTHING, [], [], False)


async def test_a_word_that_is_like_none_in_memory_has_no_card(tmp_path: Path) -> None:
    salad = (
        "# Kartoffelsalat\n\nZutaten: Kartoffeln, 200 ml Rinderbrühe, 3 EL Weißweinessig, 1 Zwiebel, "
        "Schnittlauch.\n"
    )
    tax = "# Steuer 2023\n\nSteuerberater: Jürgen Großmann, Arbeitszimmer: 14,2 m² von 78 m²\n"
    async with memory_of(tmp_path, {"salad.md": salad, "tax.md": tax}) as memory:
        assert (await ask("Grumpfel", memory)).text == NOTHING


async def test_where_passages_have_few_of_the_words_the_nearest_by_meaning_are_shown(
    memory: MemoryClient,
) -> None:
    answer = await ask("What became of the plum trees of our neighbours?", memory)
    assert "We dry them on the roof" in answer.text
    assert answer.text.startswith(NEAREST)


async def test_documents_without_anything_of_the_question_are_not_shown(memory: MemoryClient) -> None:
    answer = await ask("What became of the plum trees of our neighbours?", memory)
    assert [card.location for card in answer.cards] == ["plum.md:1"]


async def test_corrected_words_are_the_words_of_the_question(memory: MemoryClient) -> None:
    answer = await ask("Which presure does the boilr need?", memory)
    assert (answer.grounded, answer.missing) == (True, [])


async def test_an_empty_memory_says_so() -> None:
    assert (await ask("Who composed Tosca?", ListMemory(empty=True))).text == EMPTY_MEMORY


async def test_memory_is_asked_once_where_a_passage_has_the_words() -> None:
    memory = ListMemory([GREEN])
    assert (await ask("Which pressure does the boiler need?", memory)).cards
    assert (len(memory.asked), memory.compared) == (1, 1)


async def test_a_memory_that_cannot_compare_leaves_the_cards_by_words() -> None:
    answer = await ask("Which pressure does the boiler need?", ForgetfulMemory([GREEN]))
    assert [card.text for card in answer.cards] == [GREEN.text]
    answer = await ask("Who mends the pressure of the boiler?", ForgetfulMemory([GREEN]))
    assert [card.text for card in answer.cards] == [GREEN.text]


async def test_without_vectors_of_words_the_similarity_of_passages_decides() -> None:
    class SimilarMemory(ListMemory):
        async def compare(self, query: str, texts: Sequence[str], words: Sequence[str] = ()) -> Comparison:  # noqa: ARG002
            return Comparison([0.8] * len(texts))

    days = hit("The employees get thirty days of holiday each year.", score=0.3)
    answer = await ask("Wie viele Urlaubstage gibt es?", SimilarMemory([days]))
    assert [card.text for card in answer.cards] == [days.text]


async def test_rows_of_links_between_notes_are_read(tmp_path: Path) -> None:
    table = "| Who | Town |\n|---|---|\n| [[Anna]] | [[Berlin]] |\n| [[Ben]] | [[Selb]] |\n"
    async with memory_of(tmp_path, {"people.md": table}) as memory:
        card = (await ask("Which town is that of Ben?", memory)).cards[0]
    assert card.text[slice(*card.best)] == "| [[Ben]] | [[Selb]] |"


async def test_the_text_of_cards_is_that_of_the_documents_with_very_long_lines(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(14_000))
    text = f"{words[:50_000]} the capacitor has 47 farad {words[50_000:]}\n"
    async with memory_in(tmp_path) as memory:
        await memory.inject(text, {"uri": "file:///notes/long.txt"})
        answer = await ask("How many farad has the capacitor?", memory)
    assert "the capacitor has 47 farad" in answer.cards[0].text
    assert all(card.text in text for card in answer.cards)
    assert sum(len(card.text) for card in answer.cards) < 2_500


async def test_only_the_first_part_of_a_very_long_question_is_looked_at(memory: MemoryClient) -> None:
    answer = await ask("Which pressure does the boiler need? " + "plums jam roof " * 30_000, memory)
    assert any("1.2 bar" in card.text for card in answer.cards)


async def test_passages_without_anything_in_common_with_a_question_are_not_offered_as_further_ones(
    memory: MemoryClient,
) -> None:
    answer = await ask("Which pressure does the boiler need?", memory)
    offered = answer.further.cards if answer.further else []
    assert all(card.location.startswith("boiler.md") for card in [*answer.cards, *offered])


CHAT = """\
[09/06/2025, 08:50:11] Gwen: The lower gate is open again. Please close it behind you, because of the dog.
[09/06/2025, 08:52:40] Bettina: Will do. And thanks to whoever has mended the hinge, it squeaked for years!
[09/06/2025, 08:55:36] Col: Bonfires: when are they allowed again? My hedge cuttings are a fire hazard.
[09/06/2025, 09:20:14] Gwen: October to March, and only on the first Saturday of the month. Not now.
[09/06/2025, 09:21:01] Col: Fine. I shall take them to the yard then, it is open until six on weekdays.
[15/06/2025, 16:42:07] Gwen: Thanks to everybody who helped with the skip. It took four loads of bramble.
"""


async def test_a_card_of_a_conversation_shows_the_replies_to_a_question(tmp_path: Path) -> None:
    async with memory_of(tmp_path, {"allotment.txt": CHAT}) as memory:
        first = (await ask("When are bonfires allowed?", memory)).cards[0]
        last = (await ask("How many loads of bramble did the skip take?", memory)).cards[0]
    assert "Bonfires: when are they allowed" in first.text
    assert "only on the first Saturday of the month" in first.text
    assert first.location == "allotment.txt:3–6"
    assert (last.location, last.text) == ("allotment.txt:6", CHAT.splitlines()[-1])


async def test_a_short_note_is_shown_to_its_end_if_only_its_title_has_the_words(tmp_path: Path) -> None:
    day = (
        "<< [[2024-04-0{}]] | [[2024-04-0{}]] >>\n\n# Notes\n\n## Tasks\n\nWater plants.\n\n"
        "## Events\n\nTea with Mei.\n"
    )
    documents = {f"2024-04-0{number}.md": day.format(number - 1, number + 1) for number in range(3, 7)}
    async with memory_of(tmp_path, documents) as memory:
        named = (await ask("What did I do on 2024-04-05?", memory)).cards[0]
        other = (await ask("When did I have tea with Mei?", memory)).cards[0]
    assert (named.location, "Tea with Mei." in named.text) == ("2024-04-05.md:1–11", True)
    assert "Water plants." not in other.text


async def test_a_question_in_another_language_gets_passages_of_the_document_that_it_names(
    tmp_path: Path,
) -> None:
    house = "# Hausordnung Lindenhof\n\n## Hof\n\nGegrillt wird nur auf dem Kies, mit Gas oder Strom.\n"
    lease = "# Lease\n\nNo charcoal is stored in the house, and the yard is swept by all.\n"
    async with memory_of(tmp_path, {"hausordnung.md": house, "lease.md": lease}) as memory:
        asked = "Is a charcoal barbecue ever tolerated by those who run the Lindenhof residence downtown?"
        answer = await ask(asked, memory)
    assert not answer.grounded
    assert {card.location.partition(":")[0] for card in answer.cards} == {"hausordnung.md"}


CODE = {
    "ends.py": "import os\n\n\nclass WebSocketEndpoint:\n    scope = 4\n\n    def __await__(self): ...\n",
    "use.py": "def run(app):\n    app.add(WebSocketEndpoint)\n",
    "ends.md": "# Endpoints\n\nThe WebSocketEndpoint class is a wrapper for the messages of a socket.\n",
}


async def test_a_symbol_that_is_defined_on_the_first_card_is_grounded(tmp_path: Path) -> None:
    async with memory_of(tmp_path, CODE) as memory:
        answer = await ask("In which library is WebSocketEndpoint defined?", memory)
        other = await ask("In which library is WebSocketEndpoint?", memory)
    assert answer.grounded
    card = answer.cards[0]
    assert (card.text[slice(*card.best)], card.heading) == ("class WebSocketEndpoint:", "WebSocketEndpoint")
    assert not other.grounded


async def test_a_name_of_code_is_found_by_a_question_in_another_language(tmp_path: Path) -> None:
    async with memory_of(tmp_path, CODE) as memory:
        answer = await ask("In welcher Datei steht die Klasse WebSocketEndpoint?", memory)
    assert answer.cards[0].location.startswith("ends.py")


@pytest.mark.parametrize("day", ["2024-05-05", "5.5.2024", "05.05.2024", "5 May 2024", "May 5, 2024"])
async def test_a_note_that_is_named_after_a_day_answers_what_was_on_it(day: str, tmp_path: Path) -> None:
    notes = {f"2024-{month:02}-05.md": f"Painted shed number {month}, and rested.\n" for month in range(3, 9)}
    async with memory_of(tmp_path, notes) as memory:
        answer = await ask(f"What was done on {day}?", memory)
    assert answer.cards[0].location.startswith("2024-05-05.md")


async def test_an_ordinary_word_that_is_a_symbol_by_chance_grounds_nothing(tmp_path: Path) -> None:
    code = {"limits.py": "import os\n\n\ndef limit(speed): ...\n\n\ndef user(name): ...\n"}
    async with memory_of(tmp_path, code) as memory:
        for question in ("Which taxes are defined for a user abroad?", "Who defined the limit for swimmers?"):
            assert not (await ask(question, memory)).grounded
        assert (await ask("Where is user defined?", memory)).grounded


async def test_only_the_paragraph_above_a_table_says_what_its_rows_are(tmp_path: Path) -> None:
    note = (
        "# Prices\n\nThe sauna is closed for repairs in winter.\n\nIn summer one may swim.\n\n"
        "Boats for hire:\n\n| What | Price |\n|---|---|\n| Boat | 30 |\n| Raft | 12 |\n"
        "| Oars | 4 |\n| Sail | 9 |\n| Tent | 15 |\n| Stove | 3 |\n"
    )
    async with memory_of(tmp_path, {"prices.md": note}) as memory:
        closed = await ask("What is the price of the sauna in winter?", memory)
        hire = await ask("What is the hire of a raft?", memory)
    best = closed.cards[0].text[slice(*closed.cards[0].best)]
    assert best == "The sauna is closed for repairs in winter."
    assert hire.cards[0].text[slice(*hire.cards[0].best)] == "| Raft | 12 |"
