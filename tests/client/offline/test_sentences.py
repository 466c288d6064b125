"""Passages cut into what can be quoted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragchat.offline.sentences import Kind, sentences, units


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("One is here. Two is there! Is three?", ["One is here.", "Two is there!", "Is three?"]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("Dr. Smith met J. R. Ewing in St. Louis. They talked.", None),
        ("Das kostet z. B. 3.5 Mio. Euro. Das ist viel.", None),
        ("Am 3. Oktober begann es. Danach nicht mehr.", None),
        (
            "水是生命之源。没有水就没有生命！“真的吗？”他问。",
            ["水是生命之源。", "没有水就没有生命！", "“真的吗？”", "他问。"],
        ),
        ("no capital. here it goes on", ["no capital. here it goes on"]),
        ("A line\nthat wraps. Another one.", ["A line\nthat wraps.", "Another one."]),
        ("", []),
    ],
)
def test_prose_is_cut_at_the_end_of_sentences(text: str, cut: list[str] | None) -> None:
    found = sentences(text)
    assert len(found) == 2 if cut is None else found == cut


DOCUMENT = """# Heading

First sentence. Second one.

- milk
  and more
- bread
1. step one

| name | age |
| --- | --- |
| Ann | 41 |
| Bob | 7 |

```python
x = 1

y = 2
```
Last words.
"""


def test_markdown_is_cut_into_sentences_items_rows_and_code() -> None:
    assert [(unit.kind, unit.text) for unit in units(DOCUMENT)] == [
        (Kind.SENTENCE, "First sentence."),
        (Kind.SENTENCE, "Second one."),
        (Kind.ITEM, "- milk\n  and more"),
        (Kind.ITEM, "- bread"),
        (Kind.ITEM, "1. step one"),
        (Kind.ROW, "| Ann | 41 |"),
        (Kind.ROW, "| Bob | 7 |"),
        (Kind.CODE, "```python\nx = 1\n\ny = 2\n```"),
        (Kind.SENTENCE, "Last words."),
    ]
    assert {unit.header for unit in units(DOCUMENT) if unit.kind is Kind.ROW} == {"| name | age |"}


def test_code_that_is_cut_off_is_still_code() -> None:
    assert [unit.kind for unit in units("```\nx = 1\n")] == [Kind.CODE]


@given(st.text(alphabet="aB .!?\n-|#`>。\"'1", max_size=80))
def test_every_unit_is_a_verbatim_part_of_its_passage(text: str) -> None:
    lines = "\n".join(text.splitlines())
    assert all(unit.text in lines for unit in units(text))
