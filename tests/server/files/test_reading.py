"""A file's text and title. Covers `ragmemory.files.formats.text` too."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ragcommon.files.decoding import MAX_FILE_BYTES
from ragcommon.files.safe_open import FileTooLarge, NotARegularFile
from ragcommon.text.rules import MAX_HEADING
from ragmemory.files.formats.text import read, title_of
from ragmemory.files.reading import read_file


def test_the_title_is_the_first_heading_of_markdown_and_else_the_name() -> None:
    assert title_of(Path("a.md"), "text\n\n# The *first* #\n# Second") == "The first"
    assert title_of(Path("a.md"), "\n## The *first* ##\n# Second") == "The first"
    assert title_of(Path("a.md"), "---\nmood: 3\n---\n\n## The *first* ##\n") == "The first"
    assert title_of(Path("a.md"), "no heading") == "a.md"
    assert title_of(Path("a.txt"), "# no heading either") == "a.txt"
    assert title_of(Path("a.md"), "##\n\ntext\n# ##\n# C#\n") == "C#"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("tags: [soil, 'red clay']", ["soil", "red clay"]),
        ("tags: soil, #worms", ["soil", "worms"]),
        ('tags:\n  - soil\n  - "worms"', ["soil", "worms"]),
        ("tags:\n- soil\ndate: 2025-01-01", ["soil"]),
        ("tags: []", []),
        ("kind: note", []),
    ],
)
def test_the_front_matter_of_markdown_states_title_and_tags(tags: str, expected: list[str]) -> None:
    text = f'---\ntitle: "Thesis: notes"\n{tags}\n---\n# Worms\n'
    found = read(Path("a.md"), text.encode())
    assert (found.title, found.tags, found.text) == ("Thesis: notes", expected, text)
    assert read(Path("a.txt"), text.encode()).title == "a.txt"
    assert read(Path("a.md"), b"---\ntitle: >-\n  Long\n---\n# Worms\n").title == "Worms"
    assert read(Path("a.md"), b"# Worms\n---\ntitle: x\n---\n").title == "Worms"


def test_the_properties_of_a_page_of_logseq_state_title_and_tags() -> None:
    text = "alias:: worms\ntitle:: Soil / Clay\ntags:: #soil, [[red clay]]\n\n- Dig.\n- tags:: wet\n"
    found = read(Path("Soil___Clay.md"), text.encode())
    assert (found.title, found.tags, found.text) == ("Soil / Clay", ["soil", "red clay"], text)
    assert read(Path("a.md"), b"tags:: soil\n- not a tag\n").tags == ["soil"]
    assert read(Path("a.md"), b"- Dig.\ntags:: soil\n").tags == []


@pytest.mark.parametrize(
    ("name", "text", "media_type"),
    [
        ("services", "# Local services\ntcpmux 1/tcp\n\n# More ports\n", "text/plain"),
        ("zones.tab", "# Zones\n#\n# code, place\nAD\tAndorra\n", "text/plain"),
        ("README", "# Cups\n\nRed ones.\n\n## Use\n\nDrink.\n", ""),
        ("notes.md", "# Zones\n#\n# code, place\n", ""),
    ],
)
def test_comments_are_no_headings_in_a_file_whose_name_does_not_say_its_format(
    name: str, text: str, media_type: str
) -> None:
    assert read(Path(name), text.encode()).media_type == media_type


def test_the_source_of_a_manual_page_is_named() -> None:
    page = '.TH "CUP" "1"\n.SH NAME\ncup \\- a \\fBcup\\fR\n'
    for before in ('\'\\" t\n.\\" Generated\n', ".\n.if n .nh\n.de EX\nany text\n..\n"):
        note = read(Path("cup.1"), f"{before}{page}".encode()).note
        assert "the source of a manual page" in note
        assert "`man cup | col -b > cup.txt`" in note
    assert not read(Path("cup.1"), f"A page of cups:\n{page}".encode()).note
    assert not read(Path("cup.1"), b"'Twas a page.\n.TH begins it.\n").note


def test_the_heading_of_a_later_section_is_not_the_title_of_a_note() -> None:
    assert (
        title_of(Path("2024-02-11.md"), "---\nmood: 3\n---\n- lost the scarf\n\n## Thanks\n")
        == "2024-02-11.md"
    )


def test_letters_struck_over_and_colours_of_a_terminal_are_plain_text() -> None:
    rest = b"Nothing else is to be seen in this line, nor in any other line.\n" * 3
    data = b"W\bWr\bri\bit\bte\be _\bM_\be\n\x1b[1;31mFAILED\x1b[0m 3 tests\n" + rest
    assert read(Path("a.log"), data).text == "Write Me\nFAILED 3 tests\n" + rest.decode()


def test_the_data_of_images_in_markdown_is_left_out() -> None:
    data = "data:image/png;base64,iVBORw0KGgo/+AAA=="
    source = f"See ![a pic]({data} 'tea').\n\n[image1]: <{data}>\n<img src=\"{data}\">\nEnd.\n"
    assert read(Path("a.md"), source.encode()).text == source.replace(data, "data:image/png")
    assert read(Path("a.css"), source.encode()).text == source


def test_a_line_that_is_too_long_is_not_a_title() -> None:
    assert title_of(Path("a.md"), f"# {'a' * (MAX_HEADING - 2)}") == "a" * (MAX_HEADING - 2)
    assert title_of(Path("a.md"), f"# {'a' * (MAX_HEADING - 1)}\n# Second") == "Second"


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
        read_file(tmp_path / "a.md")


def test_a_file_that_has_grown_since_the_walk_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.md").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(FileTooLarge):
        read_file(tmp_path / "a.md")
