from __future__ import annotations

import pytest

from ragcommon.text.places import letters
from ragmemory.blocks.labels import find_block, labels
from ragmemory.blocks.tree import Tree

TEXT = """Preface.

# One

Text.

## One one

- first
- second
  1. inner

  Text of second.

```
code
```

## One two

# Two
"""


def test_headings_and_items_have_numbers_and_other_blocks_letters() -> None:
    assert labels(Tree(TEXT, "markdown")) == [
        *("a", "1", "1.a", "1.1", "1.1.a", "1.1.a.1", "1.1.a.2", "1.1.a.2.a", "1.1.a.2.a.1", "1.1.a.2.b"),
        *("1.1.b", "1.2", "2"),
    ]


@pytest.mark.parametrize(("number", "text"), [(1, "a"), (26, "z"), (27, "aa"), (52, "az"), (703, "aaa")])
def test_letters_continue_after_z(number: int, text: str) -> None:
    assert letters(number).lower() == text


@pytest.mark.parametrize(
    ("name", "place"),
    [("c0ffee", 1), ("1", 0), ("1.A", 1), (" 1.a ", 1), ("#1", 0), ("#3", 2)]
    + [(name, None) for name in ("#0", "#4", "#", "#x", "#" + "9" * 5000, "", "3", "1.b", "c0ff")],
)
def test_a_block_is_found_by_id_label_or_number(name: str, place: int | None) -> None:
    assert find_block(name, ["a11ce", "c0ffee", "b0b"], ["1", "1.a", "2"]) == place
