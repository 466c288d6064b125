"""JSON without line breaks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragmemory.files.formats.file_text import FileText
from ragmemory.files.formats.minified import LONG_LINE, SHORT_LINE, read
from ragmemory.files.reading import read_file

FILE = Path("people.json")


def test_each_element_of_a_list_has_a_line_and_a_place() -> None:
    found = read(FILE, b'[{"name":"Ada","tags":["a"]},7]')
    assert found.text == '[\n{"name":"Ada","tags":["a"]},\n7\n]\n'
    assert found.places == [(2, "record 1"), (3, "record 2")]


def test_a_long_element_has_a_line_for_each_of_its_values() -> None:
    found = read(FILE, json.dumps([{"name": "a" * LONG_LINE, "age": 7}, 8]).encode())
    assert found.text.splitlines()[3:] == ['  "age": 7', "},", "8", "]"]
    assert found.places == [(2, "record 1"), (6, "record 2")]


def test_an_element_of_a_list_and_a_short_member_of_an_object_have_a_line_each() -> None:
    value = {
        "page": {"of": [1, 2], "note": "a {"},
        "items": [{"name": "Ada", "at": {"city": "Ulm"}}, {"name": "b" * LONG_LINE, "tags": []}],
        "texts": ["c" * SHORT_LINE],
    }
    found = read(FILE, json.dumps(value).encode())
    assert json.loads(found.text) == value
    assert found.text.splitlines() == [
        "{",
        '  "page": {"of": [1, 2], "note": "a {"},',
        '  "items": [',
        '    {"name": "Ada", "at": {"city": "Ulm"}},',
        "    {",
        f'      "name": "{"b" * LONG_LINE}",',
        '      "tags": []',
        "    }",
        "  ],",
        '  "texts": [',
        f'    "{"c" * SHORT_LINE}"',
        "  ]",
        "}",
    ]


@pytest.mark.parametrize("text", ['{"a": 1}', "[]", "7"])
def test_other_values_have_no_places(text: str) -> None:
    assert read(FILE, text.encode()).places == []


@pytest.mark.parametrize("whole", ["[{}]", '{{"a":{}}}'], ids=["in a list", "in an object"])
def test_deep_values_stay_on_their_line(whole: str) -> None:
    deep = '{"a":' * 300 + "1" + "}" * 300
    assert deep in read(FILE, whole.format(deep).encode()).text


def test_text_that_is_not_json_stays_unchanged() -> None:
    assert read(FILE, b'{"a": 1,}').text == '{"a": 1,}'


def test_only_json_without_line_breaks_is_reformatted(tmp_path: Path) -> None:
    values = ["a value"] * LONG_LINE
    for name, text, expected in (
        ("a.json", json.dumps(values), str),
        ("b.json", json.dumps(values, indent=1), FileText),
        ("c.jsonl", json.dumps(values), FileText),
        ("d.json", "[1, 2]", FileText),
    ):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        assert isinstance(read_file(file), expected)
