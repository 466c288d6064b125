"""The ids of blocks, which stay the same from one text of a document to the next. Pure.

The id of a new block is derived from its content. When a document changes, its blocks take the ids of the
blocks they were: those with the same content first, then those of the same kind at the same place.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ragmemory.blocks.tree import Kind, Tree

_ID_DIGITS = 12


class Entry(Struct, frozen=True, array_like=True, gc=False):
    """A block as it is kept with its document. A list has the digest of its first item."""

    id: str
    kind: Kind
    digest: str  # of what is its own
    depth: int


def outline(tree: Tree, known: Sequence[Entry] = ()) -> list[Entry]:
    """The entries of a tree's blocks, in order. `known` is the outline of an earlier text."""
    new = unnamed(tree)
    return named(new, known, pairs(known, leaves(known), new, leaves(new)))


def unnamed(tree: Tree) -> list[Entry]:
    """The entries of a tree's blocks, in order, without ids."""
    return [Entry("", node.kind, _digest(tree, place), node.depth) for place, node in enumerate(tree.nodes)]


def named(new: Sequence[Entry], known: Sequence[Entry], kept: Mapping[int, int]) -> list[Entry]:
    """The entries with ids: `kept` has the places in `known` of those that were there, except for lists."""
    kept = {**list_pairs(known, new, kept), **kept}
    ids = {place: known[earlier].id for place, earlier in kept.items()}
    new_ids = _NewIds(set(ids.values()))
    entries = []
    for place, entry in enumerate(new):
        id = ids.get(place) or new_ids.next(entry)
        entries.append(Entry(id, entry.kind, entry.digest, entry.depth))
    return entries


def changed(before: Sequence[Entry], after: Sequence[Entry]) -> list[str]:
    """The ids of the earlier blocks that are gone, or differ in what is their own or below them."""
    states = _states(after)
    return [id for id, state in _states(before).items() if states.get(id) != state]


def parents(entries: Sequence[Entry]) -> list[int]:
    """The place of each entry's parent; -1 if it has none."""
    found: list[int] = []
    path: list[int] = []
    for place, entry in enumerate(entries):
        del path[entry.depth - 1 :]
        found.append(path[-1] if path else -1)
        path.append(place)
    return found


def _states(entries: Sequence[Entry]) -> dict[str, bytes]:
    """A digest of each block with all that is below it, by id."""
    hashes = [hashlib.blake2b(f"{entry.kind} {entry.digest}".encode(), digest_size=8) for entry in entries]
    above = parents(entries)
    for place in reversed(range(len(entries))):
        if above[place] >= 0:
            hashes[above[place]].update(hashes[place].digest())
    return {entry.id: hash.digest() for entry, hash in zip(entries, hashes, strict=True)}


def _digest(tree: Tree, place: int) -> str:
    is_list = tree.nodes[place].kind == "list"
    text = tree.own(place + 1 if is_list else place)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class _NewIds:
    """Ids that no other block has, derived from the content and, of equal blocks, their order."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._equal: Counter[tuple[Kind, str]] = Counter()

    def next(self, entry: Entry) -> str:
        while True:
            number = self._equal[entry.kind, entry.digest]
            self._equal[entry.kind, entry.digest] += 1
            content = f"{entry.kind} {entry.digest} {number}".encode()
            id = hashlib.blake2b(content, digest_size=_ID_DIGITS // 2).hexdigest()
            if id not in self._taken:
                self._taken.add(id)
                return id


def pairs(
    old: Sequence[Entry], before: Sequence[int], new: Sequence[Entry], after: Sequence[int]
) -> dict[int, int]:
    """The earlier places of blocks, by place. In time that is linear in the number of blocks.

    `before` and `after` are the places that are compared.
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
    alike: defaultdict[tuple[Kind, str], deque[int]] = defaultdict(deque)
    for place in before:
        alike[old[place].kind, old[place].digest].append(place)
    for place in after:
        if same := alike[new[place].kind, new[place].digest]:
            found[place] = same.popleft()
    return found | _changed_pairs(old, before, new, after, found)


def _changed_pairs(
    old: Sequence[Entry],
    before: Sequence[int],
    new: Sequence[Entry],
    after: Sequence[int],
    unchanged: Mapping[int, int],
) -> dict[int, int]:
    """Pair the blocks that have changed: of one kind, and after the same unchanged block."""
    found: dict[int, int] = {}
    order = {place: number for number, place in enumerate(before)}
    taken = set(unchanged.values())
    next_one = 0
    for place in after:
        if place in unchanged:
            next_one = order[unchanged[place]] + 1
            continue
        earlier = before[next_one] if next_one < len(before) else None
        if earlier is not None and earlier not in taken and old[earlier].kind == new[place].kind:
            found[place] = earlier
            taken.add(earlier)
            next_one += 1
    return found


def list_pairs(old: Sequence[Entry], new: Sequence[Entry], kept: Mapping[int, int]) -> dict[int, int]:
    """A list is the one that its first known item was in, unless an earlier list is that one."""
    found: dict[int, int] = {}
    old_parents, new_parents = parents(old), parents(new)
    taken = set(kept.values())
    for place, earlier in sorted(kept.items()):
        if new[place].kind == old[earlier].kind == "item":
            here, there = new_parents[place], old_parents[earlier]
            if here not in kept and here not in found and there not in taken:
                found[here] = there
                taken.add(there)
    return found


def leaves(entries: Sequence[Entry]) -> list[int]:
    """The places of all blocks that have something of their own: all but lists."""
    return [place for place, entry in enumerate(entries) if entry.kind != "list"]


def is_same(one: Entry, other: Entry) -> bool:
    return one.kind == other.kind and one.digest == other.digest
