"""Passages cut into what can be quoted by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragchat.offline.structure import Kind, Unit, units

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
Last words come here.
"""


def found(text: str, kind: Kind, uri: str = "") -> list[Unit]:
    return [unit for unit in units(text, uri) if unit.kind is kind]


def test_markdown_is_cut_into_labels_sentences_items_rows_and_code() -> None:
    assert [(unit.kind, unit.text) for unit in units(DOCUMENT)] == [
        (Kind.LABEL, "# Heading"),
        (Kind.SENTENCE, "First sentence."),
        (Kind.SENTENCE, "Second one."),
        (Kind.ITEM, "- milk\n  and more"),
        (Kind.ITEM, "- bread"),
        (Kind.ITEM, "1. step one"),
        (Kind.ROW, "| Ann | 41 |"),
        (Kind.ROW, "| Bob | 7 |"),
        (Kind.CODE, "x = 1"),
        (Kind.CODE, "y = 2"),
        (Kind.SENTENCE, "Last words come here."),
    ]
    assert {unit.lead for unit in found(DOCUMENT, Kind.ROW)} == {"| name | age |"}


def test_sentences_of_one_paragraph_are_of_one_block() -> None:
    first, second, third = units("One is here. Two is there.\n\nThree stands below.")
    assert first.block == second.block != third.block


def test_a_paragraph_after_a_list_is_not_part_of_its_last_item() -> None:
    text = "- milk\n\n- bread\n\n  with butter\n\nThen we went home."
    assert [unit.text for unit in found(text, Kind.ITEM)] == ["- milk", "- bread\n\n  with butter"]
    assert [unit.text for unit in found(text, Kind.SENTENCE)] == ["Then we went home."]


def test_an_item_has_the_line_that_introduces_its_list() -> None:
    (item,) = found("Bring to the party:\n\n- candles", Kind.ITEM)
    assert (item.context, item.lead) == ("Bring to the party:",) * 2


def test_mail_headers_are_labels() -> None:
    text = "From: Ann\nTo: Bob\nSubject: the tent\n\nThe tent is broken, sorry."
    assert [unit.text for unit in found(text, Kind.LABEL)] == ["From: Ann", "To: Bob", "Subject: the tent"]
    (sentence,) = found(text, Kind.SENTENCE)
    assert sentence.context == "From: Ann To: Bob Subject: the tent"


def test_a_short_line_above_a_paragraph_is_its_title() -> None:
    text = "Cancellation\nIt is free until the day before, and costs half of the price after that day."
    assert [unit.kind for unit in units(text)] == [Kind.LABEL, Kind.SENTENCE]
    assert [unit.kind for unit in units("We sat down.\nThen we ate.")] == [Kind.LINE, Kind.LINE]


def test_a_question_above_its_answer_leads_it() -> None:
    question, answer = units("May I bring a dog?\n\nYes, on a lead.")
    assert (question.kind, answer.lead) == (Kind.LABEL, "May I bring a dog?")


def test_a_message_of_several_lines_is_one_unit() -> None:
    text = "10:02 Ann: who comes?\n10:03 Bob: I do,\nand Carla too\n10:09 Ann: fine"
    assert [unit.text for unit in units(text)] == [
        "10:02 Ann: who comes?",
        "10:03 Bob: I do,\nand Carla too",
        "10:09 Ann: fine",
    ]


def test_a_setting_has_its_parents() -> None:
    yaml = "server:\n  host: alpha\n  limits:\n    uploads: 20\nclient:\n  host: beta"
    by_text = {unit.text: unit.context for unit in units(yaml, "file:///a.yaml")}
    assert by_text["uploads: 20"] == "server:\n  limits:"
    assert by_text["host: beta"] == "client:"
    toml = "[dome]\nspeed = 3\n[lamp]\nwatts = 5"
    assert [unit.context for unit in units(toml, "file:///a.toml")] == ["", "[dome]", "", "[lamp]"]


def test_code_that_is_cut_off_is_still_code() -> None:
    assert [unit.kind for unit in units("```\nx = 1\n")] == [Kind.CODE]


def test_lines_of_an_address_stay_lines() -> None:
    assert [unit.text for unit in found("Mill Lane 4\n1234 Town\nphone 55 44", Kind.LINE)] == [
        "Mill Lane 4",
        "1234 Town",
        "phone 55 44",
    ]


@given(st.text(alphabet="aB .!?\n-|#`>:。\"'1", max_size=80))
def test_every_unit_is_a_verbatim_part_of_its_passage(text: str) -> None:
    assert all(text[unit.start : unit.end] == unit.text for unit in units(text))
