"""E-books, and the archives they are. Covers `archives` too."""

from __future__ import annotations

import time
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats import archives
from ragmemory.files.formats.epub import read
from tests.support.documents import archive, epub_members

pytest.importorskip("selectolax", reason="selectolax is not installed")
pytest.importorskip("defusedxml", reason="defusedxml is not installed")

BOOK = Path("book.epub")
MEMBERS = epub_members("A book of tea", ["<h1>Leaves</h1><p>Green.", "", "<h1>Water</h1><p>Hot."])


def test_the_chapters_are_read_in_the_order_of_the_spine() -> None:
    book = read(BOOK, archive(MEMBERS))
    assert book.text == "# Leaves\n\nGreen.\n\n# Water\n\nHot.\n"
    assert book.title == "A book of tea"
    assert book.places == [(1, "Leaves"), (3, "Leaves ¶ 1"), (5, "Water"), (7, "Water ¶ 1")]


def test_an_entity_is_refused() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]><package>&a;</package>'
    with pytest.raises(NotText, match="is a damaged EPUB file"):
        read(BOOK, archive({**MEMBERS, "OEBPS/package.opf": bomb}))


def test_an_archive_that_is_too_large_when_decompressed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_BYTES", 1 << 20)
    data = archive({**MEMBERS, "zeros": bytes(1 << 20)})
    assert len(data) < 5_000
    with pytest.raises(NotText, match="holds more than 1 MiB when it is decompressed"):
        read(BOOK, data)


def test_a_member_that_is_larger_than_declared_is_not_read_beyond_that() -> None:
    data = archive({"zeros": bytes(100_000)})
    sizes = (100_000).to_bytes(4, "little")
    lying = data.replace(sizes, (10).to_bytes(4, "little"))
    assert lying != data
    with pytest.raises(NotText, match="is a damaged test file"):
        archives.member(archives.open_archive(lying, "test"), "zeros", "test")


def test_an_archive_of_too_many_files_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 2)
    with pytest.raises(NotText, match="holds more than 2 files"):
        read(BOOK, archive(MEMBERS))


def test_an_encrypted_or_damaged_archive_is_refused() -> None:
    whole = archive(MEMBERS)
    encrypted = bytearray(whole)
    with ZipFile(BytesIO(whole)) as file:
        start = file.start_dir
    encrypted[start + 8] |= 1
    with pytest.raises(NotText, match="is encrypted with a password"):
        read(BOOK, bytes(encrypted))
    with pytest.raises(NotText, match="is a damaged EPUB file"):
        read(BOOK, whole[: len(whole) // 2])
    with pytest.raises(NotText, match="is encrypted with a password, or in the format of an older program"):
        read(BOOK, archives.OLE + b"...")


def test_a_book_without_its_list_of_chapters_is_refused() -> None:
    with pytest.raises(NotText, match="is a damaged EPUB file"):
        read(BOOK, archive({"mimetype": "application/epub+zip"}))


def test_a_chapter_that_is_listed_many_times_is_read_once() -> None:
    members = epub_members("Tea", ["<p>One.</p>"])
    package = members["OEBPS/package.opf"]
    members["OEBPS/package.opf"] = package.replace('<itemref idref="c0"/>', '<itemref idref="c0"/>' * 1_000)
    assert read(Path("a.epub"), archive(members)).text == "One.\n"


def test_a_chapter_that_is_listed_for_each_of_its_sections_is_read_once() -> None:
    members = epub_members("Tea", ["<p>One.</p>"])
    item = '<item id="b" href="c%200.xhtml#b" media-type="application/xhtml+xml"/>'
    package = members["OEBPS/package.opf"].replace("</manifest>", f"{item}</manifest>")
    members["OEBPS/package.opf"] = package.replace("</spine>", '<itemref idref="b"/></spine>')
    assert read(BOOK, archive(members)).text == "One.\n"


def test_an_empty_element_hides_nothing_of_a_chapter() -> None:
    members = epub_members("Tea", [""])
    members["OEBPS/c 0.xhtml"] = '<head><title/></head><body><p><i class="x"/>One.<br/>Two.</p></body>'
    assert read(BOOK, archive(members)).text == "One.\nTwo.\n"


def test_an_endless_tag_is_read_in_little_time() -> None:
    members = epub_members("Tea", [f"<p>One.</p><{'a' * 100_000}"])
    start = time.perf_counter()
    assert read(BOOK, archive(members)).text == "One.\n"
    assert time.perf_counter() - start < 5


def test_the_authors_of_a_book_are_its_first_line_with_its_title() -> None:
    members = epub_members("Tea", ["<p>One.</p>"])
    authors = "<creator>Ann Lee</creator><creator/><creator>Bo Ek</creator></metadata>"
    members["OEBPS/package.opf"] = members["OEBPS/package.opf"].replace("</metadata>", authors)
    book = read(BOOK, archive(members))
    assert book.text == "Author of Tea: Ann Lee, Bo Ek\n\nOne.\n"
