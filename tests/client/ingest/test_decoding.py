"""What text is in a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ragchat.ingest.decoding import LARGEST_BYTES, EmptyText, NotText, decode, read_text, title_of
from ragconfig.regular_files import FileTooLarge, NotARegularFile
from ragconfig.text_rules import LONGEST_HEADING


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("Zürich".encode(), ("Zürich", "utf-8")),
        (b"\xef\xbb\xbfmark", ("mark", "utf-8")),
        ("Zürich".encode("utf-16"), ("Zürich", "utf-16-le")),
        (b"\xfe\xff" + "Zürich".encode("utf-16-be"), ("Zürich", "utf-16-be")),
        ("Zürich".encode("utf-32"), ("Zürich", "utf-32-le")),
        ("“Zürich”".encode("cp1252"), ("“Zürich”", "cp1252")),
        (b"caf\xe9 \x81", ("café \x81", "latin-1")),
        (b"a\r\nb\rc\n", ("a\nb\nc\n", "utf-8")),
    ],
)
def test_text_is_read_in_the_encoding_it_has(data: bytes, expected: tuple[str, str]) -> None:
    assert decode(data) == expected


@pytest.mark.parametrize(
    "data", [b"\x00\x01\x02", b"ELF\x00rest", bytes(range(1, 32)) * 9, b"x" * 100 + b"\0"]
)
def test_what_is_not_text_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="is not text"):
        decode(data)


@pytest.mark.parametrize("data", [b"", b" \n\t\n", b"\xef\xbb\xbf\n"])
def test_what_holds_only_white_space_is_empty(data: bytes) -> None:
    with pytest.raises(EmptyText, match="is empty"):
        decode(data)


def test_the_title_is_the_first_heading_of_markdown_and_else_the_name() -> None:
    assert title_of(Path("a.md"), "text\n\n## The *first* ##\n# Second") == "The *first*"
    assert title_of(Path("a.md"), "no heading") == "a.md"
    assert title_of(Path("a.txt"), "# no heading either") == "a.txt"
    assert title_of(Path("a.md"), "##\n\ntext\n# ##\n# C#\n") == "C#"


def test_a_line_too_long_for_a_title_is_none() -> None:
    assert title_of(Path("a.md"), f"# {'a' * (LONGEST_HEADING - 2)}") == "a" * (LONGEST_HEADING - 2)
    assert title_of(Path("a.md"), f"# {'a' * (LONGEST_HEADING - 1)}\n# Second") == "Second"


@pytest.mark.parametrize(
    "text",
    [
        "# a" + " " * 100_000 + "b",
        ("#" + " \t" * 50 + "\n") * 10_000,
        "# " + "#" * 100_000 + "b",
        "# " + "# " * 100_000 + "b",
    ],
    ids=lambda text: text[:5],
)
def test_a_heading_full_of_blanks_and_number_signs_takes_no_time(text: str) -> None:
    spent = os.times().user
    assert title_of(Path("a.md"), text) == "a.md"
    assert os.times().user - spent < 1


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX file kinds")
def test_a_file_that_has_become_a_pipe_since_the_walk_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(NotARegularFile):
        read_text(tmp_path / "a.md")


def test_a_file_that_has_grown_since_the_walk_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.md").open("wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    with pytest.raises(FileTooLarge):
        read_text(tmp_path / "a.md")
