"""reStructuredText."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcommon.files.decoding import NotText
from ragmemory.files.formats.rst import read

FILE = Path("a.rst")
TEXT = """\
======
Boiler
======

It heats.

Pressure
========
Between 1.2 and 1.8 bar.

Valves
~~~~~~

It is blue::

   # not a heading
   turn(left)

=====  =====
Part   Price
=====  =====
Valve  12
=====  =====

Water
=====
Cold.

----

# no heading either
"""
MARKDOWN = """\

# Boiler


It heats.

## Pressure

Between 1.2 and 1.8 bar.

### Valves


It is blue::

    # not a heading
   turn(left)

=====  =====
Part   Price
=====  =====
Valve  12
=====  =====

## Water

Cold.

----

    # no heading either
"""


def test_headings_become_those_of_markdown_and_lines_keep_their_numbers() -> None:
    found = read(FILE, TEXT.encode())
    assert found.text == MARKDOWN
    assert (found.title, found.media_type) == ("Boiler", "text/markdown")


def test_the_roles_of_titles_are_left_out() -> None:
    titles = [
        ":index:`Restore a file <pair: backup; restore>`",
        "With :ref:`a mount <mount>` of :program:`fuse`",
    ]
    text = "".join(f"{title}\n{'=' * len(title)}\n\nText.\n\n" for title in titles)
    found = read(FILE, text.encode())
    assert [line for line in found.text.split("\n") if line.startswith("#")] == [
        "# Restore a file",
        "# With a mount of fuse",
    ]
    assert found.title == "Restore a file"


@pytest.mark.parametrize(
    "text",
    ["one\n--\n", "a paragraph\nof two lines\n------------\n", "  indented\n  ========\n", "----\n\ntext\n"],
)
def test_other_lines_are_not_headings(text: str) -> None:
    assert "#" not in read(FILE, text.encode()).text


def test_a_text_without_a_heading_is_named_after_its_file() -> None:
    found = read(FILE, "Grüße.\n".encode("cp1252"))
    assert (found.title, found.note) == ("a.rst", "is not UTF-8; it was read as cp1252")


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(NotText, match="is empty"):
        read(FILE, b"\n")
