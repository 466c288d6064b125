"""The outline of a document: headings with their first sentences, and parts of it."""

from __future__ import annotations

import pytest

from ragchat.offline.outline import MOST_ENTRIES, is_name, outline, section

BOAT = """# The boat

She is kept on the lower lake. Her name is Wren.

## Sails

### Mainsail

It was mended in 2020. It is red.

## Crew

| Name | Seat |
|---|---|
| Ida | bow |
"""


def shown(text: str, uri: str = "file:///boat.md") -> list[str]:
    found = outline(text, uri)
    return [f"{found.indent(entry)}{entry.markdown}" for entry in found.entries] if found else []


def test_each_heading_has_its_first_sentence() -> None:
    assert shown(BOAT) == [
        "**The boat**: She is kept on the lower lake.",
        "  **Sails**",
        "    **Mainsail**: It was mended in 2020.",
        "  **Crew**: Name · Seat",
    ]


def test_quotations_are_verbatim_and_lie_in_their_entries() -> None:
    found = outline(BOAT, "")
    assert found is not None
    assert all(entry.quote in BOAT[entry.start : entry.end] for entry in found.entries)
    assert [entry.path for entry in found.entries][2] == "The boat > Sails > Mainsail"


def test_of_many_headings_the_higher_ones_are_shown_in_their_order() -> None:
    text = "".join(f"## Part {n}\n\nIt has a number.\n\n### Detail {n}\n\nIt is small.\n\n" for n in range(9))
    found = outline(text, "")
    assert found is not None
    assert len(found.entries) == MOST_ENTRIES
    assert {f"Part {n}" for n in range(9)} <= {entry.heading for entry in found.entries}
    assert [entry.start for entry in found.entries] == sorted(entry.start for entry in found.entries)
    assert found.note == "12 of 18 headings shown."


def test_a_text_without_headings_has_the_first_sentences_of_its_paragraphs() -> None:
    text = "We left early. It rained until we reached the pass.\n\nThe hut was closed. We slept outside it.\n"
    assert shown(text) == ["We left early.", "The hut was closed."]


def test_the_first_item_of_a_list_comes_with_the_line_that_introduces_it() -> None:
    text = "We sail in May.\n\nOn board we have:\n\n- two oars\n- a bailer\n"
    assert shown(text) == ["We sail in May.", "On board we have: two oars …"]


def test_an_empty_document_has_no_outline() -> None:
    assert outline("\n\n---\n", "") is None


def test_a_section_goes_to_the_next_heading_of_its_level() -> None:
    found = section(BOAT, "", "sails")
    assert found is not None
    assert (
        BOAT[found.start : found.end].strip()
        == "## Sails\n\n### Mainsail\n\nIt was mended in 2020. It is red."
    )
    assert section(BOAT, "", "engine") is None
    assert section(BOAT * 2, "", "sails") is None


@pytest.mark.parametrize("name", ["the boat log", "boat-log", "Boat_Logs"])
def test_names_are_the_same_whatever_their_signs_case_and_endings(name: str) -> None:
    assert is_name(name, "Boat log")
    assert not is_name(name, "Boat log 2")
