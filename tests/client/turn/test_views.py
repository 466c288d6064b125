"""Lists and outlines of documents in a real memory: which document a name means, and what is shown of it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ragchat.answer import Answer
from ragchat.ingest.loading import load_files
from ragchat.memory.client import MemoryClient
from ragchat.offline.answer import NEAREST
from ragchat.offline.views import MAX_ENTRIES, MAX_ROWS
from ragchat.turn.limits import RetrievalLimits
from ragchat.turn.offline import answer_offline
from ragchat.turn.retrieval import Memory, retrieve
from ragchat.turn.scope import Scope
from ragchat.turn.views import MAX_POINTS, TELLING
from tests.support.documents import pdf
from tests.support.memory import memory_of

LIMITS = RetrievalLimits(top_k=8, min_score=0.3, seconds=30.0)
ROWS = "".join(f"| P{number} | a tent for {number} people, and its poles |\n" for number in range(1, 61))
DOCUMENTS = {
    "wren.md": "# The boat\n\nShe is kept on the lower lake.\n\n## Sails\n\nThe mainsail is red.\n",
    "hut-2021.md": "# Hut rules 2021\n\n## Keys\n\nThe key is in the shed.\n\n## Wood\n\nTwo crates a day.\n",
    "hut-2023.md": "# Hut rules 2023\n\n## Keys\n\nThe key is with Nora.\n\n## Wood\n\nTwo crates a day.\n",
    "tents.md": f"# Tents\n\nThey are in the barn.\n\n| Tents | What it is |\n|---|---|\n{ROWS}\nCount.\n",
    "trips.csv": "day,port,skipper\n3 May,Kiel,Nora\n4 May,Damp,Max\n9 May,Bagenkop,Nora\n",
    "shed.md": "# Shed\n\nThe tools in the shed are:\n\n- a spade\n- two rakes\n- a barrow\n\nTom has it.\n",
}


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MemoryClient]:
    async with memory_of(tmp_path, DOCUMENTS) as memory:
        yield memory


async def ask(question: str, memory: Memory) -> Answer:
    return await answer_offline(question, question, await retrieve(memory, question, LIMITS), memory, LIMITS)


async def test_an_outline_of_a_document_by_its_name_or_title(memory: MemoryClient) -> None:
    questions = (
        "Summarise wren.md",
        "summarise the boat",
        "outline of notes/wren.md",
        "What is in wren?",
        "Worum geht es in wren.md?",
    )
    for question in questions:
        answer = await ask(question, memory)
        assert answer.text == (
            "- **The boat**: She is kept on the lower lake. [1]\n  - **Sails**: The mainsail is red. [2]"
        )
        assert answer.grounded
        assert [(found.n, found.quote_start_line, found.verified) for found in answer.citations] == [
            (1, 3, True),
            (2, 7, True),
        ]
        assert all(found.chunk_id for found in answer.citations)


async def test_the_title_before_a_colon_names_a_document_in_every_wording(memory: MemoryClient) -> None:
    text = "# Lecture 2: Estimation\n\nIt is on bias.\n\n## And tests?\n\nThey follow.\n"
    await memory.inject(text, {"uri": "file:///notes/02.md"})
    for question in ("Summarise Lecture 2", "What is in Lecture 2?"):
        assert (await ask(question, memory)).text == (
            "- **Lecture 2: Estimation**: It is on bias. [1]\n  - **And tests?** They follow. [2]"
        )


async def test_a_title_with_an_article_names_its_document(memory: MemoryClient) -> None:
    await memory.inject("# The Salt Road\n\nIt moves.\n\n## End\n\nIce.\n", {"uri": "file:///notes/novel.md"})
    await memory.inject("# Words of The Salt Road\n\n5,000.\n", {"uri": "file:///notes/count.md"})
    for question in ("Summarise The Salt Road", "summarise salt road"):
        assert (await ask(question, memory)).text.startswith("- **The Salt Road**: It moves. [1]")


async def test_passages_that_memory_does_not_return_are_cited_by_their_page(
    memory: MemoryClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = ["\n".join(f"{name} {n} is kept in the barn." for n in range(60)) for name in ("Tent", "Boat")]
    (tmp_path / "barn.pdf").write_bytes(pdf(pages))
    await load_files(memory, [tmp_path / "barn.pdf"])
    monkeypatch.setattr("ragchat.turn.views.MAX_CHUNKS", 1)
    answer = await ask("Summarise barn.pdf", memory)
    assert [found.location for found in answer.citations] == ["barn.pdf p. 1", "barn.pdf p. 2"]


async def test_a_document_that_the_question_shares_no_word_with_has_an_outline(memory: MemoryClient) -> None:
    await memory.inject("# Ab ovo\n\nEggs.\n\n## Hens\n\nThree.\n", {"uri": "file:///notes/zq.md"})
    assert (await ask("Summarise zq.md", memory)).text.startswith("- **Ab ovo**: Eggs. [1]")


async def test_a_part_of_a_name_is_enough_only_where_an_outline_is_certainly_asked_for(
    memory: MemoryClient,
) -> None:
    assert (await ask("Summarise the 2021 rules", memory)).text.startswith("- **Hut rules 2021**")
    assert "- **Hut rules" not in (await ask("What is in 2021?", memory)).text


async def test_a_name_of_two_documents_is_not_guessed(memory: MemoryClient) -> None:
    answer = await ask("Summarise the hut rules", memory)
    assert "- **Hut rules" not in answer.text
    assert answer.cards


@pytest.mark.parametrize(
    "question",
    [
        "Which notes are tagged boats?",
        "list all notes with the tag #boats",
        "Welche Notizen haben das Tag Boats?",
    ],
)
async def test_the_documents_with_a_tag_are_listed(question: str, memory: MemoryClient) -> None:
    texts = {"sloop": "She leaks at the stern.", "yawl": "Her sails were sold to Nora in May."}
    for name, text in texts.items():
        metadata = {"uri": f"file:///home/{name}.md", "tags": ["boats", "lake"]}
        await memory.inject(f"tags:: boats\n\n{text}", metadata)
    answer = await ask(question, memory)
    assert answer.text == "2 documents are tagged boats:\n\n- sloop.md [1]\n- yawl.md [2]"
    assert [one.location for one in answer.citations] == ["sloop.md:1–3", "yawl.md:1–3"]


def test_the_time_for_long_lines_of_notes_is_bounded() -> None:
    started = time.perf_counter()
    for text in ("a", " ", "a-", "- "):
        assert not TELLING.match(20_000 * text)
    assert time.perf_counter() - started < 1


async def test_a_question_with_an_unknown_tag_is_answered_by_passages(memory: MemoryClient) -> None:
    assert "[1]" in (await ask("Which tools in the shed are tagged spade?", memory)).text


async def test_two_documents_of_one_name_are_told_apart_by_their_folders(memory: MemoryClient) -> None:
    for folder in ("home", "work"):
        await memory.inject(f"# In {folder}\n\nIt is in {folder}.\n", {"uri": f"file:///{folder}/todo.md"})
    await memory.inject("# Now\n\nTo work.\n\n## Then\n\nTo rest.\n", {"uri": "file:///work/todo.md"})
    answer = await ask("Summarise todo.md", memory)
    assert answer.text == (
        "Several documents are called todo.md. Ask for one of these:\n\n- home/todo.md\n- work/todo.md"
    )
    assert not answer.grounded
    assert (await ask("Summarise work/todo.md", memory)).text.startswith("- **Now**: To work. [1]")


async def test_a_document_outside_the_scope_has_no_outline(memory: MemoryClient) -> None:
    scope = Scope(memory)
    await scope.narrow("hut-2021.md")
    assert not (await ask("Summarise wren.md", scope)).grounded
    assert (await ask("Summarise hut-2021.md", scope)).grounded


async def test_a_list_is_one_card_with_all_of_its_rows(memory: MemoryClient) -> None:
    answer = await ask("List all tents", memory)
    [card] = answer.cards
    assert card.text.startswith("| Tents | What it is |\n|---|---|\n| P1 | a tent for 1 people")
    assert card.text.endswith(f"\n… {60 - MAX_ROWS} more")
    assert card.text.count("\n") == MAX_ROWS + 2
    [citation] = answer.citations
    assert (citation.quote_start_line, citation.quote_end_line) == (5, 6 + MAX_ROWS)
    assert citation.quote in DOCUMENTS["tents.md"]
    assert card.location == f"tents.md:5–{6 + MAX_ROWS}"
    assert answer.grounded


async def test_a_list_is_at_the_rows_that_are_shown_though_they_are_in_several_passages(
    tmp_path: Path, memory: MemoryClient
) -> None:
    rows = "".join(
        f"<tr><td>R-{n:03}<td>Customer number {n} in the harbour<td>{'open' if n % 20 == 4 else 'paid'}"
        for n in range(1, 61)
    )
    (tmp_path / "sales.html").write_text(
        f"<h1>Invoices</h1><table><tr><th>No.<th>Name<th>State{rows}</table>"
    )
    await load_files(memory, [tmp_path / "sales.html"])
    answer = await ask("List all open invoices", memory)
    [card], [citation] = answer.cards, answer.citations
    assert [line[2:7] for line in card.text.splitlines() if "open" in line] == ["R-004", "R-024", "R-044"]
    assert card.location == citation.location == "sales.html Invoices table 1 rows 1–45"


async def test_items_of_a_list_are_shown_as_they_were_written(memory: MemoryClient) -> None:
    answer = await ask("Which tools are there in the shed?", memory)
    [card] = answer.cards
    assert "- a spade\n- two rakes\n- a barrow" in card.text
    assert card.text in DOCUMENTS["shed.md"]


async def test_a_list_of_what_records_hold_has_the_matching_records(memory: MemoryClient) -> None:
    answer = await ask("List all trips of Nora", memory)
    assert [card.text for card in answer.cards] == [
        "day,port,skipper\n3 May,Kiel,Nora\n…\n9 May,Bagenkop,Nora"
    ]
    assert (answer.grounded, answer.citations[0].verified) == (True, True)


async def test_a_list_without_the_last_records_says_that_more_follow(memory: MemoryClient) -> None:
    rows = ["sep=;", "day;guest", "3;Ida", "4;Tom", "5;Ida", "6;Eve"]
    await memory.inject("\n".join([*rows, ""]), {"uri": "file:///notes/guests.csv"})
    [card] = (await ask("List all days of the guest Ida", memory)).cards
    assert card.text.splitlines() == ["sep=;", "day;guest", "3;Ida", "…", "5;Ida", "…"]


GUESTS = "day;guest;boat\n3;Ida;Skua\n4;Tom;Tern\n5;Ida;Tern\n6;Eve;Skua\n"


async def test_a_number_of_a_record_has_the_name_that_is_asked_for(memory: MemoryClient) -> None:
    rows = ["cup,Room 1, case 3", "jug,Room 3, case 1", "pan,Room 3, case 2", "urn,Room 3, case 1"]
    await memory.inject("\n".join(["thing,room,case", *rows, ""]), {"uri": "file:///notes/things.csv"})
    [card] = (await ask("List all things in room 3, case 1", memory)).cards
    assert card.text.splitlines() == ["thing,room,case", "…", rows[1], "…", rows[3]]


async def test_a_number_in_the_title_of_a_list_leaves_out_no_item(memory: MemoryClient) -> None:
    items = ["Read the notes of week 3", "Write the essay", "Meet the tutor", "Hand in the sheet of week 3"]
    plan = "\n".join(
        ["# Course", "", "## Week 3", "", "Tasks of week 3:", "", *(f"- {one}" for one in items)]
    )
    await memory.inject(f"{plan}\n", {"uri": "file:///notes/course.md"})
    [card] = (await ask("List all tasks of week 3", memory)).cards
    assert all(one in card.text for one in items)


async def test_one_record_that_has_both_numbers_with_their_names_is_shown_alone(memory: MemoryClient) -> None:
    rows = ["cup,Room 1, case 3", "jug,Room 3, case 1", "pan,Room 3, case 2", "urn,Room 2, case 1"]
    await memory.inject("\n".join(["thing,room,case", *rows, ""]), {"uri": "file:///notes/things.csv"})
    [card] = (await ask("List all things in room 3, case 1", memory)).cards
    assert card.text.splitlines() == ["thing,room,case", "…", rows[1], "…"]


async def test_a_list_in_which_one_item_has_what_is_asked_does_not_hide_records(memory: MemoryClient) -> None:
    plan = "# Order of rescue\n\n1. Things in Cellar B: things of Cellar B\n2. The jug\n3. The pan\n"
    await memory.inject(plan, {"uri": "file:///notes/rescue.md"})
    rows = [f"cup {n},good,fair,1{n},Cellar {'AB'[n % 2]}" for n in range(1, 50)]
    await memory.inject(
        "\n".join(["thing,lid,foot,size,place", *rows, ""]), {"uri": "file:///notes/things.csv"}
    )
    [card] = (await ask("List all things in Cellar B", memory)).cards
    assert (card.text.count("Cellar B"), card.text.count("Cellar A")) == (25, 0)


@pytest.mark.parametrize("question", ["Which guests were in the Skua?", "Welche Guests waren in Skua?"])
async def test_a_question_for_some_records_has_all_of_them(question: str, memory: MemoryClient) -> None:
    await memory.inject(GUESTS, {"uri": "file:///notes/guests.csv"})
    answer = await ask(question, memory)
    assert [card.text for card in answer.cards] == ["day;guest;boat\n3;Ida;Skua\n…\n6;Eve;Skua"]
    assert answer.grounded


@pytest.mark.parametrize(
    "question",
    [
        "List all guests that were not in the Skua",
        "Which guests were not in the Skua?",
        "Which guests weren't in the Skua?",
        "Which guests were there before day 5?",
        "Welche Guests waren nicht in Skua?",
        "Welche Guests waren in keinem Skua?",
    ],
)
async def test_a_question_with_a_negation_or_comparison_leaves_out_no_records(
    question: str, memory: MemoryClient
) -> None:
    await memory.inject(GUESTS, {"uri": "file:///notes/guests.csv"})
    [card] = (await ask(question, memory)).cards
    assert card.text == GUESTS.strip()


async def test_a_list_without_what_is_asked_is_no_certain_answer(memory: MemoryClient) -> None:
    await memory.inject(GUESTS, {"uri": "file:///notes/guests.csv"})
    answer = await ask("Enumerate all days, guests and boats of Gannet", memory)
    assert (answer.grounded, answer.missing) == (False, ["Gannet"])
    assert answer.text.startswith(f"{NEAREST}\n\n[1] guests.csv:1–5\n")
    assert answer.text.endswith("Not mentioned there: Gannet")
    assert not answer.citations
    assert len(answer.nearest) == 1


async def test_records_without_names_of_columns_are_all_looked_at(memory: MemoryClient) -> None:
    text = "Ann,roofer,2\nBen,plumber,3\nEve,painter,4\nTom,plumber,9\n"
    await memory.inject(text, {"uri": "file:///notes/trades.csv"})
    [card] = (await ask("List all plumbers of trades", memory)).cards
    assert card.text == "Ben,plumber,3\n…\nTom,plumber,9"


async def test_records_with_line_breaks_in_their_cells_are_not_listed_line_by_line(
    memory: MemoryClient,
) -> None:
    text = 'bill,state\n1,"open\nand late"\n2,paid\n3,open\n'
    await memory.inject(text, {"uri": "file:///notes/bills.csv"})
    assert [card.text for card in (await ask("List all bills that are open", memory)).cards] == [text.strip()]


async def test_a_table_of_records_is_outlined_by_its_first_rows(memory: MemoryClient) -> None:
    rows = [f"{number},Mint" for number in range(MAX_ENTRIES + 3)]
    await memory.inject("\n".join(["bed,crop", *rows, ""]), {"uri": "file:///notes/beds.csv"})
    [card] = (await ask("What is in beds.csv?", memory)).cards
    assert card.text.splitlines() == ["bed,crop", *rows[:MAX_ENTRIES], "… 3 more"]


async def test_a_plain_text_is_outlined_by_its_headings_and_every_citation_has_its_passage(
    memory: MemoryClient,
) -> None:
    clauses = "".join(f"§ {n} Duty {n}\n\n(1) The tenant has duty number {n}.\n\n" for n in range(1, 31))
    await memory.inject(f"Lease\n\nbetween\n\nIda\n\n{clauses}", {"uri": "file:///notes/lease.txt"})
    answer = await ask("Summarise lease.txt", memory)
    lines = answer.text.splitlines()
    assert lines[0] == "- **§ 1 Duty 1**: The tenant has duty number 1. [1]"
    assert lines[-1] == "- **§ 30 Duty 30**: The tenant has duty number 30. [30]"
    passages = {one.hit.chunk_id: one.hit for one in answer.candidates if one.used}
    assert all(one.quote in passages[one.chunk_id].text for one in answer.citations)
    assert len(answer.citations) == 30


async def test_a_text_without_title_and_headings_has_its_sentences_as_outline(memory: MemoryClient) -> None:
    for text in ("alpha beta gamma", "Die Miete beträgt 800 Euro."):
        await memory.inject(f"{text}\n", {"uri": "stdin"})
        assert (await ask("Outline of stdin", memory)).text == f"- {text} [1]"


async def test_of_very_many_headings_it_says_how_to_see_the_others(memory: MemoryClient) -> None:
    parts = "".join(f"# Part {n}\n\nIt has the number {n}.\n\n" for n in range(MAX_POINTS + 1))
    await memory.inject(parts, {"uri": "file:///notes/parts.md"})
    answer = await ask("Summarise parts.md", memory)
    assert answer.text.endswith(f"{MAX_POINTS} of {MAX_POINTS + 1} shown: the source of [1] has them all.")


async def test_the_word_of_a_command_is_not_corrected_to_one_of_the_documents(memory: MemoryClient) -> None:
    await memory.inject("The summaries are in the barn.", {"uri": "file:///notes/barn.md"})
    assert (await ask("summarise wren.md", memory)).text.startswith("- **The boat**: She is kept")


async def test_an_outline_of_code_has_its_signatures(memory: MemoryClient) -> None:
    code = "import os\n\n\nclass Oar:\n    def pull(self, force: float) -> None: ...\n\n\ndef row(): ...\n"
    await memory.inject(code, {"uri": "file:///src/oar.py"})
    answer = await ask("What is in oar.py?", memory)
    assert answer.text.splitlines() == [
        "- `class Oar:` [1]",
        "  - `def pull(self, force: float) -> None: ...` [2]",
        "- `def row(): ...` [3]",
    ]
    assert [one.heading for one in answer.citations] == ["Oar", "Oar.pull", "row"]


async def test_code_in_an_outline_is_never_empty_and_keeps_its_backticks(
    memory: MemoryClient,
) -> None:
    settings = "[one]\n\n[two]\nname = here\n"
    await memory.inject(settings, {"uri": "file:///src/d.ini"})
    assert "``" not in (await ask("What is in d.ini?", memory)).text
    await memory.inject("def a(x='`'): ...\n\n\ndef b(): ...\n", {"uri": "file:///src/e.py"})
    assert (await ask("What is in e.py?", memory)).text.startswith("- `` def a(x='`'): ... `` [1]")


async def test_a_signature_that_is_cut_says_so(memory: MemoryClient) -> None:
    parameters = ", ".join(f"parameter_{n}: str" for n in range(20))
    await memory.inject(f"def a({parameters}): ...\n\n\ndef b(): ...\n", {"uri": "file:///src/long.py"})
    first, second = (await ask("What is in long.py?", memory)).text.splitlines()
    assert first.endswith("` … [1]")
    assert second == "- `def b(): ...` [2]"
