"""Labels of blocks, and finding a block by its name. Pure.

Headings are numbered within their parent (`1`, `1.2`), other blocks have letters (`1.2.a`), and list items
are numbered (`1.2.a.3`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ragcommon.text.places import letters
from ragmemory.blocks.tree import Tree


def labels(tree: Tree) -> list[str]:
    """The label of each block, in order."""
    found: list[str] = []
    counts: Counter[tuple[int, bool]] = Counter()
    for node in tree.nodes:
        is_numbered = node.kind in ("heading", "item")
        counts[node.parent, is_numbered] += 1
        number = counts[node.parent, is_numbered]
        own = str(number) if is_numbered else letters(number).lower()
        found.append(f"{found[node.parent]}.{own}" if node.parent >= 0 else own)
    return found


def find_block(name: str, ids: Sequence[str], labels: Sequence[str]) -> int | None:
    """The index of the block with this id, label, or number: `#1` is the first block of a document."""
    name = name.strip().lower()
    if name.startswith("#"):
        number = int(name[1:]) if name[1:].isdecimal() and len(name) < 12 else 0
        return number - 1 if 1 <= number <= len(ids) else None
    for names in (ids, labels):
        if name in names:
            return names.index(name)
    return None
