"""Archives, and the files in them. Covers `members` too."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tarfile
import tracemalloc
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import pytest
from msgspec.structs import replace

from ragcommon.files.decoding import NotText
from ragmemory.files.formats import bundles, csv_table, members
from ragmemory.files.formats.bundles import read
from ragmemory.files.formats.file_text import FileText
from tests.support.documents import archive, pdf

FILES: dict[str, str | bytes] = {
    "notes/tea.md": "# Tea\n\nIt is hot.\n",
    "plan.txt": "\n\nFirst the cups.\n",
    "brew.py": "# not a heading\nboil()\n",
}
TEXT = (
    "# notes/tea.md\n\n## Tea\n\nIt is hot.\n\n# plan.txt\n\nFirst the cups.\n\n"
    "# brew.py\n\n```py\n# not a heading\nboil()\n```\n"
)
PLACES = [(1, "notes/tea.md"), (7, "plan.txt"), (11, "brew.py")]


def tar(files: Mapping[str, str | bytes]) -> bytes:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        *(archive(FILES), tar(FILES)),
        *(gzip.compress(tar(FILES)), bz2.compress(tar(FILES)), lzma.compress(tar(FILES))),
    ],
    ids=["zip", "tar", "tar.gz", "tar.bz2", "tar.xz"],
)
def test_each_file_is_read_below_its_name_which_is_its_place(data: bytes) -> None:
    found = read(Path("a.zip"), data)
    assert (found.text, found.places, found.note) == (TEXT, PLACES, "")
    assert found.media_type == "text/markdown"


@pytest.mark.parametrize(
    ("name", "text", "media_type"),
    [
        ("plan.txt.gz", "\nFirst the cups.\n", "text/plain"),
        ("FAQ.gz", "Cups\n====\n\nFirst the cups.\n# 3 of them\n", "text/plain"),
        ("plan.md.gz", "First the cups.\n", "text/markdown"),
        ("cups.csv.gz", "cup,number\nred,3\n", "text/csv"),
    ],
)
def test_a_compressed_file_has_the_lines_and_format_of_the_file(
    name: str, text: str, media_type: str
) -> None:
    found = read(Path(name), gzip.compress(text.encode()))
    assert found == FileText(text, name, media_type=media_type)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# tea, and cake\nname;price\nBob;3,5\nEve;4,2\n", ["| name | price |", "| Bob | 3,5 |"]),
        ('"sum, total";"b"\n1;2\n', ["| sum, total | b |", "| 1 | 2 |"]),
        ("size;1,5\nweight;2,5\n", ["| size | 1,5 |", "| weight | 2,5 |"]),
        ("cup\tnote\nred\tbig, old\nblue\tnew\n", ["| cup | note |", "| red | big, old |"]),
        ('cup,note\nred,"two\nlines"\n', ["| cup | note |", "| red | two lines |"]),
    ],
)
def test_the_cells_of_a_csv_file_are_parted_by_the_sign_that_fits_most_of_its_rows(
    text: str, lines: list[str]
) -> None:
    assert set(lines) <= set(read(Path("a.zip"), archive({"cups.csv": text})).text.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        'cup,number\nred,"open\nblue,3\nlast,4\n',
        "cup,number\n" + "red,3\n" * 30 + 'blue,"open\nlast,4\n',
        "This is prose, of a kind.\nOther lines, with commas, and more.\nThird\n",
        "cup\nred\nblue\n",
        ",,\n,,\n",
    ],
    ids=["open", "open late", "prose", "one column", "empty"],
)
def test_a_csv_file_that_is_no_table_keeps_its_lines(text: str) -> None:
    assert read(Path("a.zip"), archive({"cups.csv": text})).text == f"# cups.csv\n\n```csv\n{text}```\n"


def test_the_rows_of_a_csv_file_that_is_too_long_for_a_table_take_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(csv_table, "MAX_ROWS", 1_000)
    text = "cup,number\n" + "reddish,3000\n" * 20_000
    data = archive({"cups.csv": text})
    read(Path("a.zip"), data)
    tracemalloc.start()
    try:
        assert read(Path("a.zip"), data).text.endswith(f"{text}```\n")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(text)


def test_a_csv_file_with_too_much_text_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "cup,number\nred,3\n"
    data = archive({"cups.csv": text})
    monkeypatch.setattr(csv_table, "MAX_CHARACTERS", len(text))
    assert "| red | 3 |" in read(Path("a.zip"), data).text
    monkeypatch.setattr(csv_table, "MAX_CHARACTERS", len(text) - 1)
    assert "| red | 3 |" not in read(Path("a.zip"), data).text


def test_a_document_in_an_archive_in_an_archive_keeps_its_places() -> None:
    pytest.importorskip("pypdfium2", reason="the extra `pdf` is not installed")
    inner = archive({"paper.pdf": pdf(["One.", "Two."])})
    found = read(Path("a.tar"), tar({"inner.zip": inner}))
    assert found.text == "# inner.zip\n\n## paper.pdf\n\nOne.\n\nTwo.\n"
    assert found.places == [
        *((1, "inner.zip"), (3, "inner.zip paper.pdf")),
        *((5, "inner.zip paper.pdf p. 1"), (7, "inner.zip paper.pdf p. 2")),
    ]


def test_the_only_archive_in_an_archive_is_read_as_that() -> None:
    inner = archive({"a.txt": "One.", "b.txt": "Two."})
    found = read(Path("Export.zip"), archive({"Part-1.zip": inner}))
    assert found == replace(read(Path("Part-1.zip"), inner), title="Export.zip")


@pytest.mark.parametrize("name", [".in.zip", ".cache/in.zip"])
def test_the_only_archive_in_an_archive_is_not_read_if_it_is_hidden(name: str) -> None:
    with pytest.raises(NotText, match="holds no text"):
        read(Path("a.zip"), archive({name: archive({"a.txt": "One."})}))


def test_earlier_versions_that_logseq_keeps_are_left_out_as_in_folders() -> None:
    files = {"graph/pages/a.md": "New.", "graph/logseq/bak/pages/a/1.md": "Old.", "bak/b.md": "Kept."}
    found = read(Path("graph.zip"), archive(files))
    assert [place for _, place in found.places] == ["graph/pages/a.md", "bak/b.md"]


def test_files_that_are_not_read_are_named_with_the_reason_and_hidden_ones_are_left_out() -> None:
    outside = {"../../up.txt": "x", "/etc/passwd": "x", "C:\\x.txt": "x"}
    hidden = {".git/config": "x", "__MACOSX/._a": "x", "a/.env": "x", "a/~$b.docx": "x"}
    files: dict[str, str | bytes] = {"a.txt": "Read.", "b.png": b"\x89PNG\0\0", "c.key": "x"}
    found = read(Path("a.zip"), archive({**files, **outside, **hidden}))
    assert found.text == "# a.txt\n\nRead.\n"
    assert found.note == (
        "has files that were not read: b.png (is an image), c.key (may hold keys or passwords), "
        "../../up.txt (its name leads elsewhere), /etc/passwd (its name leads elsewhere), "
        "C:/x.txt (its name leads elsewhere)"
    )


def test_archives_in_each_other_are_read_only_so_deep() -> None:
    data = archive({"a.txt": "Deep."})
    for _ in range(members.MAX_DEPTH - 1):
        data = archive({"in.zip": data})
    assert "Deep." in read(Path("a.zip"), data).text
    deeper = archive({"in.zip": data})
    with pytest.raises(NotText, match=r"has files that were not read: .*is more than 3 levels deep"):
        read(Path("a.zip"), deeper)
    with pytest.raises(NotText, match=r"^is more than 3 levels deep"):
        read(Path("a.zip"), archive({"in.zip": deeper}))


def test_the_limits_are_those_of_the_outermost_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members._Budget.__init__, "__defaults__", (3, 1_000, 3))
    inner = archive({"a.txt": "A", "b.txt": "B"})
    found = read(Path("a.zip"), archive({"in.zip": inner, "c.txt": "C", "d.txt": "D"}))
    assert "# b.txt" in found.text
    assert "# c.txt" not in found.text
    assert "c.txt (only 20,000 files and 512 MiB are read; unpack the archive)" in found.note
    found = read(Path("a.zip"), archive({"a.txt": "A" * 600, "b.txt": "B" * 600}))
    assert "# b.txt" not in found.text


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_file_that_swells_is_decompressed_only_so_far(
    compress: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "MAX_BYTES", 1 << 20)
    with pytest.raises(NotText, match="holds more than 1 MiB when it is decompressed"):
        read(Path("a.tar.gz"), compress(tar({".hidden": bytes(2 << 20)})))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_text_that_is_too_large_says_the_limit_and_what_to_do(
    compress: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "MAX_FILE_BYTES", 1 << 20)
    with pytest.raises(NotText, match=r"^holds more than 1 MiB when it is decompressed; split its content$"):
        read(Path("a.txt.gz"), compress(bytes(2 << 20)))


def test_what_is_before_the_damage_is_read() -> None:
    data = gzip.compress(tar({"a.txt": "Whole.", "b.bin": os.urandom(300_000)}))
    found = read(Path("a.tar.gz"), data[:-200])
    assert "Whole." in found.text
    assert found.note.startswith("is damaged: not all files in it were read")
    for damaged in (b"PK", b"\x1f\x8b\x08", data[:20]):
        with pytest.raises(NotText, match="is a damaged archive file, or not one at all"):
            read(Path("a.zip"), damaged)


def test_a_parsers_fault_in_one_file_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, data: bytes) -> None:
        raise KeyError(path, data)

    monkeypatch.setattr(members, "read", fail)
    with pytest.raises(NotText, match=r"has files that were not read: a.txt \(is damaged: KeyError\)"):
        read(Path("a.zip"), archive({"a.txt": "A"}))
