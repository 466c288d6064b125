"""Stable ids of blocks across the versions of a document. Pure.

The id of a new block is derived from its content. When a document changes, its blocks inherit the ids of
earlier blocks: of those with the same content first, then of those of the same kind in the same position.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragmemory.blocks.tree import Tree
from ragmemory.types.blocks import BlockKind

_ID_DIGITS = 12


class OutlineEntry(Struct, frozen=True, array_like=True, gc=False):
    """A block as stored with its document. A list has the digest of its first item."""

    id: str
    kind: BlockKind
    digest: str  # of its own text, without descendants
    depth: int


Outline = Sequence[OutlineEntry]


def outline(tree: Tree, known: Outline = ()) -> list[OutlineEntry]:
    """The entries of a tree's blocks, in order. `known` is the outline of an earlier text."""
    new = without_ids(tree)
    return with_ids(new, known, pairs(known, leaves(known), new, leaves(new)))


def without_ids(tree: Tree) -> list[OutlineEntry]:
    """The entries of a tree's blocks, in order, without ids."""
    return [
        OutlineEntry("", node.kind, _digest(tree, index), node.depth) for index, node in enumerate(tree.nodes)
    ]


def with_ids(new: Outline, known: Outline, kept: Mapping[int, int]) -> list[OutlineEntry]:
    """Assign ids. `kept` maps entries to the earlier ones in `known`, except for lists."""
    kept = {**list_pairs(known, new, kept), **kept}
    ids = {index: known[earlier].id for index, earlier in kept.items()}
    taken = set(ids.values())
    equal: Counter[tuple[BlockKind, str]] = Counter()

    def new_id(entry: OutlineEntry) -> str:
        """Derived from the content and, for equal blocks, from their order."""
        while True:
            content = f"{entry.kind} {entry.digest} {equal[entry.kind, entry.digest]}".encode()
            equal[entry.kind, entry.digest] += 1
            id = hashlib.blake2b(content, digest_size=_ID_DIGITS // 2).hexdigest()
            if id not in taken:
                taken.add(id)
                return id

    return [replace(entry, id=ids.get(index) or new_id(entry)) for index, entry in enumerate(new)]


def changed(before: Outline, after: Outline) -> list[str]:
    """The ids of earlier blocks that are gone, or differ in their own text or in their descendants."""
    states = _subtree_digests(after)
    return [id for id, state in _subtree_digests(before).items() if states.get(id) != state]


def parents(entries: Outline) -> list[int]:
    """The index of each entry's parent; -1 if it has none."""
    found: list[int] = []
    path: list[int] = []
    for index, entry in enumerate(entries):
        del path[entry.depth - 1 :]
        found.append(path[-1] if path else -1)
        path.append(index)
    return found


def _subtree_digests(entries: Outline) -> dict[str, bytes]:
    """A digest of each block and its descendants, by id."""
    hashes = [hashlib.blake2b(f"{entry.kind} {entry.digest}".encode(), digest_size=8) for entry in entries]
    above = parents(entries)
    for index in reversed(range(len(entries))):
        if above[index] >= 0:
            hashes[above[index]].update(hashes[index].digest())
    return {entry.id: hash.digest() for entry, hash in zip(entries, hashes, strict=True)}


def _digest(tree: Tree, index: int) -> str:
    is_list = tree.nodes[index].kind == "list"
    text = tree.own(index + 1 if is_list else index)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def pairs(old: Outline, before: Sequence[int], new: Outline, after: Sequence[int]) -> dict[int, int]:
    """Map blocks to earlier ones, in time linear in the number of blocks.

    `before` and `after` are the indexes to compare.
    """
    found: dict[int, int] = {}
    first, last = 0, 0
    most = min(len(before), len(after))
    while first < most and is_same(old[before[first]], new[after[first]]):
        found[after[first]] = before[first]
        first += 1
    while last < most - first and is_same(old[before[-1 - last]], new[after[-1 - last]]):
        found[after[-1 - last]] = before[-1 - last]
        last += 1
    before, after = before[first : len(before) - last], after[first : len(after) - last]
    alike: defaultdict[tuple[BlockKind, str], deque[int]] = defaultdict(deque)
    for index in before:
        alike[old[index].kind, old[index].digest].append(index)
    for index in after:
        if same := alike[new[index].kind, new[index].digest]:
            found[index] = same.popleft()
    return found | _changed_pairs(old, before, new, after, found)


def _changed_pairs(
    old: Outline,
    before: Sequence[int],
    new: Outline,
    after: Sequence[int],
    unchanged: Mapping[int, int],
) -> dict[int, int]:
    """Pair changed blocks: of the same kind, after the same unchanged block."""
    found: dict[int, int] = {}
    order = {index: number for number, index in enumerate(before)}
    taken = set(unchanged.values())
    next_one = 0
    for index in after:
        if index in unchanged:
            next_one = order[unchanged[index]] + 1
            continue
        earlier = before[next_one] if next_one < len(before) else None
        if earlier is not None and earlier not in taken and old[earlier].kind == new[index].kind:
            found[index] = earlier
            taken.add(earlier)
            next_one += 1
    return found


def list_pairs(old: Outline, new: Outline, kept: Mapping[int, int]) -> dict[int, int]:
    """Map each list to the earlier list of its first known item, unless another list has it already."""
    found: dict[int, int] = {}
    old_parents, new_parents = parents(old), parents(new)
    taken = set(kept.values())
    for index, earlier in sorted(kept.items()):
        if new[index].kind == old[earlier].kind == "item":
            here, there = new_parents[index], old_parents[earlier]
            if here not in kept and here not in found and there not in taken:
                found[here] = there
                taken.add(there)
    return found


def leaves(entries: Outline) -> list[int]:
    """The indexes of all blocks with text of their own: all but lists."""
    return [index for index, entry in enumerate(entries) if entry.kind != "list"]


def is_same(one: OutlineEntry, other: OutlineEntry) -> bool:
    return one.kind == other.kind and one.digest == other.digest
