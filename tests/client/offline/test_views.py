"""Which questions ask for a whole list or an outline, and what these are."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from ragchat.grounding.evidence import gather
from ragchat.grounding.question import Question
from ragchat.offline.views import (
    MAX_ENTRIES,
    MAX_POINT,
    MAX_ROWS,
    all_of_list,
    asks_for_list,
    asks_for_outline,
    find_lists,
    headings_in,
    highest,
    is_name,
    outline,
    readable,
)
from tests.support.turns import ListMemory, hit

SHED = """# Allotment

## Tools

In the shed there are:

- a spade
  with a long handle
- two rakes

- a wheelbarrow

The key is with Tom.
"""
BEDS = """# Beds

| Bed | Crop | Sun |
|---|---|---|
| North | beans | no |
| South | leeks | yes |
| East | beans | yes |

All beds are dug in autumn.
"""


@pytest.mark.parametrize(
    "question",
    [
        "Which tools are there in the shed?",
        "Please list all tools",
        "show me all the tools",
        "What tools do we have?",
        "Welche Werkzeuge gibt es im Schuppen?",
        "Nenne alle Werkzeuge",
    ],
)
def test_questions_for_a_list(question: str) -> None:
    assert asks_for_list(question)


@pytest.mark.parametrize(
    "question",
    [
        "Which tool is the oldest?",
        "Who wrote the list of tools?",
        "What is there to see?",
        "Where are all the tools?",
        "Which of the tools is broken?",
        "What lists all open ports?",
        "What rights do I have to see the list?",
        "",
    ],
)
def test_questions_for_one_fact(question: str) -> None:
    assert not asks_for_list(question)


@pytest.mark.parametrize(
    "question",
    [
        "what are the powers of the warden",
        "Which tools can a member borrow?",
        "list the rules for the kiln",
        "ways to protect the hives",
        "What must the yearly report contain?",
        "What happens to a parcel? Which actions?",
        "Welche Aufgaben hat der Kassenwart?",
        "Was sind die Ausnahmen?",
        "Quelles sont les étapes du montage ?",
        "¿Cuáles son las funciones del tesorero?",
        "qué permisos pueden pedir los socios",
    ],
)
def test_questions_for_several_things(question: str) -> None:
    assert asks_for_list(question, "several")


@pytest.mark.parametrize(
    "question",
    [
        "What happens if the kiln is cold?",
        "What is the default for that?",
        "Which bus does she take?",
        "At which gas mark is it cooked?",
        "Welche Farbe hat der Kahn?",
        "Wer ist der Kassenwart?",
        "¿Qué es el claustro?",
        "How do I list all the jobs?",
    ],
)
def test_questions_for_one_thing(question: str) -> None:
    assert not asks_for_list(question, "several")


@pytest.mark.parametrize(
    ("question", "name", "is_certain"),
    [
        ("Outline of notes/wren.md", "notes/wren.md", True),
        ("Summarise boiler.md", "boiler.md", True),
        ("please summarize the “Boiler manual”.", "Boiler manual", True),
        ("Give me a short overview of my bee notes", "bee", True),
        ("Fasse das Dokument Heizung kurz zusammen", "Heizung", True),
        ("Eine Zusammenfassung von heizung.md", "heizung.md", True),
        ("Résume la Fiche Révolution", "Fiche Révolution", True),
        ("总结中文笔记", "中文笔记", True),
        ("What is in the file boiler.md?", "boiler.md", True),
        ("What is in the boiler manual?", "boiler manual", False),
        ("Worum geht es in heizung.md?", "heizung.md", False),
        ("What does the lease say about pets?", "", False),
        ("Who wrote the summary?", "", False),
        ("Summarise", "", False),
        ("", "", False),
    ],
)
def test_questions_for_an_outline(question: str, name: str, *, is_certain: bool) -> None:
    assert asks_for_outline(question) == (name, is_certain)


@pytest.mark.parametrize("name", ["the boat log", "boat-log", "Boat_Logs"])
def test_names_are_the_same_whatever_their_signs_case_and_endings(name: str) -> None:
    assert is_name(name, "Boat log") is (not name.startswith("the"))
    assert not is_name(name, "Boat log 2")


async def listed(question: str, document: str) -> tuple[list[str], int] | None:
    """The lines that are shown of the list in a document, and how many more there are."""
    found = next(find_lists(await gather(Question.of(question), [hit(document)], ListMemory())), None)
    if found is None:
        return None
    evidence, place = found
    line = document.count("\n", 0, place) + 1
    lists = all_of_list(document, line, evidence.hit, evidence.question.words)
    return ([document[start:end] for start, end in lists[0]], lists[1]) if lists else None


async def test_a_list_has_all_of_its_items_with_what_is_below_them() -> None:
    assert await listed("Which tools are there in the shed?", SHED) == (
        ["- a spade\n  with a long handle", "- two rakes", "- a wheelbarrow"],
        0,
    )


async def test_items_are_shown_with_all_of_their_lines_and_paragraphs() -> None:
    items = ["- a spade, which\nis new\n\n  and a rake", "- a pump", "- a net"]
    document = "# Shed\n\nThe tools in the shed:\n\n" + "\n".join(items) + "\n\nThe key is with Tom.\n"
    assert await listed("Which tools are there in the shed?", document) == (items, 0)


async def test_a_table_has_its_header_and_all_rows_or_those_that_hold_what_is_asked() -> None:
    header, rows = BEDS.splitlines()[2:4], BEDS.splitlines()[4:7]
    assert await listed("Which beds are there?", BEDS) == ([*header, *rows], 0)
    assert await listed("List all beds with beans", BEDS) == ([*header, rows[0], rows[2]], 0)


@pytest.mark.parametrize("question", ["Which rooms are there in the attic?", "List all chairs", "list all"])
async def test_a_list_that_the_question_does_not_name_is_not_shown(question: str) -> None:
    assert await listed(question, SHED) is None


async def test_a_list_is_not_shown_where_the_text_beside_it_is_what_is_asked_for() -> None:
    document = """# Exit codes

