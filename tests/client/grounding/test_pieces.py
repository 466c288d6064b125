"""Passages in pieces, and prose cut into sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragchat.grounding.pieces import MAX_LINE, piece_spans, sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


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


@given(st.text(alphabet="aB .!?\n。\"'1", max_size=80))
def test_sentences_together_are_the_text_without_the_space_between(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_lines_are_pieces_with_their_indentation_and_empty_lines_are_none() -> None:
    text = "# Ports\n\n  port = 80  \nOne. Two.\n"
    assert [text[start:end] for start, end in piece_spans(text)] == ["# Ports", "  port = 80", "One. Two."]


def test_a_long_line_is_cut_into_its_sentences() -> None:
    sentence = "The pump is in the cellar. "
    text = "Short.\n" + sentence * (MAX_LINE // len(sentence) + 1)
    assert {text[start:end] for start, end in piece_spans(text)} == {"Short.", sentence.strip()}


def test_the_row_of_a_table_is_whole_unless_it_is_very_long() -> None:
    row = f"| mute | {'The pump is off. ' * (MAX_LINE // 6)}".ljust(3 * MAX_LINE) + "|"
    assert [text[slice(*span)] for text in [f"{row}\n{row}"] for span in piece_spans(text)] == [row, row]
    long = f"{row[:-1]} The tap drips. |".ljust(5 * MAX_LINE) + "|"
    assert len([*piece_spans(long)]) > 1
    cells = "| a | b | c | d " + long
    assert [*piece_spans(cells)] == [(0, len(cells))]
    assert [*piece_spans(long, wraps=False)] == [(0, len(long))]


WRAPPED = (
    "Dear all, the landlord will give us the rooftop for £1,850 a month\n"
    "if we sign by 14 April. The present rent is £1,700. I think we should\n"
    "ask for a break clause.\n\n"
    "- Fire drill: Thursday 20 March, 11:00. Meeting point is the car park\n"
    "  behind the laboratory, as in the last year.\n"
)


def test_lines_justified_as_those_of_manual_pages_are_wrapped_prose() -> None:
    text = (
        "       You  may  establish  the  connection via a proxy by setting the name\n"
        "       of a host in RSYNC_PROXY.   Note  that the proxy's settings must  be\n"
        "       right for that.\n"
    )
    assert [len(text[slice(*span)].split()) for span in piece_spans(text)] == [17, 10]


def test_wrapped_lines_are_cut_into_the_sentences_of_their_paragraph() -> None:
    assert [" ".join(WRAPPED[start:end].split()) for start, end in piece_spans(WRAPPED)] == [
        "Dear all, the landlord will give us the rooftop for £1,850 a month if we sign by 14 April.",
        "The present rent is £1,700.",
        "I think we should ask for a break clause.",
        "- Fire drill: Thursday 20 March, 11:00.",
        "Meeting point is the car park behind the laboratory, as in the last year.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "total = compute_the_sum_of(first_argument, second_argument, third)\nreturn total",
        "SO-1,2024-04-16,Café Lumière,Lyon,Rain cover XL,31,22.0,delivered\nSP-2,2024-04-17,Café,Nice,1",
        "Nov 26 20:30:11 host kernel: the first of two lines\nNov 26 20:30:12 host kernel: another",
        "2026-11-26T20:30:11Z INFO the first of two lines\n2026-11-26T20:30:12Z ERROR the disk is full",
        "12.03.26, 18:02 - Anna: The cat was at the vet today\n13.03.26, 18:05 - Ben: The ferry is booked",
        "[18:02] Anna: The cat was at the vet today, and is well\n[18:05] Ben: The ferry is booked",
        "| a row of a table with several cells | which is rather long here |\n| next | row |",
        "Name      of the person who is responsible       for the room\nPhone     and the hours",
        "The following is a list of all the things that you need for it:\na spade and a rake",
        "Responsible for the heating and for all of the pumps is the janitor\nPhone of the janitor: 1234",
        "This line of a list of links is as long as the others, more or less\n* another mark",
        "A short line\nand another one",
    ],
)
def test_lines_that_are_no_prose_are_pieces_of_their_own(text: str) -> None:
    assert [text[start:end] for start, end in piece_spans(text)] == text.split("\n")


@pytest.mark.parametrize(
    "text",
    [
        "The pressure of the boiler must not be lower than 1.2 and no more than\n1.8 bar in winter.",
        "3.5 kg of flour are mixed with the water and rest for\nan hour in a warm place.",
    ],
)
def test_a_number_at_the_beginning_of_one_line_leaves_a_paragraph_whole(text: str) -> None:
    assert [text[start:end] for start, end in piece_spans(text)] == [text]


def test_records_are_pieces_also_where_their_lines_look_like_wrapped_prose() -> None:
    rows = [
        f"Person {n},a weaver of carpets and of curtains,lives in a house with a garden" for n in range(3)
    ]
    rows += [f'pump,"{"It drips. " * (MAX_LINE // 3)}",Loft']
    text = "\n".join(["name,who,where", *rows])
    assert [text[slice(*span)] for span in piece_spans(text, text.index("\n"), wraps=False)] == rows
