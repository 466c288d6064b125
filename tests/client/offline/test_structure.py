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
    assert [unit.text for unit in found(text, Kind.FIELD)] == ["From: Ann", "To: Bob", "Subject: the tent"]
    (sentence,) = found(text, Kind.SENTENCE)
    assert sentence.context == "From: Ann To: Bob Subject: the tent"


def test_a_short_line_above_a_paragraph_is_its_title() -> None:
    text = "Cancellation\nIt is free until the day before, and costs half of the price after that day."
    assert [unit.kind for unit in units(text)] == [Kind.LABEL, Kind.SENTENCE]
    assert [unit.kind for unit in units("We sat down.\nThen we ate.")] == [Kind.LINE, Kind.LINE]


def test_a_question_above_its_answer_leads_it() -> None:
    question, answer = units("May I bring a dog?\n\nYes, on a lead.")
    assert (question.kind, answer.lead) == (Kind.LABEL, "May I bring a dog?")


def test_each_question_of_a_list_of_questions_leads_its_own_answer() -> None:
    text = "**May I bring a dog?**\nYes, but only on a lead, not in the rooms.\n\n**Is there a lift?**\nNo.\n"
    assert [(unit.text, unit.lead) for unit in units(text) if not unit.is_label] == [
        ("Yes, but only on a lead, not in the rooms.", "**May I bring a dog?**"),
        ("No.", "**Is there a lift?**"),
    ]


def test_the_last_of_several_sentences_introduces_a_list_only_with_a_colon() -> None:
    (item,) = found("We met at noon. The fee is due in May.\n\n- candles", Kind.ITEM)
    assert item.lead == ""
    (item,) = found("We met at noon. All of us bring:\n\n- candles", Kind.ITEM)
    assert item.lead == "All of us bring:"
    (item,) = found("All of us bring some of these things.\n\n- candles", Kind.ITEM)
    assert item.lead == "All of us bring some of these things."


def test_the_end_of_a_letter_is_its_signature_whatever_its_formula() -> None:
    letter = "Hello Bob,\n\nthe tent is broken, and nobody has mended it so far.\n\nDry nights\nAnn Lee"
    assert [unit.text for unit in units(letter) if not unit.is_label] == [
        "the tent is broken, and nobody has mended it so far."
    ]
    close = letter.replace("far.\n\n", "far.\n")
    assert [unit.text for unit in units(close) if not unit.is_label] == [
        "the tent is broken, and nobody has mended it so far."
    ]
    assert found(letter.replace("Hello Bob,\n\n", ""), Kind.LINE)
    assert found(letter.replace("Ann Lee", "in a new tent"), Kind.LINE)


def test_a_message_of_several_lines_is_one_unit() -> None:
    text = "10:02 Ann: who comes?\n10:03 Bob: I do,\nand Carla too\n10:09 Ann: fine"
    assert [unit.text for unit in units(text)] == [
        "10:02 Ann: who comes?",
        "10:03 Bob: I do,\nand Carla too",
        "10:09 Ann: fine",
    ]


def test_a_message_may_have_a_date_without_a_year() -> None:
    text = "[09.09., 08:05] Ann: the pane is broken\n[09.09., 08:30] Bob: it was me"
    assert [unit.text for unit in units(text)] == text.splitlines()


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


def test_records_of_a_csv_file_have_the_names_of_their_columns() -> None:
    text = "boat;call sign\nSkua;MHK4\nPetrel;MXQ7\n"
    skua, petrel = units(text, "file:///boats.csv")
    assert (skua.kind, skua.text, skua.reading) == (Kind.RECORD, "Skua;MHK4", "boat: Skua · call sign: MHK4")
    assert petrel.reading == "boat: Petrel · call sign: MXQ7"


def test_a_csv_passage_without_its_header_has_only_values() -> None:
    numbers, words = "1,2\n3,4\n", "ash,old\nelm,new\n"
    assert [unit.reading for unit in units(numbers, "file:///a.csv")] == ["1 · 2", "3 · 4"]
    continued = units(words, "file:///a.csv", has_header=False)
    assert [unit.reading for unit in continued] == ["ash · old", "elm · new"]


def test_a_table_of_contents_is_not_quoted() -> None:
    links = "- [Storing it](#storing-it)\n- [Drying it](#drying-it)\n\nHang it over a rope."
    assert [unit.text for unit in units(links)] == ["Hang it over a rope."]
    dots = "Storing it ........ 3\nDrying it .. . . . . 5"
    assert units(dots) == []
    assert [unit.kind for unit in units("# Contents\n\n- Storing it\n- Drying it")] == [Kind.LABEL]


def test_a_numbered_heading_is_a_label_and_a_step_is_an_item() -> None:
    text = "1. Storing it\n\nRoll it up.\n\n2. Drying it\n\nHang it over a rope."
    assert [unit.kind for unit in units(text)] == [Kind.LABEL, Kind.SENTENCE] * 2
    steps = "1. Mix the flour\n\n2. Add water\n\nThen bake it."
    assert [unit.kind for unit in units(steps)] == [Kind.ITEM, Kind.ITEM, Kind.SENTENCE]


def test_of_a_signature_only_numbers_and_addresses_are_quoted() -> None:
    text = "Hello Bob,\n\nthe tent is broken.\n\nKind regards,\nAnn Lee\nTel. 55 44\n\n-- \nAnn | Tents Ltd\n"
    assert [unit.text for unit in units(text) if unit.kind is not Kind.LABEL] == [
        "the tent is broken.",
        "Tel. 55 44",
    ]
    (telephone,) = found(text, Kind.LINE)
    assert telephone.lead == "Ann Lee"


def test_a_bold_question_above_its_answer_is_a_label() -> None:
    text = (
        "**How long?**\nSeven days, and once more if you ask for it by mail.\n\n"
        "**What does it cost?**\nTwo euros for each day, up to the price of the tool."
    )
    assert [(unit.text, unit.lead) for unit in found(text, Kind.SENTENCE)] == [
        ("Seven days, and once more if you ask for it by mail.", "**How long?**"),
        ("Two euros for each day, up to the price of the tool.", "**What does it cost?**"),
    ]


def test_a_short_line_that_introduces_a_list_does_not_answer() -> None:
    text = "Bring to the party:\n\n- candles"
    assert [unit.kind for unit in units(text)] == [Kind.LABEL, Kind.ITEM]
    assert found(text, Kind.ITEM)[0].lead == "Bring to the party:"


def test_an_entry_of_a_log_has_its_traceback() -> None:
    log = "2024-05-01T10:00:00Z ERROR failed\nTraceback:\n  line 4\n2024-05-01T10:01:00Z INFO retried"
    assert [unit.text for unit in units(log, "file:///a.log")] == [
        "2024-05-01T10:00:00Z ERROR failed\nTraceback:\n  line 4",
        "2024-05-01T10:01:00Z INFO retried",
    ]


@given(st.text(alphabet="aB .!?\n-|#`>:。\"'1", max_size=80))
def test_every_unit_is_a_verbatim_part_of_its_passage(text: str) -> None:
    assert all(text[unit.start : unit.end] == unit.text for unit in units(text))
