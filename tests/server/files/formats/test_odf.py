"""OpenDocument texts, spreadsheets and presentations."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.odf import read
from tests.support.documents import archive, odf_members, odt_members

pytest.importorskip("defusedxml", reason="defusedxml is not installed")

FILE = Path("a.odt")


def test_headings_lists_and_tables_are_read_in_their_order() -> None:
    found = read(
        FILE,
        archive(
            odt_members(
                '<text:h text:outline-level="2">Water</text:h><text:p>Boil<text:s text:c="2"/>it.</text:p>'
                "<text:list><text:list-item><text:p>green</text:p><text:list><text:list-item><text:p>Sencha"
                "</text:p></text:list-item></text:list></text:list-item></text:list>"
                '<table:table><table:table-row><table:table-cell table:number-columns-repeated="2">'
                "<text:p>Kind</text:p></table:table-cell></table:table-row></table:table>"
            )
        ),
    )
    assert found.text == ("## Water\n\nBoil  it.\n\n- green\n  - Sencha\n\n| Kind | Kind |\n| --- | --- |\n")
    assert found.title == "Water"


def rules(body: str, style: str = "") -> str:
    """The text of a document with lists of the style "Rules", whose second level has bullets."""
    level = '<text:list-level-style-number text:level="{}" style:num-format="{}"{}/>'
    numbers = (
        level.format(1, "1", style)
        + '<text:list-level-style-bullet text:level="2"/>'
        + level.format(3, "1", "")
    )
    styles = f'<text:list-style style:name="Rules">{numbers}</text:list-style>'
    inner = styles.replace("Rules", "Inner")  # as of the outline of a presentation
    styles += f"<style:style><style:graphic-properties>{inner}</style:graphic-properties></style:style>"
    return read(FILE, archive(odf_members("text", f"<office:text>{body}</office:text>", styles))).text


def items(*texts: str, about: str = "") -> str:
    inner = "".join(f"<text:list-item><text:p>{text}</text:p></text:list-item>" for text in texts)
    return f'<text:list text:style-name="Rules"{about}>{inner}</text:list>'


def test_numbered_lists_keep_their_numbers() -> None:
    assert rules(items("Sheds", "Keys")) == "1. Sheds\n2. Keys\n"
    assert rules(items("Sheds", "Keys"), ' text:start-value="4"') == "4. Sheds\n5. Keys\n"
    assert rules(items("Sheds").replace("Rules", "Other")) == "- Sheds\n"
    assert rules(items("Sheds").replace("Rules", "Inner")) == "1. Sheds\n"
    restarted = items("Sheds", "Keys").replace("<text:list-item>", '<text:list-item text:start-value="9">', 1)
    assert rules(restarted) == "9. Sheds\n10. Keys\n"
    header = (
        items("Sheds", "Keys")
        .replace("list-item", "list-header", 1)
        .replace("/text:list-item", "/text:list-header", 1)
    )
    assert rules(header) == "- Sheds\n1. Keys\n"


def test_a_list_continues_another_only_if_it_says_so() -> None:
    text = "<text:p>But:</text:p>"
    assert rules(items("a", "b") + text + items("c")) == "1. a\n2. b\n\nBut:\n\n1. c\n"
    continued = items("c", about=' text:continue-numbering="true"')
    assert rules(items("a", "b") + text + continued) == "1. a\n2. b\n\nBut:\n\n3. c\n"
    first, other = items("a", about=' xml:id="l1"'), items("x", about=' xml:id="l2"')
    continued = items("b", about=' text:continue-list="l1"')
    assert rules(first + other + continued) == "1. a\n\n1. x\n\n2. b\n"


def test_nested_lists_have_the_numbers_of_their_level() -> None:
    def nested(inner: str) -> str:
        return f"<text:list><text:list-item>{inner}</text:list-item></text:list>"

    lowest = nested(f"<text:p>bullet</text:p>{nested('<text:p>deep</text:p>')}")
    body = items(f"a</text:p>{lowest}<text:p>", f"b</text:p>{lowest}<text:p>")
    lines = "\n  - bullet\n    1. deep\n"
    assert rules(body) == f"1. a{lines}2. b{lines}"


def test_headings_have_the_numbers_of_the_outline() -> None:
    level = '<text:outline-level-style text:level="{}" style:num-format="1"{}/>'
    styles = (
        '<text:outline-style style:name="Outline">'
        + level.format(1, "")
        + level.format(2, ' text:display-levels="2"')
        + '</text:outline-style><style:style style:name="Preface" style:list-style-name=""/>'
        + '<style:default-style style:list-style-name=""/>'
    )
    heading = '<text:h text:outline-level="{}"{}>{}</text:h>'
    body = (
        heading.format(1, ' text:style-name="Preface"', "Preface")
        + heading.format(1, "", "Kites")
        + heading.format(2, "", "Tails")
        + heading.format(2, ' text:is-list-header="true"', "A note")
        + heading.format(2, "", "Lines")
    )
    found = read(FILE, archive(odf_members("text", f"<office:text>{body}</office:text>", styles)))
    assert found.text == "# Preface\n\n# 1 Kites\n\n## 1.1 Tails\n\n## A note\n\n## 1.2 Lines\n"


def test_headings_in_lists_are_headings_with_the_numbers_of_the_list() -> None:
    levels = (
        '<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>'
        '<text:list-level-style-number text:level="2" style:num-format="1" text:display-levels="2"/>'
        '<text:list-level-style-number text:level="3" style:num-format="a" style:num-prefix="("'
        ' style:num-suffix=")"/>'
    )
    continued = ' text:continue-numbering="true"'

    def numbered(text: str, level: int, about: str = continued) -> str:
        inner = f"<text:list-item>{text}</text:list-item>"
        for _ in range(level - 1):
            inner = f"<text:list-item><text:list>{inner}</text:list></text:list-item>"
        return f'<text:list text:style-name="Law"{about}>{inner}</text:list>'

    def heading(title: str, level: int) -> str:
        return f'<text:h text:outline-level="{level}">{title}</text:h>'

    body = "".join(
        (
            numbered(heading("Lease", 1), 1, ""),
            numbered(heading("Rent", 2), 2),
            numbered("<text:p>in advance;</text:p>", 3),
            numbered("<text:p>in full.</text:p>", 3),
            numbered(heading("Repairs", 2), 2),
        )
    )
    styles = f'<text:list-style style:name="Law">{levels}</text:list-style>'
    found = read(FILE, archive(odf_members("text", f"<office:text>{body}</office:text>", styles)))
    assert found.text == (
        "# 1. Lease\n\n## 1.1 Rent\n\n    - (a) in advance;\n\n    - (b) in full.\n\n## 1.2 Repairs\n"
    )
    assert [label for _, label in found.places][-1] == "1. Lease > 1.2 Repairs"


def test_the_styles_of_lists_may_be_those_of_the_user() -> None:
    styles = odf_members("text", "")["content.xml"].replace(
        "<office:automatic-styles>",
        '<office:automatic-styles><text:list-style style:name="Mine"><text:list-level-style-number '
        'text:level="1" style:num-format="1"/></text:list-style>',
    )
    found = read(
        FILE, archive(odt_members(items("a", "b").replace("Rules", "Mine")) | {"styles.xml": styles})
    )
    assert found.text == "1. a\n2. b\n"


def test_notes_follow_the_text_with_their_marks() -> None:
    note = (
        '<text:note text:note-class="{}"><text:note-citation>1</text:note-citation>'
        "<text:note-body><text:p>{}</text:p><text:p>End.</text:p></text:note-body></text:note>"
    )
    foot, end = note.format("footnote", "In 1998."), note.format("endnote", "See the list.")
    found = read(
        FILE, archive(odt_members(f"<text:h>Fish{end}</text:h><text:p>Mostly roach{foot}.</text:p>"))
    )
    assert found.text == "# Fish\n[^e1]: See the list. End.\n\nMostly roach[^1].\n[^1]: In 1998. End.\n"
    assert found.title == "Fish"


def test_comments_are_left_out_with_a_note() -> None:
    comment = "<office:annotation><text:p>Ask Bo.</text:p></office:annotation>"
    found = read(FILE, archive(odt_members(f"<text:p>Order it.{comment}</text:p>")))
    assert (found.text, found.note) == ("Order it.\n", "has comments, which were not read")


def test_tracked_changes_are_read_as_if_accepted_with_a_note() -> None:
    deleted = (
        "<text:changed-region><text:deletion><text:p>Four</text:p></text:deletion></text:changed-region>"
    )
    changes = f"<text:tracked-changes>{deleted}</text:tracked-changes>"
    found = read(FILE, archive(odt_members(f"{changes}<text:p>Six weeks</text:p>")))
    assert (found.text, found.note) == ("Six weeks\n", "has tracked changes, which were read as if accepted")


def test_sections_below_the_first_heading_are_read() -> None:
    section = "<text:section><text:h>Costs</text:h><text:p>Nine.</text:p></text:section>"
    found = read(FILE, archive(odt_members(f"<text:h>Report</text:h>{section}")))
    assert found.text == "# Report\n\n# Costs\n\nNine.\n"


def test_cells_that_span_rows_and_columns_or_are_empty_keep_their_places() -> None:
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
    covered, empty = "<table:covered-table-cell/>", '<table:table-cell table:number-columns-repeated="2"/>'
    rows = (
        cell.format(' table:number-rows-spanned="2"', "Kind")
        + cell.format(' table:number-columns-spanned="2"', "Minutes")
        + covered,
        covered + cell.format("", "hot</text:p><text:p>tea") + cell.format("", "cold"),
        empty + cell.format("", "9"),
    )
    table = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    found = read(FILE, archive(odt_members(f"<table:table>{table}</table:table>")))
    assert found.text == (
        "| Kind | Minutes |  |\n| --- | --- | --- |\n| Kind | hot tea | cold |\n|  |  | 9 |\n"
    )


def test_bold_paragraphs_are_headings_where_there_are_no_others() -> None:
    fonts = "".join(
        f'<style:style style:name="{name}" style:parent-style-name="{base}">{font}</style:style>'
        for name, base, font in (
            ("strong", "", '<style:text-properties fo:font-weight="bold"/>'),
            ("P1", "strong", ""),
            ("T1", "strong", '<style:text-properties fo:font-weight="normal"/>'),
        )
    )
    body = (
        '<text:p text:style-name="P1">Water</text:p><text:p>It is cold.</text:p>'
        '<text:p><text:span text:style-name="strong">Fees</text:span></text:p><text:p>They are low.</text:p>'
        '<text:p><text:span text:style-name="strong">Note:</text:span> pay.</text:p>'
        '<text:p><text:span text:style-name="T1">Thanks</text:span></text:p>'
        '<text:p text:style-name="P1"><text:span text:style-name="T1">Yours</text:span></text:p>'
    )
    found = read(Path("a.odt"), archive(odf_members("text", f"<office:text>{body}</office:text>", fonts)))
    assert (
        found.text == "# Water\n\nIt is cold.\n\n# Fees\n\nThey are low.\n\nNote: pay.\n\nThanks\n\nYours\n"
    )


def test_a_paragraph_in_the_style_of_titles_is_the_title() -> None:
    centred = '<style:style style:name="P1" style:parent-style-name="Title"/>'
    body = (
        '<text:p text:style-name="{}">Rules of<text:line-break/>the House</text:p>'
        '<text:p text:style-name="Title"/>'
        '<text:h text:outline-level="1">Dogs</text:h><text:p>On a lead.</text:p>'
    )
    for style in ("Title", "P1"):
        text = f"<office:text>{body.format(style)}</office:text>"
        found = read(Path("a.odt"), archive(odf_members("text", text, centred)))
        assert found.text == "# Rules of the House\n\n# Dogs\n\nOn a lead.\n"
        assert found.title == "Rules of the House"


def test_styles_that_inherit_in_a_circle_have_no_weight() -> None:
    fonts = "".join(
        f'<style:style style:name="P{number}" style:parent-style-name="P{(number + 1) % 3}"/>'
        for number in range(3)
    )
    body = '<text:p text:style-name="P1">Water</text:p><text:p>It is cold.</text:p>' * 3
    found = read(Path("a.odt"), archive(odf_members("text", f"<office:text>{body}</office:text>", fonts)))
    assert "#" not in found.text


def test_an_entity_is_refused() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'
    with pytest.raises(NotText, match="is a damaged OpenDocument file"):
        read(FILE, archive({"content.xml": bomb}))


@pytest.mark.parametrize("data", [b"PK", archive({}), archive({"content.xml": "<x"})])
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="is a damaged OpenDocument file"):
        read(FILE, data)


def test_the_text_of_tables_in_tables_is_read_once() -> None:
    inner = "<table:table><table:table-row><table:table-cell><text:p>{}</text:p>{}"
    end = "</table:table-cell></table:table-row></table:table>"
    body = inner.format("one", inner.format("two", "") + end) + end
    found = read(Path("a.odt"), archive(odt_members(body)))
    assert found.text == "| one two |\n| --- |\n"


def row(*cells: str, repeated: int = 1) -> str:
    return f'<table:table-row table:number-rows-repeated="{repeated}">{"".join(cells)}</table:table-row>'


def cell(text: str, attributes: str = "") -> str:
    return f"<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>"


def sheet(name: str, *rows: str, style: str = "shown") -> str:
    return f'<table:table table:name="{name}" table:style-name="{style}">{"".join(rows)}</table:table>'


EMPTY = "<table:table-cell/>"


def test_a_spreadsheet_is_read_as_it_is_shown_with_dates_in_iso_8601() -> None:
    rows = [
        row(EMPTY, cell("All in euros")),
        row('<table:table-cell table:number-columns-repeated="16384"/>', repeated=3),
        row(cell("Item"), cell("Share"), cell("Paid")),
        row(
            cell("Tea", 'table:number-columns-spanned="1"'),
            cell("45 %", 'office:value="0.45"'),
            cell("22.11.26", 'office:date-value="2026-11-22T00:00:00"'),
        ),
        row('<table:table-cell table:number-columns-repeated="16384"/>', repeated=1_048_570),
    ]
    hidden = '<style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
    body = sheet("Costs", *rows) + sheet("Old", row(cell("x"), EMPTY, cell("y")), style="h")
    found = read(
        Path("a.ods"),
        archive(odf_members("spreadsheet", f"<office:spreadsheet>{body}</office:spreadsheet>", hidden)),
    )
    assert found.text == (
        "# Costs\n\nAll in euros\n\n"
        "| Item | Share | Paid |\n| --- | --- | --- |\n| Tea | 45 % | 2026-11-22 |\n"
        "\n# Old (hidden)\n\n| x |  | y |\n| --- | --- | --- |\n"
    )
    assert found.places == [
        *((1, "sheet Costs"), (3, "sheet Costs B1"), (5, "sheet Costs row 5"), (7, "sheet Costs row 6")),
        *((9, "sheet Old"), (11, "sheet Old row 1")),
    ]
    assert (found.title, found.note) == ("a.ods", "has the hidden sheet Old")


def test_a_cell_of_a_sheet_that_spans_rows_is_in_each_of_them() -> None:
    covered = "<table:covered-table-cell/>"
    spanning = cell("Ada", 'table:number-rows-spanned="2"')
    rows = (row(cell("Who"), cell("Where")), row(spanning, cell("Bern")), row(covered, cell("Chur")))
    text = f"<office:spreadsheet>{sheet('Trips', *rows, row(cell('Eve'), cell('Genf')))}</office:spreadsheet>"
    data = archive(odf_members("spreadsheet", text))
    assert read(Path("a.ods"), data).text.splitlines()[4:] == [
        *("| Ada | Bern |", "| Ada | Chur |", "| Eve | Genf |")
    ]


def test_a_cell_repeated_over_the_whole_sheet_does_not_fill_the_text() -> None:
    filled = row(cell("x", 'table:number-columns-repeated="16384"'), repeated=1_048_576)
    body = f"<office:spreadsheet>{sheet('S', filled)}</office:spreadsheet>"
    found = read(Path("a.ods"), archive(odf_members("spreadsheet", body)))
    assert len(found.text) < 100_000
    assert found.note == "only the first 100 of equal rows or cells that follow each other were read"


def test_a_presentation_has_its_slides_with_titles_texts_and_notes() -> None:
    def frame(text: str, kind: str = "outline") -> str:
        return f'<drawing:frame presentation:class="{kind}"><text:p>{text}</text:p></drawing:frame>'

    hidden = (
        '<style:style style:name="h"><style:drawing-page-properties presentation:visibility="hidden"/>'
        "</style:style>"
    )
    notes = f"<presentation:notes>{frame('Wait here.', 'notes')}</presentation:notes>"
    slides = (
        f"<drawing:page>{frame('Trams', 'title')}{frame('Every 7 minutes')}{notes}</drawing:page>"
        f'<drawing:page drawing:style-name="h">{frame("Buses")}</drawing:page>'
    )
    found = read(
        Path("a.odp"),
        archive(odf_members("presentation", f"<office:presentation>{slides}</office:presentation>", hidden)),
    )
    assert found.text == ("# Trams\n\nEvery 7 minutes\n\nNotes: Wait here.\n\n# Slide 2 (hidden)\n\nBuses\n")
    assert found.places == [(1, "slide 1"), (7, "slide 2")]
    assert (found.title, found.note) == ("Trams", "has hidden slides: 2")
