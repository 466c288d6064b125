"""Change a text block by block. Pure.

An edit never changes other blocks: if the surrounding text would be parsed differently, blank lines are put
around the new blocks, and if that does not help, the edit is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from ragmemory.blocks.outline import (
    Outline,
    OutlineEntry,
    is_same,
    leaves,
    list_pairs,
    pairs,
    with_ids,
    without_ids,
)
from ragmemory.blocks.tree import Tree, indent_of, marker_of
from ragmemory.errors import BadArgument

Position = Literal["before", "after", "inside"]

_LEADING_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+")


class Edited(NamedTuple):
    """A tree after an edit, and its outline."""

    tree: Tree
    outline: list[OutlineEntry]
    written: list[int]  # indexes of the blocks written by the edit, without lists


class _Splice(NamedTuple):
    """One way to make an edit: a replacement for a range of the text."""

    start: int
    end: int
    text: str


def insert(tree: Tree, known: Outline, index: int | None, position: Position, content: str) -> Edited:
    """Insert blocks before or after a block and its descendants, or inside it as its last children.

    Without an index, at the end of the document. Inside a heading, content goes before the first subheading,
    unless it begins with a heading itself. Next to an item, the marker may be omitted. Raises BadArgument.
    """
    content = _content(content)
    if index is None:
        at, first, is_tight = len(tree.text.rstrip()), len(tree.nodes), False
    elif position == "inside":
        at, first, content, is_tight = _inside(tree, index, content)
    elif position == "before":
        content = _adapted(tree, index, content)
        at, first, is_tight = tree.nodes[index].start, index, _is_tight(tree, index, content)
    else:
        content = _adapted(tree, index, content, step=1)
        at, first = tree.span(index, section=True)[1], tree.below(index).stop
        is_tight = _is_tight(tree, index, content)
    return _edited(tree, known, _insertions(tree.text, at, content, is_tight=is_tight), first, first)


def update(tree: Tree, known: Outline, index: int, content: str, *, section: bool = False) -> Edited:
    """Replace a block and its descendants; of a heading only its lines, unless `section` is set.

    The first new block keeps the id. The marker of a heading or item may be omitted. Raises BadArgument.
    """
    content = _adapted(tree, index, _content(content), is_replaced=True)
    stop = _index_after(tree, index, section=section)
    start, end = tree.span(index, section=section)
    splices = (
        _Splice(start, end, content),
        _Splice(start, end, _gap_before(tree.text[:start]) + content + _gap_after(tree.text[end:])),
    )
    return _edited(tree, known, splices, index, stop, updated=index)


def delete(tree: Tree, known: Outline, index: int, *, section: bool = False) -> Edited:
    """Remove a block and its descendants; of a heading only its lines, unless `section` is set.

    Raises BadArgument.
    """
    node, text = tree.nodes[index], tree.text
    start, end = tree.span(index, section=section)
    stop = node.end if node.level and not section else node.stop
    head = text[:start].rstrip()
    if stop == len(text):  # At the end of the text, also remove the blank lines before it.
        splices = [_Splice(len(head), stop, "\n" if text.endswith("\n") else "")]
    else:
        with_gap, without = _Splice(start, stop, ""), _Splice(start, end + 1, "")
        first = [without, with_gap] if _gap_before(text[:start]) else [with_gap, without]
        splices = [*first, _Splice(start, end + 1, "\n")]
    if not (head + text[stop:]).strip():
        raise BadArgument("block", "is the only one of the document; remove the document instead")
    return _edited(tree, known, splices, index, _index_after(tree, index, section=section), removes=True)


def _edited(
    tree: Tree,
    known: Outline,
    splices: Iterable[_Splice],
    first: int,
    stop: int,
    *,
    updated: int | None = None,
    removes: bool = False,
) -> Edited:
    """Apply the first splice that leaves the blocks before `first` and from `stop` on unchanged."""
    indexes = leaves(known)
    before = [index for index in indexes if index < first]
    after = [index for index in indexes if index >= stop]
    for splice in splices:
        new_tree = Tree(tree.text[: splice.start] + splice.text + tree.text[splice.end :], tree.format)
        new = without_ids(new_tree)
        found = leaves(new)
        added = len(found) - len(before) - len(after)
        if (added != 0) if removes else (added <= 0):
            continue
        kept = dict(zip(found, before, strict=False))
        kept |= zip(found[len(before) + added :], after, strict=True)
        if not all(is_same(new[index], known[earlier]) for index, earlier in kept.items()):
            continue
        written = found[len(before) : len(before) + added]
        if updated is not None:
            kept |= _kept_by_update(known, updated, stop, new, written, kept)
        return Edited(new_tree, with_ids(new, known, kept), written)
    if removes:
        raise BadArgument("block", "cannot be removed: the blocks around it would change")
    raise BadArgument(
        "content", "would change other blocks; close its code fences, and separate its blocks by blank lines"
    )


def _kept_by_update(
    known: Outline,
    updated: int,
    stop: int,
    new: Outline,
    written: Sequence[int],
    around: dict[int, int],
) -> dict[int, int]:
    """Map the blocks that an update has written to earlier ones: the first to the updated block.

    `around` maps the blocks before and after it.
    """
    first = written[0]
    if known[updated].kind != "item" and first and new[first - 1].kind == "list":
        # The first block is a new list, not its item, unless the item became part of a surrounding list.
        first -= first - 1 not in list_pairs(known, new, around)
    before = [index for index in range(updated + 1, stop) if known[index].kind != "list"]
    after = [index for index in written if index != first]
    return {first: updated, **pairs(known, before, new, after)}


def _index_after(tree: Tree, index: int, *, section: bool) -> int:
    """The index after a block that is replaced, and its descendants unless it is a heading alone."""
    return index + 1 if tree.nodes[index].level and not section else tree.below(index).stop


def _insertions(text: str, at: int, content: str, *, is_tight: bool) -> Iterator[_Splice]:
    """Ways to insert lines: without blank lines around them if `is_tight`, then with them."""
    if text.startswith("\n", at):
        at += 1
    head, tail = text[:at], text[at:]
    is_line = not head or head.endswith("\n")
    end = "\n" if tail or is_line else ""
    start = "" if is_line else "\n"
    if is_tight:
        yield _Splice(at, at, start + content + end)
    gap = _gap_before(head) if is_line else "\n"
    yield _Splice(at, at, start + gap + content + end + (_gap_after("\n" + tail) if end else ""))


def _gap_before(head: str) -> str:
    """The line end needed for a blank line after `head`."""
    last_line = head[head.rfind("\n", 0, -1) + 1 :]
    return "\n" if last_line.strip() else ""


def _gap_after(tail: str) -> str:
    """The line end needed for a blank line before `tail`, which begins with a line end."""
    following = tail[1:].split("\n", 1)[0]
    return "\n" if following.strip() else ""


def _inside(tree: Tree, index: int, content: str) -> tuple[int, int, str, bool]:
    """Where to insert inside a block: the offset, the index, the adapted content, whether it is tight."""
    node, below = tree.nodes[index], tree.below(index)
    children = [child for child in below if tree.nodes[child].parent == index]
    if node.kind == "list":
        content = _adapted(tree, children[-1], content, step=1)
        is_tight = _is_tight(tree, children[-1], content)
    elif node.kind == "item":
        marker = marker_of(_first_line(tree, index))
        content = _indented(content, marker.content if marker else 0)
        is_tight = marker_of(content) is not None
    elif node.kind == "heading":
        is_tight = False
        texts = [child for child in children if not tree.nodes[child].level]
        if not Tree(content, tree.format).nodes[0].level:
            last = texts[-1] if texts else index
            end = tree.span(last)[1]
            return end, tree.below(last).stop if texts else index + 1, content, is_tight
    else:
        raise BadArgument("position", f"must be before or after: a {node.kind} has no blocks inside")
    return tree.span(index, section=True)[1], below.stop, content, is_tight


def _content(content: str) -> str:
    """The content without blank lines around it. Raises BadArgument."""
    content = _LEADING_BLANK_LINES.sub("", re.sub("\r\n?", "\n", content).rstrip())
    if not content:
        raise BadArgument("content", "is empty")
    return content


def _adapted(tree: Tree, index: int, content: str, *, step: int = 0, is_replaced: bool = False) -> str:
    """Give content the indentation of a block in an item, and a missing marker of an item or heading.

    `step` is added to the number of an item.
    """
    node = tree.nodes[index]
    if tree.format != "markdown":
        return content
    if node.level:
        needs_marker = is_replaced and not Tree(content, tree.format).nodes[0].level
        return f"{'#' * node.level} {content}" if needs_marker else content
    line = _first_line(tree, index)
    marker = marker_of(line) if node.kind == "item" else None
    if marker and marker_of(content.split("\n", 1)[0]) is None:
        number = f"{int(marker.number) + step}" if marker.number else ""
        content = f"{number}{marker.kind} {_indented(content, len(number) + 2).lstrip()}"
    is_in_item = node.kind == "item" or _is_in_item(tree, index)
    return _indented(content, indent_of(line)) if is_in_item else content


def _is_in_item(tree: Tree, index: int) -> bool:
    while (index := tree.nodes[index].parent) >= 0:
        if tree.nodes[index].kind == "item":
            return True
    return False


def _indented(content: str, columns: int) -> str:
    """Indent all lines so that the first begins at this column."""
    lines = content.split("\n")
    missing = columns - indent_of(lines[0])
    return "\n".join(" " * missing + line if line.strip() else line for line in lines)


def _is_tight(tree: Tree, index: int, content: str) -> bool:
    """Whether the content is an item for a tight list, without blank lines between its items."""
    if tree.nodes[index].kind != "item" or marker_of(content.split("\n", 1)[0]) is None:
        return False
    parent = tree.nodes[index].parent
    items = [one for one in tree.below(parent) if tree.nodes[one].parent == parent]
    gaps = [tree.text[tree.span(one)[1] : tree.nodes[one].stop] for one in items[:-1]]
    return not any(gap.count("\n") > 1 for gap in gaps)


def _first_line(tree: Tree, index: int) -> str:
    return tree.text[tree.nodes[index].start :].split("\n", 1)[0]
