"""PDF: the text of each page.

Covers `pdf_headings`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats import pdf as module
from ragmemory.files.formats.pdf import read
from ragmemory.files.formats.pdf_headings import Bookmark, Line, headings, is_cut, running_heads
from tests.support.documents import pdf

pytest.importorskip("pypdfium2", reason="the extra `pdf` is not installed")

PAPER = Path("paper.pdf")


def test_each_page_is_a_place() -> None:
    paper = read(PAPER, pdf(["Tea is (very) good.\nIt grows.", "The second page."], title="On tea"))
    assert paper.text == "Tea is (very) good.\nIt grows.\n\nThe second page.\n"
    assert paper.places == [(1, "p. 1"), (4, "p. 2")]
    assert (paper.title, paper.note) == ("On tea", "")


def test_a_word_divided_at_the_end_of_a_line_is_joined() -> None:
    assert read(PAPER, pdf(["An infor-\nmation."])).text == "An information.\n"
    assert read(PAPER, pdf(["The CONSTI-\nTUTION."])).text == "The CONSTITUTION.\n"
    # A compound keeps its hyphen.
    assert read(PAPER, pdf(["The systemd-\nInit."])).text == "The systemd-Init.\n"
    assert read(PAPER, pdf(["The RMA-\nNumber."])).text == "The RMA-Number.\n"
    assert read(PAPER, pdf(["The DNS-\nserver."])).text == "The DNS-server.\n"


def test_dots_that_lead_to_a_price_are_shortened() -> None:
    lines = f"Tea {'.' * 60} 2.50\nFog {'. ' * 30}4.10\nAnd so on ..."
    assert read(PAPER, pdf([lines])).text == "Tea .... 2.50\nFog .... 4.10\nAnd so on ...\n"


def test_a_title_that_is_divided_at_a_hyphen_keeps_it() -> None:
    said = [(12, "First"), (10, SAID), (10, SAID), (12, "Second"), (10, SAID), (10, SAID)]
    assert read(PAPER, pdf([sized((20, "The Gas-"), (20, "Union"), *said)])).title == "The Gas-Union"


def test_accents_printed_over_letters_are_part_of_them() -> None:
    def shown(apart: int) -> str:
        text = f"[(Instalaci\xc2) {apart} (on de program\xc8) 333 (as)] TJ"
        return read(PAPER, pdf([f"BT /F1 12 Tf 72 720 Td {text} ET".encode("cp1252")])).text

    assert shown(333) == "Instalación de programäs\n"
    assert "´on" in shown(-100)


def test_accents_printed_over_letters_are_part_of_them_wherever_they_stand() -> None:
    # Words, and then the accents over "u" and "o" and one over nothing.
    words = "BT /F1 12 Tf 72 720 Td (Vier fur Ol) Tj 0 -20 Td (Grosse) Tj ET"
    accents = "BT /F1 12 Tf 101.3 720 Td (\xc8) Tj -14.6 -20 Td (\xc8) Tj 100 0 Td (\xc8) Tj ET"
    text = read(PAPER, pdf([f"{words} {accents}".encode("latin-1")])).text
    assert text.replace("¨", "").split() == ["Vier", "für", "Ol", "Grösse"]
    assert text.count("¨") == 1


def test_characters_of_bitmaps_of_tex_are_those_of_its_encoding() -> None:
    def shown(text: str, font: str = "F3") -> str:
        content = f"BT /F4 12 Tf 72 720 Td (\x88) Tj /F1 12 Tf (\xa0a ) Tj /{font} 12 Tf ({text}) Tj ET"
        return read(PAPER, pdf([content.encode("latin-1")])).text

    assert (
        shown("gro\xffe De\x1cnition, 14\x1515, Szyma\xabska")
        == "•\xa0a große Definition, 14–15, Szymańska\n"
    )
    assert "«caf\xe9»" in shown("\xabcaf\xe9\xbb")
    assert "ÿ" in shown("Lou\xffs", "F1")


def test_characters_of_bitmaps_of_tex_that_are_named_like_dingbats_are_letters() -> None:
    content = b"BT /F6 12 Tf 72 720 Td (A \x1crm least squares t) Tj (est) Tj ET"
    assert read(PAPER, pdf([content])).text == "A firm least squares test\n"


def test_a_dingbat_of_a_font_without_a_name_is_kept() -> None:
    content = b"BT /F1 12 Tf 72 720 Td (Tea \xbf ) Tj /F6 12 Tf (a) Tj ET"
    assert read(PAPER, pdf([content])).text == "Tea ¿ ❛\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tr`es fran¸cais, Franc¸ois, ´ıntimo", "très français, François, íntimo"),
        ("f¨ur ˇzivot, tre ´ s", "für život, treś"),
        ("stosowan ˛a, najcz˛esciej", "stosowaną, najczęsciej"),
        ("/˜hgreen, don´t", "/˜hgreen, don´t"),
    ],
)
def test_accents_are_composed_with_the_letter_after_them(text: str, shown: str) -> None:
    assert module.composed(text) == shown


def test_notes_and_comments_on_highlights_follow_the_text_of_their_page() -> None:
    annotations = b"""
        << /Subtype /Text /Rect [0 0 9 9] /Contents (Pethick disagrees,\\r  see box 14.) >>
        << /Subtype /Highlight /Rect [0 0 9 9] /QuadPoints [0 9 9 9 0 0 9 0] /Contents <FEFF00640061003F> >>
        << /Subtype /Highlight /Rect [0 0 9 9] /Contents (Saltmarshes grow) >>
        << /Subtype /Popup /Rect [0 0 9 9] /Contents (A popup.) >>
        << /Subtype /Link /Rect [0 0 9 9] /Contents (A link.) >>
        << /Subtype /Widget /FT /Tx /Rect [0 0 9 9] /Contents (A form.) >>
        << /Subtype /Text /F 2 /Rect [0 0 9 9] /Contents (Accepted.) >>
        << /Subtype /Text /Rect [0 0 9 9] /Contents (low) >>
        << /Subtype /Text /Rect [0 0 9 9] /Contents (da?) >> << /Subtype /Ink /Rect [0 0 9 9] >> 17 null"""
    found = read(Path("a.pdf"), pdf(["Saltmarshes grow slowly."], annotations=annotations))
    notes = "Note: Pethick disagrees, see box 14.\n\nNote: da?\n\nNote: low\n"
    assert found.text == f"Saltmarshes grow slowly.\n\n{notes}"
    blank = read(Path("a.pdf"), pdf([""], annotations=annotations))
    assert "Note: da?\n" in blank.text
    assert blank.places == [(1, "p. 1")]


def test_the_values_of_form_fields_stand_with_their_labels() -> None:
    names = ("Name", "Street", "IBAN")
    said = "I allow the club to collect the fee from the account that is named above."
    page = placed(*((72, 700 - 30 * row, name) for row, name in enumerate(names)), (72, 580, said))
    widgets = b"".join(
        b"\n%d 0 obj << /Subtype /Widget /FT /Tx /T (%d) /V (the %s) /DA (/Helv 10 Tf 0 g)"
        b" /Rect [200 %d 400 %d] >> endobj" % (90 + row, row, name.encode(), 694 - 30 * row, 712 - 30 * row)
        for row, name in enumerate(names)
    )
    note = b"<< /Subtype /Text /Rect [0 0 9 9] /Contents (Check it.) >>"
    data = pdf([page], annotations=note + b" 90 0 R 91 0 R 92 0 R")
    form = b"/AcroForm << /Fields [90 0 R 91 0 R 92 0 R] /NeedAppearances true >> /Pages 2 0 R"
    found = read(PAPER, data.replace(b"/Pages 2 0 R", form, 1).replace(b"\nxref", widgets + b"\nxref"))
    table = "| Name | the Name |\n| --- | --- |\n| Street | the Street |\n| IBAN | the IBAN |\n"
    assert found.text == f"{table}\n{said}\n\nNote: Check it.\n"


def mapped(data: bytes, codes: str) -> bytes:
    """A PDF whose font F1 has these codes as text, lines such as "<91> <F0B7>", and no others."""
    count = len(codes.splitlines())
    space = "1 begincodespacerange <00> <FF> endcodespacerange"
    cmap = f"{space} {count} beginbfchar {codes} endbfchar".encode()
    stream = b"\n90 0 obj << /Length %d >>\nstream\n%s\nendstream endobj\nxref" % (len(cmap), cmap)
    return data.replace(b"/Helvetica >>", b"/Helvetica /ToUnicode 90 0 R >>", 1).replace(b"\nxref", stream, 1)


def test_bullets_of_symbol_fonts_are_bullets() -> None:
    listed = mapped(pdf(["‘ Rust and wear\n’ Theft"]), "<91> <F0B7>\n<92> <F0A7>")
    assert read(PAPER, listed).text == "• Rust and wear\n▪ Theft\n"


def test_characters_beyond_the_basic_plane_are_kept_in_tables() -> None:
    cells = [(x, 700 - 14 * row, f"{text} ‘") for row in range(3) for x, text in ((72, "a"), (200, "b"))]
    text = read(PAPER, mapped(pdf([placed(*cells)]), "<91> <D835DC63>")).text
    assert text == "| a 𝑣 | b 𝑣 |\n| --- | --- |\n| a 𝑣 | b 𝑣 |\n| a 𝑣 | b 𝑣 |\n"


def test_pages_without_text_are_named() -> None:
    paper = read(PAPER, pdf(["One.", "", "", "Four.", ""]))
    assert paper.note == "has no text on p. 2–3, 5, which may be scanned"
    assert paper.places == [(1, "p. 1"), (3, "p. 4")]
    assert paper.title == "paper.pdf"


@pytest.mark.parametrize(
    "title", ["untitled", " Untitled Document 1", "Microsoft Word - draft3.doc", "Word Document", "lni.dvi"]
)
def test_a_default_title_of_a_program_is_ignored(title: str) -> None:
    assert read(PAPER, pdf(["One."], title=title)).title == "paper.pdf"
    assert read(PAPER, pdf(["One."], title=f"The {title} case")).title == f"The {title} case".replace(
        "  ", " "
    )


def test_only_the_first_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAGES", 2)
    paper = read(PAPER, pdf(["One.", "Two.", "Three."]))
    assert paper.text == "One.\n\nTwo.\n"
    assert paper.note == "only the first 2 of its 3 pages were read"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pdf(["", ""]), "has no text on any page: it may be scanned"),
        (b"no PDF", "is a damaged PDF file, or not one at all"),
        (pdf(["One."])[:60], "is a damaged PDF file, or not one at all"),
        (pdf(["One."], is_encrypted=True), "is encrypted with a password"),
    ],
)
def test_a_file_without_text_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(NotText, match=reason):
        read(PAPER, data)


def placed(*lines: tuple[int, int, str]) -> bytes:
    """The content of a page with lines at these places, in points."""
    shown = (f"BT /F1 10 Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET" for x, y, text in lines)
    return "\n".join(shown).encode("cp1252")


def test_tables_and_columns_keep_their_order() -> None:
    table = [("Kind", "Minutes"), ("Green", "3"), ("Black", "5")]
    cells = [
        (x, 700 - 14 * row, cell)
        for row, line in enumerate(table)
        for x, cell in zip((72, 200), line, strict=True)
    ]
    left = [f"The left column is about tea, line {number}," for number in range(5)]
    right = [f"and the right one about cups, line {number}." for number in range(5)]
    columns = [
        (x, 700 - 14 * row, text)
        for row, line in enumerate(zip(left, right, strict=True))
        for x, text in zip((72, 330), line, strict=True)
    ]
    paper = read(PAPER, pdf([placed(*cells), placed(*columns)]))
    assert paper.text == (
        "| Kind | Minutes |\n| --- | --- |\n| Green | 3 |\n| Black | 5 |\n\n"
        + "\n".join([*left, *right])
        + "\n"
    )
    assert paper.note == ""


@pytest.mark.parametrize("turn", [b"0 1 -1 0 612 0", b"-1 0 0 -1 612 792", b"0 -1 1 0 0 792"])
def test_a_page_that_lies_on_its_side_has_its_lines_and_tables(turn: bytes) -> None:
    cells = [
        (x, 560 - 14 * row, cell)
        for row, line in enumerate([("Kind", "Minutes"), ("Green", "3"), ("Black", "5")])
        for x, cell in zip((72, 200), line, strict=True)
    ]
    content = placed(*cells, (72, 480, "Take fresh water for each pot."), (72, 466, "Warm it first."))
    assert read(PAPER, pdf([b"%s cm %s" % (turn, content)])).text == (
        "| Kind | Minutes |\n| --- | --- |\n| Green | 3 |\n| Black | 5 |\n\n"
        "Take fresh water for each pot.\nWarm it first.\n"
    )


def test_a_slanted_watermark_is_in_no_row_of_a_table() -> None:
    rows = [("Kind", "Minutes", "Heat"), *((f"Tea {number}", "3", "90") for number in range(8))]
    table = placed(
        *(
            (x, 700 - 14 * row, cell)
            for row, line in enumerate(rows)
            for x, cell in zip((72, 200, 330), line, strict=True)
        )
    )
    watermark = b"\nBT /F1 40 Tf .7071 .7071 -.7071 .7071 130 590 Tm (Copied) Tj ET"
    text = read(PAPER, pdf([table + watermark])).text
    assert "| Tea 6 | 3 | 90 |\n| Tea 7 | 3 | 90 |\n" in text
    assert text.count("\n| ---") == 1
    assert text.strip().endswith("Copied")


def test_pages_whose_order_could_not_be_told_are_named() -> None:
    scattered = [
        (72 + row % 9 * 20 + shift, 700 - 14 * row, f"i {row + 10}") for row in range(30) for shift in (0, 36)
    ]
    paper = read(PAPER, pdf(["Prose.", placed(*scattered)]))
    assert paper.note == "the order of columns or cells could not be told on p. 2"
    assert paper.text.count("i ") == 60


def test_a_page_with_an_order_that_is_plain_is_not_named() -> None:
    points = [
        (x, 700 - 14 * row, text)
        for row in range(13)
        for x, text in ((72, "\\225"), (90, f"Tea of the kind no. {row}, from the hills in the north."))
    ]
    # Programs may show each word on its own, and a full stop is a low box.
    words = [
        (x, 700 - 14 * row, text)
        for row in range(13)
        for x, text in ((72, "It is tea no. 1"), (140, "."), (150, "Drink it."))
    ]
    assert read(PAPER, pdf([placed(*points), placed(*words)])).note == ""


def sized(*lines: tuple[float, str], bold: str = "") -> bytes:
    """The content of a page with lines in these sizes, one below the other; those in `bold` are bold."""
    shown = (
        f"BT /F{1 + (text in bold.splitlines())} {size} Tf 1 0 0 1 72 {700 - 20 * row} Tm ({text}) Tj ET"
        for row, (size, text) in enumerate(lines)
    )
    return "\n".join(shown).encode("cp1252")


SAID = "It is written down here, in a line of the usual size."


def test_large_lines_are_headings_if_their_size_recurs_and_the_title_above_them() -> None:
    pages = [
        sized((30, "On kites"), (18, "Flying"), (10, SAID), (14, "In a strong"), (14, "wind"), (10, SAID)),
        sized((14, "In no wind"), (10, SAID), (18, "Building"), (10, SAID), (10, "# no heading"), (10, "#")),
    ]
    paper = read(PAPER, pdf(pages))
    assert [line for line in paper.text.split("\n") if line and line != SAID] == [
        *("# On kites", "# Flying", "## In a strong wind", "## In no wind", "# Building"),
        *("    # no heading", "    #"),
    ]
    assert paper.places == [(1, "p. 1"), (paper.text[: paper.text.index("## In no")].count("\n") + 1, "p. 2")]


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        (
            [(30, "Rules of"), (30, "the House"), (10, SAID), (10, "Dogs"), (10, SAID), (10, "Cats")],
            "Rules of the House",
        ),
        ([(10, "Dogs"), (10, SAID), (30, "Rules of the House"), (10, SAID), (10, "Cats")], ""),
        ([(30, "Rules"), (10, "Dogs"), (10, SAID), (10, "Cats"), (30, "More rules"), (10, SAID)], ""),
        ([(30, "Rules of the House"), (10, SAID)], ""),
    ],
)
def test_the_title_is_the_only_line_in_the_largest_size_above_other_headings(
    lines: list[tuple[float, str]], title: str
) -> None:
    paper = read(PAPER, pdf([sized(*lines, (10, SAID), bold="Dogs\nCats")]))
    assert paper.title == (title or "paper.pdf")
    assert paper.text.startswith(f"# {title}\n") == bool(title)


def test_the_bold_header_of_a_table_is_no_part_of_the_heading_above_it() -> None:
    lines = [(2, "Talk", ""), (1, SAID, ""), (1, SAID, ""), (2, "Tasks", "")]
    lines += [(2, "Task", "Who"), (1, "Order it", "Ann"), (1, "Pay it", "Ben")]
    shown = [
        f"BT /F{font} 10 Tf {x} {740 - 14 * row} Td ({cell}) Tj ET"
        for row, (font, *cells) in enumerate(lines)
        for x, cell in zip((72, 200), cells, strict=True)
        if cell
    ]
    text = read(PAPER, pdf(["\n".join(shown).encode()])).text
    assert text.startswith("# Talk\n")
    assert "\n# Tasks\n\n| Task | Who |\n| --- | --- |\n| Order it | Ann |\n| Pay it | Ben |\n" in text


def test_bold_lines_in_the_size_of_the_text_are_headings_but_no_remarks() -> None:
    bold = "FLYING\nIn a strong wind\nBuilding\nNote"
    lines = "FLYING", "In a strong wind", SAID, "Note", SAID, "Building", SAID, "Note", SAID, "Note", SAID
    text = read(PAPER, pdf([sized(*((10, line) for line in lines), bold=bold)])).text
    assert [line for line in text.split("\n") if line and line != SAID] == [
        *("# FLYING", "# In a strong wind", "Note", "# Building", "Note", "Note"),
    ]


@pytest.mark.parametrize(("mark", "count"), [("?", 3), (".", 0)])
def test_bold_questions_are_headings_also_where_their_answers_are_short(mark: str, count: int) -> None:
    bold = [f"Is the kite {colour} in the air at night{mark}" for colour in ("red", "blue", "gold")]
    lines = [(10, line) for one in bold for line in (one, SAID)]
    assert read(PAPER, pdf([sized(*lines, bold="\n".join(bold))])).text.count("# ") == count


def test_a_name_of_code_in_a_bold_title_is_part_of_it() -> None:
    titles = (("What", " fly ", "does"), ("To what kite", " land ", "is given, if"))
    shown = [
        f"/F2 10 Tf 1 0 0 1 72 {700 - 60 * row} Tm ({first}) Tj /F5 10 Tf ({code}) Tj /F2 10 Tf ({last}) Tj"
        f" 1 0 0 1 72 {685 - 60 * row} Tm (and when?) Tj /F1 10 Tf 1 0 0 1 72 {670 - 60 * row} Tm ({SAID}) Tj"
        for row, (first, code, last) in enumerate(titles)
    ]
    text = read(PAPER, pdf([f"BT {' '.join(shown)} ET".encode()])).text
    assert [line for line in text.split("\n") if line and line != SAID] == [
        "# What fly does and when?",
        "# To what kite land is given, if and when?",
    ]


@pytest.mark.parametrize(
    "code", ["/F7 10 Tf (SELECT) Tj /F5 10 Tf ( tail FROM", "/F5 10 Tf (Tail, ) Tj /F2 10 Tf (2"]
)
def test_a_line_of_code_or_of_an_index_with_a_bold_word_is_no_heading(code: str) -> None:
    shown = [
        f"1 0 0 1 72 {700 - 60 * row} Tm {code}) Tj"
        f" /F1 10 Tf 1 0 0 1 72 {685 - 60 * row} Tm ({SAID}) Tj 1 0 0 1 72 {670 - 60 * row} Tm ({SAID}) Tj"
        for row in range(2)
    ]
    assert "#" not in read(PAPER, pdf([f"BT {' '.join(shown)} ET".encode()])).text


def test_a_question_in_a_large_size_is_a_heading_also_if_it_is_long() -> None:
    asked = (
        "How many days does a kite of this kind stay up,",
        "if nobody holds the line, and what do we do then?",
    )
    lines = [(14, "Where is it?"), (10, SAID), *((14, line) for line in asked), *[(10, SAID)] * 6]
    assert f"# {' '.join(asked)}\n" in read(PAPER, pdf([sized(*lines)])).text


def test_a_line_right_above_a_larger_heading_is_its_label_or_names_the_author() -> None:
    first = (20, "On kites"), (12, "Ada Hawk"), (18, "Why"), (10, SAID), (12, "Tails"), (10, SAID)
    second = (16, "Chapter 2"), (18, "How"), (10, SAID), (12, "Lines"), (10, SAID)
    third = (16, "Chapter 3"), (18, "Where"), (10, SAID), (10, SAID), (10, SAID), (10, SAID), (10, SAID)
    text = read(PAPER, pdf([sized(*first), sized(*second), sized(*third)])).text
    assert [line for line in text.split("\n") if line and line != SAID] == [
        *("# On kites", "Ada Hawk", "# Why", "## Tails", "# Chapter 2 How", "## Lines", "# Chapter 3 Where"),
    ]


def test_pages_with_characters_that_have_no_code_have_headings() -> None:
    lines = (14, "Sets"), (10, f"{SAID} \0"), (14, "Maps"), (10, SAID), (10, SAID)
    assert "# Sets\n" in read(PAPER, pdf([sized(*lines)])).text


def test_bold_entries_of_a_table_of_contents_are_no_headings() -> None:
    bold = "Contents\n1 Sets 2\n2 Maps 2\n1 Sets\n2 Maps"
    lines = (
        *("Contents", "1 Sets 2", "1.1 Small ones . . . . 2", "2 Maps 2"),
        SAID,
        "1 Sets",
        SAID,
        "2 Maps",
        SAID,
    )
    text = read(PAPER, pdf([sized(*((10, line) for line in (*lines, SAID, SAID)), bold=bold)])).text
    assert [line for line in text.split("\n") if line.startswith("#")] == [
        "# Contents",
        "# 1 Sets",
        "# 2 Maps",
    ]


def test_a_font_with_a_very_long_name_is_not_as_bold_as_the_one_before() -> None:
    lines = "Flying", SAID, "Building", SAID, SAID
    paper = pdf([sized(*((10, line) for line in lines), bold="Flying\nBuilding")])
    paper = paper.replace(b"/Helvetica >>", b"/Helvetica" + b"x" * 300 + b" >>")
    assert read(PAPER, paper).text.count("# ") == 2


def test_captions_and_running_headers_in_a_large_size_are_no_headings() -> None:
    said = [(10, f"{SAID} {number}") for number in range(4)]
    pages = [
        sized((14, "The Kite Review"), (18, title), *said[:2], (14, f"Figure {n}. A kite"), *said[2:])
        for n, title in enumerate(("Flying", "Building", "Selling"), 1)
    ]
    lines = read(PAPER, pdf(pages)).text.split("\n")
    assert [line for line in lines if line and SAID not in line] == [
        *("# Flying", "Figure 1. A kite", "# Building", "Figure 2. A kite", "# Selling", "Figure 3. A kite"),
    ]


def test_a_heading_or_a_line_of_text_below_a_table_is_none_of_its_rows() -> None:
    rows = [("Kind", "Minutes"), ("Green", "3"), ("Black", "5")]
    shown = list[str]()
    y = 700
    for title in ("Leaves", "Bags"):
        shown.append(f"BT /F1 14 Tf 72 {y} Td ({title}) Tj ET")
        for row, (kind, minutes) in enumerate(rows):
            below = y - 28 - 14 * row
            shown.append(f"BT /F1 10 Tf 72 {below} Td ({kind}) Tj 128 0 Td ({minutes}) Tj ET")
        y -= 84
    shown.append(f"BT /F1 10 Tf 72 {y} Td (Time it.) Tj ET")
    table = "| Kind | Minutes |\n| --- | --- |\n| Green | 3 |\n| Black | 5 |\n"
    paper = read(PAPER, pdf(["\n".join(shown).encode()]))
    assert paper.text == f"# Leaves\n\n{table}\n# Bags\n\n{table}\nTime it.\n"


def test_a_numbered_heading_below_a_table_is_none_of_its_rows() -> None:
    cells = [("E15", "Water"), ("E18", "No inlet"), ("E22", "Filter")]
    rows = placed(
        *[
            (x, 700 - 14 * row, cell)
            for row, line in enumerate(cells)
            for x, cell in zip((72, 200), line, strict=True)
        ]
    )
    heading = b" BT /F1 14 Tf 72 640 Td (7) Tj 90 0 Td (Customer service) Tj ET"
    text = read(PAPER, pdf([rows + heading])).text
    assert text.endswith("| E22 | Filter |\n\n7 Customer service\n")


def test_the_levels_of_numbered_headings_are_those_of_their_numbers() -> None:
    titles = ["1 Scope", "1.1 Words", "1.1.1 Nouns", "2 Use"]
    lines = [line for title in titles for line in ((14, title), (10, SAID))]
    text = read(PAPER, pdf([sized(*lines)])).text
    assert [line for line in text.split("\n") if line.startswith("#")] == [
        *("# 1 Scope", "## 1.1 Words", "### 1.1.1 Nouns", "# 2 Use"),
    ]


def test_articles_of_a_text_in_one_size_are_headings() -> None:
    text = read(PAPER, pdf(["".join(f"Article {number}\n{SAID}\n" for number in (1, 2, 3))])).text
    assert text.count("\n# Article") + text.startswith("# Article 1") == 3


CUT, REST = "The kite that has the longest string is usually", "the one that flies highest."


def test_a_sentence_across_two_pages_is_in_one_paragraph_of_two_places() -> None:
    paper = read(PAPER, pdf([f"On kites.\n{CUT}", REST, "the end"]))
    assert paper.text == f"On kites.\n{CUT}\n{REST}\n\nthe end\n"
    assert paper.places == [(1, "p. 1"), (3, "p. 2"), (5, "p. 3")]


def test_a_sentence_cut_by_a_page_without_text_or_by_notes_begins_a_paragraph() -> None:
    assert read(PAPER, pdf([CUT, "", REST])).text == f"{CUT}\n\n{REST}\n"
    note = "that a kite of this kind is never seen"
    annotations = f"<< /Subtype /Text /Rect [0 0 9 9] /Contents ({note}) >>".encode()
    noted = read(PAPER, pdf([CUT, REST], annotations=annotations))
    assert noted.text == f"{CUT}\n\nNote: {note}\n\n{REST}\n\nNote: {note}\n"


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("", REST),
        (" " * 40, REST),
        ("Kites of all sizes", REST),
        ("# Of kites and strings and other flying things", REST),
        ("| Kites of all sizes, also for children | 12 |", REST),
        ("Figure 2. A kite that has the longest string", REST),
        (f"{CUT}.", REST),
        ("∗E-mail: ada@the-kites-of-the-sea.example", REST),
        (CUT, "The one that flies highest."),
        (CUT, "| the one that flies | highest of all kites |"),
        (CUT, "kites ........................................ 12"),
        (CUT, "small kites     for children     from 3 years on"),
        (CUT, "kites, small, 12"),
        (CUT, "a) the one that flies highest of all the kites;"),
        (CUT, "o the one that flies highest of all the kites"),
    ],
)
def test_a_page_that_begins_with_something_else_begins_a_paragraph(above: str, below: str) -> None:
    assert is_cut(CUT, REST)
    assert not is_cut(above, below)


def test_a_long_line_of_signs_above_a_page_is_looked_at_in_linear_time() -> None:
    # In quadratic time, this would take many minutes.
    assert is_cut("_" * 1_000_000 + " of kites", REST)


def test_running_headers_and_footers_are_removed() -> None:
    said = [f"Of the {word} kite." for word in ("first", "second", "third", "last")]
    pages = [f"The Kite Review\n{one}\nPage {number}" for number, one in enumerate(said)]
    assert read(PAPER, pdf(pages)).text == "\n\n".join(said) + "\n"


def test_a_number_that_stays_the_same_in_running_headers_is_read_once() -> None:
    said = [f"Of the {word} kite." for word in ("first", "second", "third", "last")]
    pages = [
        f"Cover of kites\nPolicy HB/88\n{one}\nPage {number} of 4\nCall 20417, p. {number}"
        for number, one in enumerate(said)
    ]
    kept = "Policy HB/88\nCall 20417, p. 0"
    assert read(PAPER, pdf(pages)).text == "\n\n".join([said[0], kept, *said[1:]]) + "\n"


def test_running_heads_of_sections_are_a_page_number_and_a_title_that_is_there_already() -> None:
    pages = [
        f"On kites\n{SAID}\n1",
        f"2 Chapter 1. FLYING\n{SAID}",
        f"1.2. Strings 3\n{SAID}\n1.2 Strings\n{SAID}",
        f"4 Building\n{SAID}",
        f"6 Building\n{SAID}",
        f"6 kites\n{SAID}",
    ]
    outline = [Bookmark(0, 1, "1 Flying"), Bookmark(2, 2, "1.2 Strings"), Bookmark(3, 1, "Building")]
    assert [*running_heads(pages, outline)] == [(1, "2 Chapter 1. FLYING"), (2, "1.2. Strings 3")]
    assert not [*running_heads(pages[:2], outline)]


def test_an_outline_names_the_headings() -> None:
    lines = [Line(text, 10.0) for text in ("7", "1 Flying", SAID, "Of strings", "and tails", SAID)]
    outline = [Bookmark(0, 1, "Flying"), Bookmark(0, 2, "Of strings and tails"), Bookmark(0, 2, "Not there")]
    found = headings([lines], outline)
    assert [(one.line, one.lines, one.level, one.title) for one in found] == [
        (1, 1, 1, "1 Flying"),
        (3, 2, 2, "Of strings and tails"),
    ]
