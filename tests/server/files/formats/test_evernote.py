"""Notes that Evernote exported."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats import file_text
from ragmemory.files.formats.detection import module_for
from ragmemory.files.formats.evernote import read

for name in ("defusedxml", "selectolax"):
    pytest.importorskip(name, reason=f"{name} is not installed")

FILE = Path("My Notes.enex")
EXPORT = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export4.dtd">
<en-export export-date="20240501T101010Z" application="Evernote" version="10.80.3">
{}</en-export>
"""
NOTE = """  <note>
    <title>{}</title>
    <content>
      <![CDATA[<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<!DOCTYPE en-note SYSTEM "http://xml.evernote.com/pub/enml2.dtd"><en-note>{}</en-note>]]>
    </content>
    <created>20230414T081500Z</created>
    {}
  </note>
"""
PICTURE = (
    '<resource><data encoding="base64">iVBORw0KGgo=</data><mime>image/png</mime>'
    "<resource-attributes><file-name>pass.png</file-name></resource-attributes></resource>"
)


def export(*notes: tuple[str, str, str]) -> bytes:
    return EXPORT.format("".join(NOTE.format(*one) for one in notes)).encode()


def test_each_note_is_a_section_with_its_date_tags_and_text() -> None:
    about = (
        "<tag>travel</tag><tag>papers</tag><note-attributes><source-url>https://example.org/x</source-url>"
    )
    found = read(
        FILE,
        export(
            ("Passport &amp; visa", "<h1>Number</h1><div>533198420</div>", f"{about}</note-attributes>"),
            ("", "<div>Band: <b>The Tin Foxes</b></div>", ""),
        ),
    )
    assert found.text == (
        "# Passport & visa\n\nCreated: 2023-04-14 08:15\nTags: travel, papers\nSource: https://example.org/x\n\n"
        "## Number\n\n533198420\n\n# Note 2\n\nCreated: 2023-04-14 08:15\n\nBand: The Tin Foxes\n"
    )
    assert {label for _, label in found.places} == {"note 1", "note 2"}
    assert (found.title, found.note) == ("My Notes.enex", "")
    assert module_for(FILE) == "evernote"


def test_tasks_tables_and_lists_of_links_are_read() -> None:
    links = "".join(f'<li><a href="https://example.org/{n}">Page {n}</a></li>' for n in range(5))
    content = (
        '<div><en-todo checked="true"/>Visa</div><div><en-todo></en-todo>Photos</div>'
        f"<table><tr><td>Hut</td><td>Beds</td></tr><tr><td>Lenz</td><td>9</td></tr></table><ul>{links}</ul>"
    )
    found = read(FILE, export(("Trip", content, ""))).text
    assert "[x] Visa\n\n[ ] Photos\n\n| Hut | Beds |" in found
    assert "- Page 0 (https://example.org/0)\n- Page 1" in found


def test_attached_files_are_named_and_counted_and_encrypted_passages_counted() -> None:
    content = '<div>Gate 7<en-media hash="ab" type="image/png"/> at noon</div><en-crypt>Zm9v</en-crypt>'
    found = read(FILE, export(("Flight", content, PICTURE * 2)))
    assert found.text.endswith("Gate 7 at noon\n\nAttachments: pass.png, pass.png\n")
    assert "iVBOR" not in found.text
    assert "Zm9v" not in found.text
    assert found.note == (
        "has attached files, which were not read: 2; has encrypted passages, which were not read: 1"
    )


def test_the_notes_before_damage_are_read() -> None:
    found = read(FILE, export(("One", "<div>Tea</div>", ""), ("Two", "", ""))[:-60])
    assert (found.title, found.note) == ("My Notes.enex", "is damaged after note 1")
    assert "Tea" in found.text


@pytest.mark.parametrize(
    "data",
    [
        b"notes",
        b"<en-export><note>",
        b'<!DOCTYPE x [<!ENTITY a "b">]><en-export><note>&a;</note></en-export>',
    ],
)
def test_what_is_no_export_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="is a damaged Evernote file"):
        read(FILE, data)


def test_notes_that_hold_too_much_text_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_text, "MAX_CHARACTERS", 60)
    found = read(FILE, export(("One", "Tea", ""), ("Two", "Soup " * 20, "")))
    assert found.note == "holds more than 60 characters of text, and was read only up to note 2"
    assert "Tea" in found.text
    assert "Soup" not in found.text


def test_the_time_grows_with_the_number_of_open_tags() -> None:
    began = time.monotonic()
    for tag in ("<en-todo ", "<en-media "):
        read(FILE, export(("One", tag * 50_000, "")))
    assert time.monotonic() - began < 10


def test_the_text_after_an_empty_encrypted_passage_is_read() -> None:
    found = read(FILE, export(("One", '<div>Tea</div><en-crypt hint="x"/><div>Cups</div>', "")))
    assert found.text.endswith("Tea\n\nCups\n")
