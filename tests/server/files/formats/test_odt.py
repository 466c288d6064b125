"""OpenDocument texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.odt import read
from tests.support.documents import archive, odt_members

pytest.importorskip("defusedxml", reason="defusedxml is not installed")

FILE = Path("a.odt")


def test_headings_lists_and_tables_are_read_in_their_order() -> None:
    found = read(
        FILE,
        archive(
            odt_members(
                '<text:h text:outline-level="2">Water</text:h><text:p>Boil<text:s text:c="2"/>it<text:note>'
                "<text:p> well</text:p></text:note>.</text:p>"
                "<text:list><text:list-item><text:p>green</text:p><text:list><text:list-item><text:p>Sencha"
                "</text:p></text:list-item></text:list></text:list-item></text:list>"
                '<table:table><table:table-row><table:table-cell table:number-columns-repeated="2">'
                "<text:p>Kind</text:p></table:table-cell></table:table-row></table:table>"
            )
        ),
    )
    assert found.text == (
        "## Water\n\nBoil  it well.\n\n- green\n  - Sencha\n\n| Kind | Kind |\n| --- | --- |\n"
    )
    assert found.title == "Water"


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
