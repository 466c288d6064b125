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


def test_settings_have_their_outermost_keys_with_what_is_below_them() -> None:
    text = "name: tern\nmail:\n  sender: a@b.c\n  retries: 3\n\nhosts:\n- one\n- two\n"
    assert shown(text, "file:///config.yaml") == [
        "`name: tern`",
        "`mail:` · `sender: a@b.c` · `retries: 3`",
        "`hosts:` · `- one` · `- two`",
    ]
    text = 'title = "x"\n\n[server]\nport = 80\n\n# Only this machine.\nhost = "::1"\n\n[log]\nlevel = 1\n'
    assert shown(text, "file:///config.toml") == [
        '`title = "x"`',
        '`[server]` · `port = 80` · `# Only this machine.` · `host = "::1"`',
        "`[log]` · `level = 1`",
    ]
    text = '{\n  "port": 1,\n  "mail": {\n    "retries": 3\n  }\n}\n'
    assert shown(text, "file:///config.json") == ['`"port": 1,`', '`"mail": {` · `"retries": 3`']


def test_of_many_lines_below_a_key_the_first_are_shown_and_quoted() -> None:
    text = "ports:\n" + "".join(f"  p{n}: {n}\n" for n in range(9))
    found = outline(text, "config.yml")
    assert found is not None
    (entry,) = found.entries
    assert entry.markdown.endswith("`p4: 4` · …")
    assert entry.quote in text


def test_a_csv_file_has_its_records_with_the_names_of_the_columns() -> None:
    text = "item,count\n" + "".join(f"wick {n},{n}\n" for n in range(1, 31))
    found = outline(text, "stock.csv")
    assert found is not None
    assert found.entries[0].markdown == "item: wick 1 · count: 1"
    assert found.entries[0].quote == "wick 1,1"
    assert found.note == "12 of 30 records shown."


def test_long_lines_and_wide_records_are_cut() -> None:
    (line,) = shown('{"a": "' + "x" * 500 + '"}', "one.json")
    assert len(line) < 200
    columns = ",".join(f"c{n}" for n in range(20))
    (record,) = shown(f"{columns}\n{columns}\n", "wide.csv")
    assert record.endswith("c7: c7 · …")
