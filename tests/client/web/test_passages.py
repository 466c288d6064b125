"""Passages as nodes: their texts are what was written, tables have cells, code and columns one width."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import pytest
from msgspec.structs import replace

from ragchat.answer import Card
from ragchat.highlight import Highlight
from ragchat.web.markup import Node
from ragchat.web.passages import Passage
from ragchat.web.showing import card_document
from tests.client.web.test_markup import elements, text_of
from tests.support.turns import hit

KETTLES = """\
What they need:

| Device | Watts |
|:-------|------:|
| Kettle | 2,200 |
… lines 4–9
| Pot \\| pan | 1,800 |

More below."""


class Counted(list[tuple[int, int]]):
    """A list that counts how often one of its items is asked for."""

    asked = 0

    def __iter__(self) -> Iterator[tuple[int, int]]:
        self.asked += len(self)
        return super().__iter__()

    def __getitem__(self, at: Any) -> Any:
        self.asked += 1
        return super().__getitem__(at)


def cells(nodes: list[Node]) -> list[list[str]]:
    """What is seen of the rows of all tables."""
    return [
        [
            "".join(map(str.strip, (text_of([one]) for one in cell[2:] if not is_unseen(one))))
            for cell in row[2:]
        ]
        for row in elements("tr", nodes)
        if not is_unseen(row)
    ]


def growth(do: Callable[[int], Any], length: int) -> float:
    """How many times longer it takes for four times the length."""

    def seconds(length: int) -> float:
        start = process_time()
        do(length)
        return process_time() - start

    return min(seconds(4 * length) for _ in range(3)) / min(seconds(length) for _ in range(3))


def is_unseen(node: Node) -> bool:
    return isinstance(node, list) and node[1].get("class") == "separator"


def test_a_table_in_markdown_is_a_table_and_its_text_as_it_was_written() -> None:
    best = KETTLES.index("| Kettle"), KETTLES.index("\n…")
    nodes = Passage(KETTLES, {"mark": [best]}).prose()
    assert text_of(nodes) == KETTLES
    assert cells(nodes) == [
        ["Device", "Watts"],
        ["Kettle", "2,200"],
        ["… lines 4–9"],
        ["Pot \\| pan", "1,800"],
    ]
    assert [text_of([one]).strip("| \n") for one in elements("th", nodes)] == ["Device", "Watts"]
    assert [text_of([one]).strip() for one in elements("mark", nodes)] == ["Kettle", "2,200"]


def test_rows_without_their_header_are_a_table() -> None:
    nodes = Passage("| Kettle | 2,200 |\n| Pot | 1,800 |", {}).prose()
    assert cells(nodes) == [["Kettle", "2,200"], ["Pot", "1,800"]]
    assert not elements("th", nodes)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('name;kg\n"Pear; green";5\n', [["name", "kg"], ['"Pear; green"', "5"]]),
        ("name,kg\n… line 2\nFig,1", [["name", "kg"], ["… line 2"], ["Fig", "1"]]),
        ('"name, sort, size";kg\nFig;1\n', [['"name, sort, size"', "kg"], ["Fig", "1"]]),
        ("name\nFig", [["name"], ["Fig"]]),
        ("name,kg\n… 1,200 more", [["name", "kg"], ["… 1,200 more"]]),
        ("mark,kg\n…,5\n… and so on,6\n", [["mark", "kg"], ["…", "5"], ["… and so on", "6"]]),
        (
            'name,note\nFig,"ripe,\n\nsoft"\nPear,"so ""green"""\n,',
            [["name", "note"], ["Fig", '"ripe,\n\nsoft"'], ["Pear", '"so ""green"""'], ["", ""]],
        ),
        # What is left out may hold the other quotation mark; a foot may be a mark as well.
        (
            'name,note\nFig,"ripe\n… lines 3–9\nPear,"green"',
            [["name", "note"], ["Fig", '"ripe'], ["… lines 3–9"], ["Pear", '"green"']],
        ),
        ('pipe,use\n5",gas\n6","oil\n', [["pipe", "use"], ['5"', "gas"], ['6"', '"oil']]),
        ("", [[""]]),
    ],
)
def test_a_csv_file_is_a_table_and_its_text_as_it_was_written(text: str, rows: list[list[str]]) -> None:
    nodes = Passage(text, {}).csv()
    assert (text_of(nodes), cells(nodes)) == (text, rows)


