"""Org."""

from __future__ import annotations

from pathlib import Path

from ragmemory.files.formats.org import read

FILE = Path("kite.org")
TEXT = """\
#+TITLE: My  kites
#+STARTUP: overview
#+AUTHOR: Ada
# a comment

* TODO Buy a [[https://kite.example][kite]]         :shop:
:PROPERTIES:
:PRICE: 12
:END:
  - with a *tail*
*** Wind
| place | wind |
|-------+------|
| coast |    6 |

#+begin_src sh
* not a heading
#+end_src
See [[file:sea.org]].
"""
MARKDOWN = """\


#+AUTHOR: Ada
    # a comment

# TODO Buy a [kite](https://kite.example) :shop:

:PRICE: 12

  - with a *tail*
### Wind
| place | wind |
|-------|------|
| coast |    6 |

````sh
* not a heading
````
See file:sea.org.
"""


def test_headings_listings_links_and_tables_become_those_of_markdown_and_lines_keep_their_numbers() -> None:
    found = read(FILE, TEXT.encode())
    assert found.text == MARKDOWN
    assert (found.title, found.media_type) == ("My kites", "text/markdown")


def test_a_text_that_states_no_title_is_named_after_its_file() -> None:
    assert read(FILE, b"* Monday\n* Tuesday\n").title == "kite.org"
