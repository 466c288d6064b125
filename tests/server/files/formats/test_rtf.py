"""RTF."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.rtf import NUMBERED, PICTURE, read

pytest.importorskip("striprtf", reason="striprtf is not installed")

FILE = Path("a.rtf")
# As Word writes it: a table of fonts, styles with outline levels, a picture, a heading, text, a table.
WORD = rb"""{\rtf1\ansi\ansicpg1252\deff0
{\fonttbl{\f0\fswiss\fcharset0 Arial;}{\f1\fnil\fcharset204 Arial Cyr;}}
{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}}{\info{\title Hidden}{\author Eve}}
\pard\plain\s1\outlinelevel0\b The boiler\par
\pard\plain\f0 The pressure is 1.5\~bar; see the caf\'e9\u8217\'92s sign
{\*\shppict{\pict\pngblip 89504e47}}.\par
\pard\plain\s2\outlinelevel1 Valve \u-10179?\u-8704?\par
\pard\plain It is {\b blue}.\line Turn it left.\par
{\header Page 3\par}\trowd\cellx1\cellx2\intbl Part\cell Price\cell\row
\trowd\cellx1\cellx2\intbl Valve\cell 12\cell\row
\pard\plain\f1 \'cf\'f0\'e8\'e2\'e5\'f2\par}"""


def test_headings_paragraphs_and_tables_are_read() -> None:
    found = read(FILE, WORD)
    assert found.text == (
        "# The boiler\n\nThe pressure is 1.5 bar; see the café’s sign.\n\n## Valve 😀\n\nIt is blue.\n\n"
        "Turn it left.\n\n| Part | Price |\n| --- | --- |\n| Valve | 12 |\n\nПривет\n"
    ).replace("1.5 bar", "1.5\xa0bar")
    assert found.title == "The boiler"
    assert [label for _, label in found.places] == [
        *("The boiler", "The boiler ¶ 1", "The boiler > Valve 😀", "The boiler > Valve 😀 ¶ 1"),
        *("The boiler > Valve 😀 ¶ 2", "The boiler > Valve 😀 table 1 row 1"),
        *("The boiler > Valve 😀 table 1 row 2", "The boiler > Valve 😀 ¶ 3"),
    ]


def test_items_keep_their_numbers_and_bullets() -> None:
    items = (
        rb"\outlinelevel0{\listtext\pard\plain\hich\af0 2.\tab}Rights\par\pard{\pntext\f0 1.\tab}Use.\par"
        rb"{\listtext a)\tab}At home.\par{\pntext\f1\'B7\tab}Alone.\par{\listtext"
        + b"\t\\uc0\\u8226 \t}Ask.\\par}"
    )
    found = read(FILE, rb"{\rtf1\ansi\pard" + items).text
    assert found == "# 2. Rights\n\n1. Use.\n\n- a) At home.\n\n- Alone.\n\n- Ask.\n"


def test_items_in_a_table_are_part_of_their_cells() -> None:
    row = rb"\trowd Tea\cell {\listtext 1.\tab}Boil\par{\listtext 2.\tab}Pour\cell\row\pard End.\par}"
    assert read(FILE, rb"{\rtf1\ansi" + row).text == "| Tea | 1. Boil 2. Pour |\n| --- | --- |\n\nEnd.\n"


def test_many_beginnings_of_items_are_searched_in_linear_time() -> None:
    began = time.process_time()
    assert NUMBERED.search("{\\listtext\\" * 10_000) is None
    assert time.process_time() - began < 2


def test_text_that_was_deleted_is_left_out() -> None:
    deleted = rb"{\deleted\revauthdel1 15 May}{\rtlch\fcs1 \af0 \deleted\delrsid5 or {\b later}}"
    assert read(FILE, rb"{\rtf1\ansi Due " + deleted + rb"{\revised 1 July}.\par}").text == "Due 1 July.\n"


def test_a_paragraph_that_ends_with_its_cell_stays_in_its_row() -> None:
    cells = rb"{{\pard\intbl River\par}" b"\n" rb"\cell}{{\pard\intbl Otters\par}\cell}"
    found = read(FILE, rb"{\rtf1\ansi{\trowd\cellx1\cellx2\intbl{" + cells + rb"}\intbl\row}\pard End.\par}")
    assert found.text == "| River | Otters |\n| --- | --- |\n\nEnd.\n"


def test_a_cell_may_have_several_paragraphs() -> None:
    row = rb"\trowd\cellx1\cellx2\intbl Lender\par Bank\par One\cell Borrower\par Ada\cell\row "
    found = read(FILE, rb"{\rtf1\ansi Loan\par " + row + rb"\pard One\par Two\par}")
    assert found.text == "Loan\n\n| Lender Bank One | Borrower Ada |\n| --- | --- |\n\nOne\n\nTwo\n"


def test_a_large_picture_takes_no_time() -> None:
    picture = rb"{\pict\pngblip " + b"89504e47\n" * 500_000 + b"}"
    assert read(FILE, rb"{\rtf1\ansi Before. " + picture + rb"After.\par}").text == "Before. After.\n"


@pytest.mark.parametrize("data", [b"no RTF", b"{\\rt", rb"{\rtf1\ansi}"])
def test_what_holds_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(NotText):
        read(FILE, data)


def test_digits_outside_pictures_are_scanned_once() -> None:
    spent = os.times().user
    assert PICTURE.sub("", f"{'f' * 999}z" * 2_000).count("z") == 2_000
    assert os.times().user - spent < 1


def test_articles_are_headings_where_no_style_says_which_lines_are() -> None:
    body = "".join(rf"Article {number}. Water\par It is cold.\par " for number in (1, 2))
    assert read(Path("a.rtf"), rf"{{\rtf1 {body}}}".encode()).text == (
        "# Article 1. Water\n\nIt is cold.\n\n# Article 2. Water\n\nIt is cold.\n"
    )
