"""Bookmarks that a browser exported."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.detection import module_of, read

EXPORT = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<!-- This is an automatically generated file. -->
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<TITLE>Bookmarks</TITLE>
<H1>Bookmarks</H1>
<DL><p>
    <DT><H3 ADD_DATE="1600000000" PERSONAL_TOOLBAR_FOLDER="true">Bookmarks bar</H3>
    <DD>What I need daily
    <DL><p>
        <DT><A HREF="https://www.seat61.com/" ICON="data:image/png;base64,AA==">Seat61 – trains in Europe</A>
        <DT><H3>Tides &amp; boats</H3>
        <DL><p>
            <DT><A HREF="https://example.org/?a=1&amp;b=2" TAGS="sea,north">Cuxhaven</A>
            <DD>High water
        </DL><p>
        <DT><A HREF="javascript:alert('a>b')">Bigger text</A>
    </DL><p>
    <DT><A HREF="https://example.org/bins">https://example.org/bins</A>
</DL><p>
"""


def test_titles_folders_and_addresses_are_read() -> None:
    found = read(Path("bookmarks.html"), EXPORT.encode())
    assert found.text == (
        "# Bookmarks\n\n- https://example.org/bins\n\n"
        "## Bookmarks bar\n\n  What I need daily\n- Seat61 – trains in Europe (https://www.seat61.com/)\n"
        "- Bigger text\n\n"
        "### Tides & boats\n\n- Cuxhaven (https://example.org/?a=1&b=2) [sea,north]\n  High water\n"
    )
    assert (found.title, found.note) == ("Bookmarks", "")
    assert found.places[-1] == (13, "Bookmarks > Bookmarks bar > Tides & boats ¶ 1")


def test_the_first_line_decides() -> None:
    assert module_of(Path("a.htm"), EXPORT.encode()) == "bookmarks"
    assert module_of(Path("a.htm"), b"\xef\xbb\xbf" + EXPORT.encode()) == "bookmarks"
    assert module_of(Path("a.txt"), EXPORT.lower().encode()) == "bookmarks"
    assert module_of(Path("a.html"), b"<!DOCTYPE html><title>NETSCAPE-Bookmark-file-1</title>") == "html"


def test_unbalanced_lists_are_read() -> None:
    found = read(Path("a.html"), b"<!DOCTYPE NETSCAPE-Bookmark-file-1></DL></DL><DT><A HREF='x'>Tea</A><DL>")
    assert found.text == "- Tea\n"


def test_a_file_without_links_has_no_text() -> None:
    with pytest.raises(NotText, match="holds no text"):
        read(Path("a.html"), b"<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><p></DL>")


def test_the_time_grows_with_the_number_of_open_tags() -> None:
    began = time.monotonic()
    for tag in (b"<a ", b"<h1 ", b'<a href="'):
        read(Path("a.html"), EXPORT.encode() + tag * 100_000)
    assert time.monotonic() - began < 10


def test_a_description_is_no_heading() -> None:
    found = read(Path("a.html"), EXPORT.replace("High water", "# 1 of the tides").encode())
    assert found.places[-1] == (13, "Bookmarks > Bookmarks bar > Tides & boats ¶ 1")
    assert "\n      # 1 of the tides\n" in found.text