def test_the_header_of_a_csv_file_may_stand_below_a_title() -> None:
    text = "sep=|\nStock in May\nname|kg\nPear, green|5\nFig|1\n"
    nodes = Passage(text, {}).csv("name|kg\n")
    assert [text_of([one]) for one in elements("th", nodes)] == ["name", "|kg\n"]
    assert text_of(nodes) == text


@pytest.mark.parametrize(
    ("context", "line", "names"),
    [("city,name\n", 7, ["city", ",name\n"]), ("", 7, []), ("", 1, ["Berlin", ",Anna\n"])],
)
def test_only_what_names_the_columns_of_a_csv_file_is_its_header(
    context: str, line: int, names: list[str]
) -> None:
    rows = "Berlin,Anna\nParis,Bob\n"
    found = replace(hit(rows), uri="file:///people.csv", context=context, start_line=line)
    card = Card(1, "people.csv", "", context + "… lines 2–6\n" * bool(context) + rows, (0, 0), 1.0, 1)
    shown = card_document(card, Highlight(""), found)["nodes"]
    assert [text_of([one]) for one in elements("th", shown)] == names
    assert len(elements("tr", shown)) == card.text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "```\nif tea:\n  brew()\n```\n",
        "eth0    10.0.0.1     up\neth1    10.0.0.22    down\n",
        "| one row alone |\n",
        "+----+------+\n| id | tea  |\n| no | kind |\n+====+======+\n| 1  | oolong\n+----+------+\n",
        "=====  ====\nTea    Heat\n=====  ====\nGreen  75\n=====  ====\n",
    ],
)
def test_code_and_columns_have_letters_of_one_width(text: str) -> None:
    nodes = Passage(f"Before.\n\n{text}\nAfter.", {}).prose()
    assert [text_of([one]) for one in elements("span", nodes)] == [text]
    assert text_of(nodes) == f"Before.\n\n{text}\nAfter."


def test_where_there_is_little_room_rows_have_letters_of_one_width() -> None:
    nodes = Passage(KETTLES, {}).prose(tables=False)
    assert not elements("table", nodes)
    assert [text_of([one]) for one in elements("span", nodes)] == [
        KETTLES[KETTLES.index("|") : -len("\nMore below.")]
    ]


def test_a_large_table_takes_time_in_proportion_to_its_length() -> None:
    row = "|" + "|".join(f" tea {number} " for number in range(20)) + "|\n"
    text = row + "|---" * 20 + "|\n" + row * 500
    spans = [found.span() for found in re.finditer("tea", text)]
    counted = Counted(spans)
    nodes = Passage(text, {"strong": counted}).prose()
    assert len(elements("strong", nodes)) == len(spans)
    assert counted.asked < 100 * len(spans)


@pytest.mark.parametrize("cell", ["tea,", '"tea, green",', '"tea,', '"tea,""'])
def test_a_row_of_many_cells_takes_time_in_proportion_to_its_length(cell: str) -> None:
    assert growth(lambda count: Passage(cell * count, {}).csv(), 2_000) < 8
    assert growth(lambda count: Passage("|" + cell * count + "|" * count, {}).prose(), 2_000) < 8


@pytest.mark.parametrize(
    "line", ["+" * 1_000, "+-" * 1_000, "=" * 1_000, "- " * 1_000, "a   " * 1_000, "\t" * 1_000]
)
def test_a_long_line_takes_time_in_proportion_to_its_length(line: str) -> None:
    assert growth(lambda count: Passage(f"{line * count}x\nMore.", {}).prose(), 4) < 8
