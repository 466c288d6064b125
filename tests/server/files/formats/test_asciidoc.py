"""AsciiDoc."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmemory.files.formats import text
from ragmemory.files.formats.asciidoc import read

FILE = Path("kite.adoc")
TEXT = """\
= The Kite
Ada Lovelace <ada@kite.example>

[[wind]]
== Wind ==

*At the coast*:
----------------------------
== not a heading
# nor this
----------------------------

[source,sh]
....
kite fly
....

=== Gusts

====
....
fly ```
....
====
////
== a comment
////

Tail
~~~~
It is long.
"""
MARKDOWN = """\
# The Kite
Ada Lovelace <ada@kite.example>


## Wind

*At the coast*:
````
== not a heading
# nor this
````

[source,sh]
````
kite fly
````

### Gusts


````
fly ```
````





### Tail

It is long.
"""


def test_headings_and_listings_become_those_of_markdown_and_lines_keep_their_numbers() -> None:
    found = read(FILE, TEXT.encode())
    assert found.text == MARKDOWN
    assert (found.title, found.media_type) == ("The Kite", "text/markdown")


@pytest.mark.parametrize(
    "text", ["a paragraph\n------------------------\nx\n------------------------\n", "==x\n"]
)
def test_other_lines_are_not_headings(text: str) -> None:
    found = read(FILE, text.encode())
    assert "#" not in found.text
    assert found.title == "kite.adoc"


def test_a_text_with_anchors_above_its_headings_is_asciidoc() -> None:
    source = "= Kites\n\n[[wind]]\n== Wind\n\nNone.\n\n----\n$ kite\n----\n\n[[rain]]\n== Rain\n\nSome.\n"
    found = text.read(Path("kites.txt"), source.encode())
    assert found.media_type == "text/markdown"
    assert "\n## Wind\n" in found.text
    wiki = b"[[File:kite.jpg|thumb|A kite]]\n== Wind ==\n\n[[rain]]\n== Rain ==\n\n[[a|b]]\n= Sun\n"
    assert text.read(Path("kites.txt"), wiki).media_type == ""
