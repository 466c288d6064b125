"""Word documents.

Covers `office`.
"""

from __future__ import annotations

import os
import re
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.docx import read
from tests.support.documents import archive

docx = pytest.importorskip("docx", reason="the extra `office` is not installed")
from docx.enum.style import WD_STYLE_TYPE  # noqa: E402
from docx.oxml import OxmlElement  # noqa: E402
from docx.oxml.ns import qn  # noqa: E402

FILE = Path("a.docx")


def made() -> bytes:
    document = docx.Document()
    document.add_heading("Brewing tea", 0)
    document.add_heading("Water", 1)
    document.add_paragraph("Boil it.")
    document.add_paragraph("green", style="List Bullet")
    document.add_paragraph("black", style="List Bullet")
    grid = document.add_table(2, 2)
    for cell, text in zip(grid._cells, ("Kind", "Minutes", "Green", "3"), strict=True):
        cell.text = text
    document.add_paragraph("After the table.")
    buffer = BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def test_headings_lists_and_tables_are_read_in_their_order() -> None:
    found = read(FILE, made())
    assert found.text == (
        "# Brewing tea\n\n# Water\n\nBoil it.\n\n- green\n- black\n\n"
        "| Kind | Minutes |\n| --- | --- |\n| Green | 3 |\n\nAfter the table.\n"
    )
    assert found.media_type == "text/markdown"


def test_a_paragraph_is_cited_by_its_heading_and_number() -> None:
    found = read(FILE, made())
    lines = found.text.split("\n")
    assert [(lines[line - 1], label) for line, label in found.places] == [
        ("# Brewing tea", "Brewing tea"),
        ("# Water", "Water"),
        ("Boil it.", "Water ¶ 1"),
        ("- green", "Water ¶ 2"),
        ("- black", "Water ¶ 3"),
        ("| Kind | Minutes |", "Water table 1 row 1"),
        ("| Green | 3 |", "Water table 1 row 2"),
        ("After the table.", "Water ¶ 4"),
    ]


def with_body(body: str, parts: dict[str, str] | None = None, relations: str = "") -> bytes:
    """A document with this content, in the namespace `w`, and with other parts and their relations."""
    with ZipFile(BytesIO(made())) as file:
        members = {name: file.read(name) for name in file.namelist()}
    document = members["word/document.xml"]
    start, end = document.index(b"<w:body>") + len(b"<w:body>"), document.index(b"<w:sectPr")
    members["word/document.xml"] = document[:start] + body.encode() + document[end:]
    known = "word/_rels/document.xml.rels"
    members[known] = members[known].replace(b"</Relationships>", f"{relations}</Relationships>".encode())
    kinds = "".join(
        f'<Override PartName="/{name}" ContentType="application/xml"/>'
        for name in parts or {}
        if name not in members
    )
    types = "[Content_Types].xml"
    members[types] = members[types].replace(b"</Types>", f"{kinds}</Types>".encode())
    return archive(members | {name: part.encode() for name, part in (parts or {}).items()})


def text(words: str) -> str:
    return f"<w:p><w:r><w:t>{words}</w:t></w:r></w:p>"


RESTART = '<w:vMerge w:val="restart"/>'


