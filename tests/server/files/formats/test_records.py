"""JSON with prose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats import records
from ragmemory.files.formats.file_text import FileText
from ragmemory.files.formats.records import has_escapes, read
from ragmemory.files.reading import read_file

FILE = Path("a.json")
DAY_ONE = r"""{
  "metadata": {"version": "1.0"},
  "entries": [
    {
      "uuid": "E7", "creationDate": "2022-08-14T17:20:00Z", "starred": false, "tags": ["outdoors", "fog"],
      "text": "# Scafell Pike\n\nSummit at 13:40, \u00e4tzend.", "at": {"latitude": 54.450, "place": null}
    },
    {"uuid": "E8", "creationDate": "2023-12-25T20:00:00Z", "text": "Leo burned the goose."}
  ]
}"""


def text_of(value: object, name: str = "a.json") -> str:
    return read(Path(name), json.dumps(value).encode()).text


def test_each_object_of_the_main_list_is_a_section_with_its_values() -> None:
    found = read(FILE, DAY_ONE.encode())
    assert found.text == (
        "metadata.version: 1.0\n\n"
        "# 2022-08-14 17:20\n\nuuid: E7\ncreationDate: 2022-08-14T17:20:00Z\nstarred: false\n"
        "tags: outdoors, fog\n\ntext:\n\n## Scafell Pike\n\nSummit at 13:40, ätzend.\n\n"
        "at.latitude: 54.450\nat.place: null\n\n"
        "# 2023-12-25 20:00\n\nuuid: E8\ncreationDate: 2023-12-25T20:00:00Z\ntext: Leo burned the goose.\n"
    )
    assert found.places == [(3, "record 1"), (19, "record 2")]
    assert (found.title, found.media_type) == ("a.json", "text/markdown")


@pytest.mark.parametrize(
    ("record", "heading"),
    [
        ({"date": "2024-05-01", "name": "Ann", "title": "Tides"}, "Tides"),
        ({"Name": "Ann", "date": "2024-05-01"}, "Ann"),
        ({"title": "", "posted": "2024-05-01 07:00:11"}, "2024-05-01 07:00"),
        ({"title": 7, "size": "a\nb"}, "7"),
        ({"size": "a\nb"}, "Record 1"),
        (["a\nb"], "Record 1"),
    ],
)
def test_a_record_is_headed_by_its_name_its_date_or_its_number(record: object, heading: str) -> None:
    assert text_of([record]).startswith(f"# {heading}\n")


def test_the_name_is_not_repeated_below_its_heading() -> None:
    assert text_of([{"id": 1, "title": "Tides", "text": "\u00e4"}]) == "# Tides\n\nid: 1\ntext: ä\n"


def test_the_main_list_may_be_deeper() -> None:
    value = {"ok": True, "data": {"count": 2, "posts": [{"body": "One\n1"}, {"body": "Two\n2"}]}}
    assert text_of(value) == (
        "ok: true\ndata.count: 2\n\n# Record 1\n\nbody:\n\nOne\n1\n\n# Record 2\n\nbody:\n\nTwo\n2\n"
    )


def test_an_object_without_a_main_list_is_one_section() -> None:
    note = {"title": "Gifts", "textContent": "Mum: Aida\nLeo: a telescope", "labels": [{"name": "Home"}]}
    found = read(FILE, json.dumps(note).encode())
    assert found.text == "# Gifts\n\ntextContent:\n\nMum: Aida\nLeo: a telescope\n\nlabels.1.name: Home\n"
    assert found.title == "Gifts"
    assert found.places[-1] == (8, "Gifts ¶ 3")


def test_the_paragraphs_of_an_object_are_its_nested_objects() -> None:
    value = {
        "info": {"about": "a\nb"},
        "paths": {"/cats": {"get": "Cats", "tags": ["c"]}, "/dogs": {"get": "D"}},
    }
    found = read(FILE, json.dumps(value).encode())
    assert found.text.split("\n\n") == [
        *("info.about:", "a\nb", "paths./cats.get: Cats\npaths./cats.tags: c", "paths./dogs.get: D\n")
    ]
    assert [label for _, label in found.places] == ["¶ 1", "¶ 2", "¶ 3", "¶ 4"]


def test_each_line_of_json_lines_is_a_record() -> None:
    lines = b'{"text": "One\\nline"}\n\n{"text": "Two"}\n'
    for name in ("a.jsonl", "a.ndjson", "a.json"):
        found = read(Path(name), lines)
        assert found.text == "# Record 1\n\ntext:\n\nOne\nline\n\n# Record 2\n\ntext: Two\n"
        assert found.places == [(1, "record 1"), (8, "record 2")]


def test_json_in_a_string_is_decoded_too() -> None:
    rich = json.dumps({"contents": [{"text": "Fog\nand rain"}]})
    assert text_of([{"richText": rich}]).endswith("richText.contents.1.text:\n\nFog\nand rain\n")
    assert text_of([{"pattern": r"[\n", "x": "ä"}]).endswith("pattern: [\\n\nx: ä\n")


def test_a_long_text_is_a_paragraph_and_keeps_its_words() -> None:
    long = "word " * 100
    assert text_of([{"a": "ä", "b": long}]) == f"# Record 1\n\na: ä\n\nb:\n\n{long}\n"


def test_a_list_of_texts_that_does_not_fit_in_a_line_is_a_list() -> None:
    steps = ["Wash the quinces." * 8, "Boil them." * 8]
    shown = "\n".join(f"- {step}" for step in steps)
    assert text_of([{"a": "ä", "steps": steps}]) == f"# Record 1\n\na: ä\n\nsteps:\n\n{shown}\n"
    assert "tags: sour, raw\n" in text_of([{"a": "ä", "tags": ["sour", "raw"]}])


def test_utf_8_that_was_read_as_latin_1_is_repaired() -> None:
    assert text_of([{"title": "Dupr\u00c3\u00a9", "at": "caf\u00c3\u00a9 \u00f0\u009f\u0098\u0080"}]) == (
        "# Dupré\n\nat: café 😀\n"
    )
    assert text_of([{"at": "Ã la carte"}]).endswith("at: Ã la carte\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Steps:\n\n# Wash\n\nIt.\n\n## Dry\n\nIt.", "Steps:\n\n## Wash\n\nIt.\n\n### Dry\n\nIt."),
        ("import os\n# a comment\nprint(1)", "```\nimport os\n# a comment\nprint(1)\n```"),
        ("#!/bin/sh\n# a comment\nls", "```\n#!/bin/sh\n# a comment\nls\n```"),
        ("# Use\n```sh\n# a comment\nls\n```", "## Use\n```sh\n# a comment\nls\n```"),
        ("So:\n```sh\n# cut off", "````\nSo:\n```sh\n# cut off\n````"),
        ("    indented()\n    code()", "    indented()\n    code()"),
    ],
)
def test_headings_are_those_of_the_record_and_code_stays_as_it_is(text: str, shown: str) -> None:
    assert text_of([{"title": "A", "text": text}]) == f"# A\n\ntext:\n\n{shown}\n"


def test_only_json_with_escapes_of_prose_is_read_so(tmp_path: Path) -> None:
    for name, text, expected in (
        ("a.json", r'{"a": "x\ny"}', "records"),
        ("b.jsonl", r'{"a": "\u00e4"}', "records"),
        ("board.canvas", '{"nodes": [{"text": "Moving"}]}', "records"),
        ("c.json", r'{"a": "\\name", "b": "\"x\"", "c": "\t\\u00e4"}', FileText),
        ("package.json", '{\n  "name": "a"\n}', FileText),
        ("d.yaml", r'a: "x\ny"', FileText),
    ):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        found = read_file(file)
        assert found == expected if isinstance(expected, str) else isinstance(found, expected)


def test_backslashes_before_an_escape_are_counted() -> None:
    assert [has_escapes(b"\\" * count + b"n") for count in range(6)] == [False, True] * 3


@pytest.mark.parametrize("text", ['{"a": "x\\n", "a": "y"}', '[{"b": {"a": "x\\n", "a": "y"}}]'])
def test_an_object_with_a_key_twice_stays_unchanged(text: str) -> None:
    assert read(FILE, text.encode()).text == text


@pytest.mark.parametrize("text", ['{"a": "x\\ny",}', '// settings\n{"a": "\\n"}', '{"a": "\\x"}'])
def test_what_is_not_json_stays_unchanged(text: str) -> None:
    assert read(FILE, text.encode()) == FileText(text, "a.json")


def test_a_file_that_is_too_long_stays_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_CHARACTERS", 10)
    assert read(FILE, b'["a\\nb", "c"]').text == '["a\\nb", "c"]'


def test_half_of_a_character_is_replaced() -> None:
    assert read(FILE, rb'["\ud83d\ude00 \ud83d", "\ude00"]').text == "# Record 1\n\n😀 �\n\n# Record 2\n\n�\n"


@pytest.mark.parametrize("value", [b"[" * 100_000 + b'"\\n"', b'{"a":' * 5_000 + b'"\\n"' + b"}" * 5_000])
def test_a_value_that_is_too_deep_stays_unchanged(value: bytes) -> None:
    assert read(FILE, value).text == value.decode()


def test_lines_do_not_grow_with_their_depth() -> None:
    deep = b'{"abcdefghi":' * 500 + b'["x\\ny", 1]' + b"}" * 500
    assert len(read(FILE, b"[" + deep + b"]").text) < len(deep)


def test_many_short_values_with_long_keys_stay_as_they_are() -> None:
    value = [{"a" * 90: [[0]] * 1_000}, {"b": "\n"}]
    assert json.dumps(value[0]) in text_of(value)


def test_a_canvas_is_read_without_positions_and_colours() -> None:
    looks = {"id": "a", "x": 0, "y": -120, "width": 250, "height": 60, "color": "4"}
    nodes = [
        {"type": "text", "text": "Packing\n1. Books", **looks},
        {"type": "text", "text": "", **looks},
        {"type": "file", "file": "Flat/Lease.md", **looks},
        {"type": "text", "text": "Keys go to Mr Novak", **looks},
        {"type": "group", "label": "Later", **looks},
    ]
    edges = [{"id": "e", "fromNode": "a", "toNode": "b", "label": "then"}, {"id": "f", "fromNode": "a"}]
    found = read(Path("a.canvas"), json.dumps({"nodes": nodes, "edges": edges}).encode())
    assert found.text.split("\n\n") == [
        *("edges.1.label: then", "# Record 1", "Packing\n1. Books", "# Record 3", "file: Flat/Lease.md"),
        *("# Record 4", "Keys go to Mr Novak", "# Record 5", "label: Later\n"),
    ]
    assert [name for _, name in found.places] == [f"record {number}" for number in (1, 3, 4, 5)]


def test_an_empty_canvas_has_no_text() -> None:
    with pytest.raises(NotText, match="holds no text"):
        read(Path("a.canvas"), b"{}")
