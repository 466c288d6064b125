from __future__ import annotations

import codecs
import sys
from pathlib import Path

import anyio
import pytest

from ragcommon.files.decoding import decode
from ragmemory.errors import NotWrittenBack
from ragmemory.files.formats.text import read
from ragmemory.files.rewriting import Rewriting

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rewrite(path: Path, after: str, *, before: str = "", roots: list[str] | None = None) -> None:
    before = before or decode(path.read_bytes()).text
    rewriting = Rewriting(path.as_uri(), roots or [str(path.parent)], before, after)
    try:
        anyio.run(rewriting.replace)
    finally:
        rewriting.discard()


@pytest.mark.parametrize(
    ("old", "after", "new"),
    [
        (b"a\r\nb\r\n", "a\nc\nd\n", b"a\r\nc\r\nd\r\n"),
        (b"a\r\nb\rc\nd", "a\nb\nc\ne", b"a\r\nb\rc\ne"),
        (b"a\r\nb\r\nc\n", "a\nx\nb\nc\n", b"a\r\nx\r\nb\r\nc\n"),
        (b"a", "a\n\nb", b"a\n\nb"),
        (b"\ta\n\x0cb\n", "\ta\n\x0cb\nc\n", b"\ta\n\x0cb\nc\n"),
        (codecs.BOM_UTF8 + "é\r\n".encode(), "é\nü\n", codecs.BOM_UTF8 + "é\r\nü\r\n".encode()),
        (
            codecs.BOM_UTF16_LE + "é\n".encode("utf-16-le"),
            "ü\n",
            codecs.BOM_UTF16_LE + "ü\n".encode("utf-16-le"),
        ),
        ("Tür é\n".encode("cp1252"), "Tür ü\n", "Tür ü\n".encode("cp1252")),
    ],
)
def test_encoding_and_line_ends_of_the_file_stay(tmp_path: Path, old: bytes, after: str, new: bytes) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(old)
    rewrite(path, after)
    assert path.read_bytes() == new
    assert names(tmp_path) == ["a.md"]


@posix
def test_the_mode_stays_and_a_link_still_leads_to_the_file(tmp_path: Path) -> None:
    path, link = tmp_path / "a.md", tmp_path / "link.md"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    link.symlink_to(path)
    rewrite(link, "new")
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == ("new", 0o640)
    assert link.is_symlink()


def refused(path: Path, after: str, **arguments: object) -> str:
    """Why a file is not written; it stays as it is."""
    old = path.read_bytes()
    with pytest.raises(NotWrittenBack) as caught:
        rewrite(path, after, **arguments)  # type: ignore[arg-type]
    assert path.read_bytes() == old
    assert not [name for name in names(path.parent) if name.startswith(".")]
    return caught.value.reason


def test_a_file_that_is_not_what_was_read_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("other", encoding="utf-8")
    assert refused(path, "new", before="old") == "its file is no longer what was read"


def test_a_file_that_changes_while_it_is_prepared_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("old", encoding="utf-8")
    rewriting = Rewriting(path.as_uri(), ["*"], "old", "new")
    path.write_text("later", encoding="utf-8")
    with pytest.raises(NotWrittenBack, match="no longer what was read"):
        anyio.run(rewriting.replace)
    rewriting.discard()
    assert (path.read_text(encoding="utf-8"), names(tmp_path)) == ("later", ["a.md"])


def test_the_data_of_images_that_were_not_read_stays_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("one\n![](data:image/png;base64,AAAA)\ntwo\n", encoding="utf-8")
    read = "one\n![](data:image/png)\ntwo\n"
    rewrite(path, read.replace("two", "three"), before=read)
    whole = "one\n![](data:image/png;base64,AAAA)\nthree\n"
    assert path.read_text(encoding="utf-8") == whole
    read = read.replace("two", "three")
    assert "data of an image" in refused(path, read.replace("one", "1").replace("three", "3"), before=read)
    assert path.read_text(encoding="utf-8") == whole


def test_the_headers_of_pages_that_were_not_read_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    said = "It is said.\n" * 45
    pages = [f"Line {number} a\n{said}\n\nThe Guide {number}\n\n\n" for number in range(6)]
    path.write_text("".join(pages), encoding="utf-8")
    before = read(path, path.read_bytes()).text
    assert "The Guide" not in before
    rewrite(path, before.replace("Line 2 a", "Line 2 b"), before=before)
    whole = "".join(pages).replace("Line 2 a", "Line 2 b")
    assert path.read_text(encoding="utf-8") == whole
    before = before.replace("Line 2 a", "Line 2 b")
    both = before.replace("Line 2 b", "Line 2 c").replace("Line 3 a", "Line 3 c")
    assert "a page header" in refused(path, both, before=before)
    assert path.read_text(encoding="utf-8") == whole


def test_replacing_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("old", encoding="utf-8")
    rewriting = Rewriting(path.as_uri(), ["*"], "old", "new")
    anyio.run(rewriting.replace)
    anyio.run(rewriting.replace)
    assert path.read_text(encoding="utf-8") == "new"


def test_what_is_not_ours_to_write_is_refused(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside.md", tmp_path / "in"
    inside.mkdir()
    outside.write_text("old", encoding="utf-8")
    (inside / "link.md").symlink_to(outside)
    roots = [str(inside)]
    assert "none of the folders" in refused(outside, "new", roots=roots)
    assert "none of the folders" in refused(inside / "link.md", "new", roots=roots)
    page = inside / "a.html"
    page.write_text("<p>old</p>", encoding="utf-8")
    assert "only text" in refused(page, "new", roots=roots)
    old = inside / "latin.md"
    old.write_bytes("é old".encode("cp1252"))
    assert "lacks characters" in refused(old, "日本", roots=roots)
    with pytest.raises(NotWrittenBack, match="not read from a file"):
        Rewriting("note:tea", ["*"], "old", "new")
    with pytest.raises(NotWrittenBack, match="no such file"):
        Rewriting((inside / "gone.md").as_uri(), ["*"], "old", "new")


@posix
def test_a_file_is_replaced_in_the_folder_in_which_it_was_found(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.md").write_text("old", encoding="utf-8")
    rewriting = Rewriting((inside / "a.md").as_uri(), [str(inside)], "old", "new")
    inside.rename(tmp_path / "moved")
    inside.symlink_to(outside)
    anyio.run(rewriting.replace)
    anyio.run(rewriting.put_back)
    rewriting.discard()
    assert names(outside) == names(tmp_path / "moved") == ["a.md"]
    assert (outside / "a.md").read_text(encoding="utf-8") == "old"
    with pytest.raises(NotWrittenBack, match="none of the folders"):
        Rewriting((inside / "a.md").as_uri(), [str(tmp_path / "moved")], "old", "new")


@posix
def test_a_write_protected_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o444)
    assert refused(path, "new") == "it is write-protected"
