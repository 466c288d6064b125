"""The places of texts without pages."""

from __future__ import annotations

import os

from ragcommon.text.places import label
from ragmemory.files.formats.paragraphs import NamedPart, paragraph_places

TEXT = """\
Before.

# Budget

One.
Still one.

- two
- three

## Costs

| a | b |
| --- | --- |
| 1 | 2 |

Four.

| c |
| --- |

# End
"""


def named(text: str, *parts: NamedPart) -> list[tuple[str, str]]:
    lines = text.split("\n")
    return [(lines[line - 1], name) for line, name in paragraph_places(text, parts)]


def test_paragraphs_items_and_rows_are_counted_below_their_heading() -> None:
    assert named(TEXT) == [
        ("Before.", "¶ 1"),
        ("# Budget", "Budget"),
        ("One.", "Budget ¶ 1"),
        ("- two", "Budget ¶ 2"),
        ("- three", "Budget ¶ 3"),
        ("## Costs", "Budget > Costs"),
        ("| a | b |", "Budget > Costs table 1 row 1"),
        ("| 1 | 2 |", "Budget > Costs table 1 row 2"),
        ("Four.", "Budget > Costs ¶ 1"),
        ("| c |", "Budget > Costs table 2 row 1"),
        ("# End", "End"),
    ]


def test_a_range_names_its_heading_once() -> None:
    places = paragraph_places(TEXT, [])
    assert label(places, 6, 8) == "Budget ¶ 1–2"
    assert label(places, 3, 5) == "Budget ¶ 1"
    assert label(places, 3, 14) == "Budget ¶ 1–Budget > Costs table 1 row 1"
    assert label(places, 11, 17) == "Budget > Costs table 1 row 1–¶ 1"
    assert label(places, 15, 17) == "Budget > Costs table 1 row 2–¶ 1"


def test_in_a_part_paragraphs_are_counted_from_its_beginning_or_it_is_one_place() -> None:
    parts = [NamedPart(1, "message 1", counted=True), NamedPart(11, "attachment a", counted=False)]
    assert named(TEXT, *parts) == [
        ("Before.", "message 1 ¶ 1"),
        ("# Budget", "message 1 ¶ 2"),
        ("One.", "message 1 ¶ 3"),
        ("- two", "message 1 ¶ 4"),
        ("- three", "message 1 ¶ 5"),
        ("## Costs", "attachment a"),
    ]


def test_long_headings_are_cut() -> None:
    [(_, name), *_] = paragraph_places(f"# {'word ' * 40}\n", [])
    assert name == f"{'word ' * 11}word…"


def test_a_paragraph_that_is_cut_into_blocks_is_counted_once() -> None:
    text = f"{'x y z ' * 100_000}\n\nNext.\n"
    assert [name for _, name in paragraph_places(text, [])] == ["¶ 1", "¶ 2"]
    rows = "| a |\n| --- |\n" + "| 1 |\n" * 100_000
    assert paragraph_places(rows, [])[-1] == (100_002, "table 1 row 100001")


def test_the_time_is_in_proportion_to_the_number_of_parts() -> None:
    spent = os.times().user
    assert paragraph_places("One.", [NamedPart(1, "message 1", counted=False)] * 400_000) == [
        (1, "message 1")
    ]
    assert os.times().user - spent < 4