The exit code is 0 after a success, and 1 after a failure.

Others are errors of the shell. These variables are read:

| variable | holds |
|---|---|
| HOME | a folder |
| TOKEN | a key |
"""
    assert await listed("Which exit codes are there?", document) is None
    assert await listed("Which variables are there?", document) == (document.splitlines()[6:], 0)


async def test_a_long_list_is_cut_and_the_rest_counted() -> None:
    plums = "# Plums\n\n" + "".join(f"- plum number {number}\n" for number in range(MAX_ROWS + 2))
    found = await listed("List all plums", plums)
    assert found is not None
    assert (len(found[0]), found[1]) == (MAX_ROWS, 2)


def shown(document: str) -> list[str]:
    return [
        f"{entry.level} {entry.heading}: {readable(document, entry.sentence)}"
        for entry in highest(outline(document))
    ]


def test_each_heading_has_the_sentence_that_follows_it() -> None:
    text = (
        "# The boat\n\nShe is kept on the lower\nlake. Her name is Wren.\n\n## Sails\n\n### Mainsail\n\n"
        "It was mended in 2020. It is red.\n\n```\n# no heading\n```\n\n## Crew\n\n- Ida\n- Tom\n"
    )
    assert shown(text) == [
        "1 The boat: She is kept on the lower lake.",
        "2 Sails: ",
        "3 Mainsail: It was mended in 2020.",
        "2 Crew: Ida; Tom",
    ]


def test_of_many_headings_the_higher_ones_are_shown_in_their_order() -> None:
    text = "".join(f"## Part {n}\n\nIt has a number.\n\n### Detail {n}\n\nIt is small.\n\n" for n in range(9))
    found = highest(outline(text))
    assert len(found) == MAX_ENTRIES
    assert {f"Part {n}" for n in range(9)} <= {entry.heading for entry in found}
    assert [entry.sentence for entry in found] == sorted(entry.sentence for entry in found)


def test_a_text_without_headings_has_the_first_sentences_of_its_paragraphs() -> None:
    text = "We left early. It rained until we reached the pass.\n\nThe hut was closed. We slept outside it.\n"
    assert shown(text) == ["1 : We left early.", "1 : The hut was closed."]
    assert shown("") == shown("```sh\nmake it now\n```\n") == []


@pytest.mark.parametrize(
    ("section", "point"),
    [
        ("| Bed | Crop |\n|---|---|\n| North | beans |\n", "Bed, Crop"),
        ("1. [x] Lock it.\n2. Go home.\n", "Lock it; Go home."),
        ("You need:\n\n- a spade\n  of steel\n- a rake\n", "You need: a spade of steel; a rake"),
        ("---\n\nNote.\n\n> It opens at seven. It closes at eight.\n", "Note. It opens at seven."),
        ("<!-- old -->\n```sh\nmake it\n```\nThen start it.\n", "Then start it."),
        ("- " + "long " * MAX_POINT + "\n- short\n", "long " * MAX_POINT + "…"),
        ("Eggs.\n", "Eggs."),
    ],
)
def test_a_point_is_readable_without_marks_and_no_fragment(section: str, point: str) -> None:
    assert shown(f"# One\n\n{section}\n# Two\n\nThe end is here.\n")[0] == f"1 One: {point}"


def test_paragraphs_of_a_word_or_two_are_joined_with_the_next() -> None:
    text = "Lease\n\nbetween\n\nMs Berg\n\nand\n\nMr Weber.\n\nYou need:\n\n- a key\n"
    assert shown(text) == ["1 : Lease between Ms Berg", "1 : and Mr Weber.", "1 : You need: a key"]


def test_headings_that_memory_found_have_the_sentences_that_follow_them() -> None:
    text = "Lease\n\n§ 1 Flat\n\n(1) It has two rooms.\n\n§ 2 Rent. It is 800 euros.\n\nMore.\n"
    chunks = [
        replace(hit(text), headings=[(3, "§ 1 Flat")]),
        replace(hit("§ 2 Rent. It is 800 euros."), start_line=7, end_line=7, heading="§ 2 Rent"),
        replace(hit("More."), start_line=9, end_line=9, heading="§ 2 Rent"),
    ]
    found = headings_in(chunks)
    assert found == [(3, "§ 1 Flat"), (7, "§ 2 Rent")]
    points = [readable(text, entry.sentence) for entry in outline(text, found)]
    assert points == ["It has two rooms.", "It is 800 euros."]


def test_an_outline_of_code_has_the_lines_that_define_its_symbols() -> None:
    text = (
        "# Notes.\nimport os\n\n\n@dataclass\nclass Store:\n    # Finds a note.\n    def find(\n"
        "        self, name: str\n    ) -> int:\n        return 1\n\n\n# main\ndef main(): pass\n"
    )
    found = outline(text, [(5, "Store"), (7, "Store.find"), (14, "main")], is_code=True)
    assert [(entry.level, readable(text, entry.sentence)) for entry in found] == [
        (1, "class Store:"),
        (2, "def find( self, name: str ) -> int:"),
        (1, "def main(): pass"),
    ]


def test_comments_of_code_are_no_headings() -> None:
    text = "# One\na = compute_it()\n\n# Two\nb = compute_it()\n"
    assert not any(entry.heading for entry in outline(text, is_code=True))
    assert [entry.heading for entry in outline(text)] == ["One", "Two"]


@pytest.mark.parametrize(
    ("text", "places", "expected"),
    [
        (
            "class A {\n  #load(name) { return 1; }\n  run() { return this.#load(1); }\n}\n",
            [(1, "A"), (2, "A.#load"), (3, "A.run")],
            ["class A {", "#load(name) { return 1; }", "run() { return this.#load(1); }"],
        ),
        (
            "static int\n*find(int a)\n{\n}\nint main(void) { return *find(1); }\n",
            [(1, "find"), (5, "main")],
            ["*find(int a)", "int main(void) { return *find(1); }"],
        ),
        (
            "/* Frees. */\nvoid *operator new(int n) {}\nvoid f() {}\n",
            [(1, "operator new"), (3, "f")],
            ["void *operator new(int n) {}", "void f() {}"],
        ),
    ],
)
def test_a_symbol_is_looked_for_in_its_own_lines(
    text: str, places: list[tuple[int, str]], expected: list[str]
) -> None:
    found = [text[slice(*entry.sentence)].strip() for entry in outline(text, places, is_code=True)]
    assert found == expected


def test_the_symbols_of_a_long_file_are_found_at_once() -> None:
    text = "".join(f"  #m{n}(a) {{ return a; }}\n\n\n" for n in range(5_000))
    places = [(3 * n + 1, f"A.#m{n}") for n in range(5_000)]
    began = time.process_time()
    assert len(outline(text, places, is_code=True)) == 5_000
    assert time.process_time() - began < 2