def cell(words: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{text(words)}</w:tc>"


def row(properties: str) -> str:
    return f"<w:tr>{cell('word', properties)}</w:tr>"


def test_headers_and_footers_are_read_once() -> None:
    document = docx.Document()
    document.add_paragraph("Dear Ada,")
    document.sections[0].header.paragraphs[0].text = "Crane Works, confidential"
    document.sections[0].footer.paragraphs[0].text = "Page 1 of 2"
    second = document.add_section()
    second.header.is_linked_to_previous = False
    second.header.paragraphs[0].text = "Crane Works, confidential"
    second.footer.is_linked_to_previous = False
    second.footer.paragraphs[0].text = "2"
    document.add_paragraph("Bye.")
    buffer = BytesIO()
    document.save(buffer)
    found = read(FILE, buffer.getvalue())
    assert found.text == ("Dear Ada,\n\nBye.\n\nHeader: Crane Works, confidential\n\nFooter: Page 1 of 2\n")
    assert [label for _, label in found.places] == ["¶ 1", "¶ 2", "header", "footer"]


def test_content_controls_text_boxes_and_insertions_are_read_and_deletions_are_not() -> None:
    inserted = (
        "<w:ins><w:r><w:t> new</w:t></w:r></w:ins><w:del><w:r><w:delText> old</w:delText></w:r></w:del>"
    )
    box = (
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f"<mc:Choice><w:txbxContent>{text('In a box')}</w:txbxContent></mc:Choice>"
        f"<mc:Fallback><w:txbxContent>{text('In a box')}</w:txbxContent></mc:Fallback></mc:AlternateContent>"
    )
    found = read(
        FILE,
        with_body(
            f"<w:sdt><w:sdtContent>{text('A form')}</w:sdtContent></w:sdt>"
            f"<w:p><w:r><w:t>The</w:t></w:r>{inserted}<w:r>{box}</w:r></w:p>"
        ),
    )
    assert found.text == "A form\n\nThe new\nIn a box\n"


NUMBERING = """
<w:numbering xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/></w:lvl>
<w:lvl w:ilvl="2"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="2"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val=" "/></w:lvl>
</w:abstractNum><w:num w:numId="7"><w:abstractNumId w:val="2"/></w:num>
<w:num w:numId="5"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="6"><w:abstractNumId w:val="1"/>
<w:lvlOverride w:ilvl="0"><w:startOverride w:val="4"/></w:lvlOverride></w:num></w:numbering>"""


def item(words: str, number: int, level: int) -> str:
    """An item of a list of NUMBERING."""
    numbers = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return f"<w:p><w:pPr>{numbers}</w:pPr><w:r><w:t>{words}</w:t></w:r></w:p>"


def test_numbered_items_keep_their_numbers() -> None:
    items = (
        ("Trap", 5, 0),
        ("bait", 5, 1),
        ("wait", 5, 1),
        ("roach", 5, 2),
        ("Release", 5, 0),
        ("rest", 5, 1),
    )
    body = "".join(item(*one) for one in items) + text("Later:") + item("Weigh", 5, 0) + item("Fourth", 6, 0)
    found = read(FILE, with_body(body, {"word/numbering.xml": NUMBERING.lstrip()}))
    assert found.text == (
        "1. Trap\n  1. bait\n  2. wait\n    - roach\n2. Release\n  1. rest\n\nLater:\n\n3. Weigh\n4. Fourth\n"
    )
    document = docx.Document()
    document.add_paragraph("Boil", style="List Number")
    document.add_paragraph("Pour", style="List Number")
    buffer = BytesIO()
    document.save(buffer)
    assert read(FILE, buffer.getvalue()).text == "1. Boil\n2. Pour\n"


def test_a_paragraph_with_a_blank_bullet_goes_on_with_its_item() -> None:
    body = item("Trap", 5, 0) + item("It needs bait.", 7, 0) + item("Release", 5, 0)
    found = read(FILE, with_body(body, {"word/numbering.xml": NUMBERING.lstrip()}))
    assert found.text == "1. Trap\n  It needs bait.\n2. Release\n"


LEGAL = """
<w:numbering xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:lvlText w:val="%1"/></w:lvl>
<w:lvl w:ilvl="1"><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/></w:lvl>
<w:lvl w:ilvl="2"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%3)"/></w:lvl>
<w:lvl w:ilvl="3"><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%4."/></w:lvl></w:abstractNum>
<w:num w:numId="5"><w:abstractNumId w:val="1"/></w:num></w:numbering>"""


def test_numbers_of_headings_and_clauses_are_as_word_shows_them() -> None:
    def numbered(words: str, level: int, style: str = "", number: int = 5) -> str:
        numbers = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
        named = f'<w:pStyle w:val="{style}"/>' if style else ""
        return f"<w:p><w:pPr>{named}{numbers}</w:pPr><w:r><w:t>{words}</w:t></w:r></w:p>"

    body = "".join(
        (
            numbered("Lease", 0, "Heading1"),
            numbered("Rent", 1, "Heading2"),
            numbered("in advance;", 2),
            numbered("in full.", 2),
            numbered("Always.", 3),
            numbered("Not in a list.", 0, number=0),
            numbered("Repairs", 1, "Heading2"),
            numbered("by the owner.", 2),
        )
    )
    found = read(FILE, with_body(body, {"word/numbering.xml": LEGAL.lstrip()}))
    assert found.text == (
        "# 1 Lease\n\n## 1.1 Rent\n\n    - (a) in advance;\n    - (b) in full.\n      - I. Always.\n\n"
        "Not in a list.\n\n## 1.2 Repairs\n\n    - (a) by the owner.\n"
    )


def test_sections_of_a_contract_are_decimal_below_roman_articles() -> None:
    levels = (
        '<w:lvl w:ilvl="0"><w:numFmt w:val="upperRoman"/><w:lvlText w:val="Article %1"/></w:lvl>'
        '<w:lvl w:ilvl="1"><w:numFmt w:val="decimalZero"/><w:isLgl/><w:lvlText w:val="%1.%2"/></w:lvl>'
    )
    numbering = LEGAL.replace(LEGAL[LEGAL.index("<w:lvl ") : LEGAL.index("</w:abstractNum>")], levels)
    body = "".join(
        f'<w:p><w:pPr><w:outlineLvl w:val="{level}"/><w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="5"/>'
        f"</w:numPr></w:pPr><w:r><w:t>{title}</w:t></w:r></w:p>"
        for level, title in ((0, "Terms"), (0, "Rent"), (1, "Amount"))
    )
    found = read(FILE, with_body(body, {"word/numbering.xml": numbering.lstrip()}))
    assert found.text == "# Article I Terms\n\n# Article II Rent\n\n## 2.01 Amount\n"


def test_notes_follow_the_text_with_their_marks() -> None:
    main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relations, members = "", dict[str, str]()
    for kind, words in (("footnote", "In 1998."), ("endnote", "See the list.")):
        note = f'<w:{kind} w:id="2">{text(words)}{text("End.")}</w:{kind}>'
        members[f"word/{kind}s.xml"] = f'<w:{kind}s xmlns:w="{main}">{note}</w:{kind}s>'
        relations += f'<Relationship Id="{kind}" Type="{kinds}/{kind}s" Target="{kind}s.xml"/>'
    foot, end = '<w:r><w:footnoteReference w:id="2"/></w:r>', '<w:r><w:endnoteReference w:id="2"/></w:r>'
    body = (
        f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Fish</w:t></w:r>{end}</w:p>'
        f"<w:p><w:r><w:t>Mostly roach</w:t></w:r>{foot}<w:r><w:t>.</w:t></w:r></w:p>{text('Then eel.')}"
    )
    found = read(FILE, with_body(body, members, relations))
    assert found.text == (
        "# Fish\n[^e1]: See the list. End.\n\nMostly roach[^1].\n[^1]: In 1998. End.\n\nThen eel.\n"
    )
    assert found.title == "Fish"
    assert [label for _, label in found.places] == ["Fish", "Fish ¶ 1", "Fish ¶ 2", "Fish ¶ 3"]


def test_comments_are_left_out_with_a_note() -> None:
    document = docx.Document()
    document.add_comment(document.add_paragraph("Order it.").runs, "Ask Bo.", "Ada")
    buffer = BytesIO()
    document.save(buffer)
    found = read(FILE, buffer.getvalue())
    assert (found.text, found.note) == ("Order it.\n", "has comments, which were not read")


def test_tracked_changes_are_read_as_if_accepted_with_a_note() -> None:
    runs = "<w:r><w:t>{}</w:t></w:r>".format
    changed = f"<w:ins>{runs('Six')}</w:ins><w:del><w:r><w:delText>Four</w:delText></w:r></w:del>"
    found = read(FILE, with_body(f"<w:p>{changed}{runs(' weeks')}</w:p>"))
    assert (found.text, found.note) == ("Six weeks\n", "has tracked changes, which were read as if accepted")


def test_cells_that_span_rows_and_columns_keep_their_places() -> None:
    inner = f"<w:tbl><w:tr>{cell('x')}{cell('y')}</w:tr></w:tbl>"
    rows = (
        cell("Kind", RESTART) + cell("Minutes", '<w:gridSpan w:val="2"/>'),
        cell("", "<w:vMerge/>") + cell("cold") + f"<w:tc>{inner}</w:tc>",
    )
    found = read(FILE, with_body(f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"))
    assert found.text == "| Kind | Minutes |  |\n| --- | --- | --- |\n| Kind | cold | x y |\n"


@pytest.mark.parametrize(
    "body",
    [
        text("word") * 10_000,
        "<w:tbl>" + row(RESTART) + row("<w:vMerge/>") * 5_000 + "</w:tbl>",
        "<w:tbl>" + row('<w:gridSpan w:val="100000000"/>') + "</w:tbl>",
    ],
    ids=["paragraphs", "cells that span rows", "cells that span columns"],
)
def test_large_documents_take_no_longer_than_they_must(body: str) -> None:
    data = with_body(body)
    spent = os.times().user
    assert "word" in read(FILE, data).text
    assert os.times().user - spent < 3


@pytest.mark.parametrize("data", [b"PK", made()[:2000], archive({"word/document.xml": "<x/>"}), archive({})])
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="is a damaged Word file"):
        read(FILE, data)


def test_raised_and_lowered_text_stays_apart_from_the_characters_before_it() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("The dish holds 10")
    for text in ("6", "k"):
        paragraph.add_run(text).font.superscript = True
    paragraph.add_run(" cells of H")
    paragraph.add_run("2").font.subscript = True
    paragraph.add_run("O.")
    buffer = BytesIO()
    document.save(buffer)
    assert read(FILE, buffer.getvalue()).text == "The dish holds 10^{6k} cells of H₂O.\n"


def bold(document: Any, text: str, style: str | None = None) -> None:
    paragraph = document.add_paragraph(style=style)
    paragraph.add_run(f"{text} ").bold = True
    paragraph.add_run("\t").bold = False


def test_bold_paragraphs_are_headings_where_no_style_says_which_are() -> None:
    document = docx.Document()
    document.add_paragraph("House rules", style="Title")
    for title in ("Water", "Fees"):
        bold(document, title, "List Number")
        said = document.add_paragraph()
        said.add_run("Note: ").bold = True
        said.add_run("it is turned off.")
        document.add_paragraph("one", style="List Bullet")
    buffer = BytesIO()
    document.save(buffer)
    assert read(FILE, buffer.getvalue()).text == (
        "# House rules\n\n## 1. Water\n\nNote: it is turned off.\n\n- one\n\n"
        "## 2. Fees\n\nNote: it is turned off.\n\n- one\n"
    )


def test_comments_in_a_listing_are_no_headings() -> None:
    document = docx.Document()
    document.styles.add_style("Source Code", WD_STYLE_TYPE.PARAGRAPH)
    for text in ("# With a token\n$ export TOKEN=1", "$ make", "#foo"):
        document.add_paragraph(text, style="Source Code")
    buffer = BytesIO()
    document.save(buffer)
    assert read(FILE, buffer.getvalue()).text == (
        "```\n# With a token\n$ export TOKEN=1\n```\n\n$ make\n\n#foo\n"
    )


def test_a_style_inherits_the_level_of_a_heading_and_an_outline_level_is_one() -> None:
    document = docx.Document()
    own = document.styles.add_style("Clause", WD_STYLE_TYPE.PARAGRAPH)
    own.base_style = document.styles["Heading 2"]
    entry = document.styles.add_style("Entry", WD_STYLE_TYPE.PARAGRAPH)
    entry.base_style = own
    none, third = (OxmlElement("w:outlineLvl") for _ in range(2))
    none.set(qn("w:val"), "9")
    third.set(qn("w:val"), "2")
    entry.element.get_or_add_pPr().append(none)
    document.add_paragraph("Water", style="Clause")
    document.add_paragraph("No heading", style="Entry")
    document.add_paragraph("Taps")._p.get_or_add_pPr().append(third)
    buffer = BytesIO()
    document.save(buffer)
    assert read(FILE, buffer.getvalue()).text == "## Water\n\nNo heading\n\n### Taps\n"


def test_struck_out_text_is_left_out() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Price ")
    paragraph.add_run("90 ").font.strike = True
    paragraph.add_run("80 ").font.double_strike = True
    paragraph.add_run("70 EUR").font.strike = False
    buffer = BytesIO()
    document.save(buffer)
    assert read(FILE, buffer.getvalue()).text == "Price 70 EUR\n"


def test_a_table_without_a_row_of_several_texts_is_a_frame() -> None:
    def table(*rows: tuple[str, ...]) -> str:
        cells = ("".join(f"<w:tc>{cell or '<w:p/>'}</w:tc>" for cell in row) for row in rows)
        return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"

    inner = table((text("Day"), text("Hours")), (text("Monday"), text("9–5")))
    body = table(("", text("Clerk") + text("Full time.")), ("", inner), ("", ""))
    found = read(FILE, with_body(body))
    assert found.text == "Clerk\n\nFull time.\n\n| Day | Hours |\n| --- | --- |\n| Monday | 9–5 |\n"


MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("A=π<m:sSup><m:e>r</m:e><m:sup>2</m:sup></m:sSup>", "A=πr²"),
        ("<m:sSub><m:e>x</m:e><m:sub>max</m:sub></m:sSub>", "x_{max}"),
        ("<m:f><m:num>a+b</m:num><m:den>2</m:den></m:f>", "(a+b)/2"),
        ("f<m:d><m:e>x</m:e></m:d>=<m:rad><m:deg/><m:e>x</m:e></m:rad>", "f(x)=√(x)"),
        (
            '<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>k=1</m:sub><m:sup>n</m:sup><m:e>k</m:e>'
            "</m:nary>",
            "∑_{k=1}ⁿ k",
        ),
        ("<m:limLow><m:e>lim</m:e><m:lim>n→∞</m:lim></m:limLow>", "lim_{n→∞}"),
    ],
)
def test_formulas_are_written_in_one_line(formula: str, shown: str) -> None:
    written = re.sub(r"(?<=>)([^<>]+)(?=<)|^[^<>]+", r"<m:r><m:t>\g<0></m:t></m:r>", formula)
    body = f'<w:p><m:oMath xmlns:m="{MATH}">{written}</m:oMath></w:p>'
    assert read(FILE, with_body(body)).text == f"{shown}\n"


def test_nested_formulas_take_no_exponential_time() -> None:
    depth = 60
    inner = "<m:d><m:e>" * depth + "<m:r><m:t>x</m:t></m:r>" + "</m:e></m:d>" * depth
    found = read(FILE, with_body(f'<w:p><m:oMath xmlns:m="{MATH}">{inner}</m:oMath></w:p>'))
    assert found.text == f"{'(' * depth}x{')' * depth}\n"
