"""Edits of texts, with random ones by hypothesis."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmemory.blocks.editing import Edited, Position, delete, insert, update
from ragmemory.blocks.labels import find_block, labels
from ragmemory.blocks.outline import OutlineEntry, leaves, outline, without_ids
from ragmemory.blocks.tree import Tree
from ragmemory.errors import BadArgument
from tests.server.blocks.test_tree import PARTS

TEXT = """# Tea

Steep it.

- green
- black
  - Assam

## Milk

None.
"""


class Editor:
    """A text that is edited by labels."""

    def __init__(self, text: str, format: str = "markdown") -> None:
        self.tree = Tree(text, "csv" if format == "csv" else "markdown")
        self.outline = outline(self.tree)

    def place(self, label: str) -> int:
        place = find_block(label, [entry.id for entry in self.outline], labels(self.tree))
        assert place is not None
        return place

    def insert(self, label: str, position: Position, content: str) -> str:
        place = self.place(label) if label else None
        return self._keep(insert(self.tree, self.outline, place, position, content))

    def update(self, label: str, content: str, *, section: bool = False) -> str:
        return self._keep(update(self.tree, self.outline, self.place(label), content, section=section))

    def delete(self, label: str, *, section: bool = False) -> str:
        return self._keep(delete(self.tree, self.outline, self.place(label), section=section))

    def _keep(self, edited: Edited) -> str:
        self.tree, self.outline = edited.tree, edited.outline
        return self.tree.text


@pytest.mark.parametrize(
    ("label", "position", "content", "before", "after"),
    [
        ("", "after", "Last.", "None.\n", "None.\n\nLast.\n"),
        ("1.a", "after", "Then wait.", "Steep it.\n", "Steep it.\n\nThen wait.\n"),
        ("1.a", "before", "First.", "Steep it.\n", "First.\n\nSteep it.\n"),
        ("1", "before", "# Water\n\nBoil it.", "# Tea\n", "# Water\n\nBoil it.\n\n# Tea\n"),
        ("1", "inside", "Drink it.", "## Milk\n", "Drink it.\n\n## Milk\n"),
        ("1", "inside", "## Sugar", "None.\n", "None.\n\n## Sugar\n"),
        ("1.1", "inside", "Or some.", "None.\n", "None.\n\nOr some.\n"),
        ("1", "after", "# Coffee", "None.\n", "None.\n\n# Coffee\n"),
        ("1.b.1", "after", "white", "- green\n", "- green\n- white\n"),
        ("1.b.1", "before", "- white", "- green\n", "- white\n- green\n"),
        ("1.b.2", "after", "white", "  - Assam\n", "  - Assam\n- white\n"),
        ("1.b", "inside", "white", "  - Assam\n", "  - Assam\n- white\n"),
        ("1.b.2.a.1", "after", "Ceylon", "  - Assam\n", "  - Assam\n  - Ceylon\n"),
        ("1.b.2", "inside", "- Ceylon", "  - Assam\n", "  - Assam\n  - Ceylon\n"),
        ("1.b.1", "inside", "From\nChina.", "- green\n", "- green\n\n  From\n  China.\n\n"),
    ],
)
def test_blocks_are_inserted(label: str, position: Position, content: str, before: str, after: str) -> None:
    assert Editor(TEXT).insert(label, position, content) == TEXT.replace(before, after)


@pytest.mark.parametrize(
    ("label", "content", "before", "after"),
    [
        ("1.a", "Brew it.", "Steep it.", "Brew it."),
        ("1.a", "One.\n\nTwo.", "Steep it.", "One.\n\nTwo."),
        ("1", "Black tea", "# Tea", "# Black tea"),
        ("1", "## Tea", "# Tea", "## Tea"),
        ("1.1", "Milk\n====", "## Milk", "Milk\n===="),
        ("1.b.1", "- white", "- green", "- white"),
        ("1.b.1", "white\nand young", "- green", "- white\n  and young"),
        ("1.b.2.a.1", "Ceylon", "  - Assam", "  - Ceylon"),
        ("1.b.2", "black", "- black\n  - Assam", "- black"),
        ("1.b", "1. one", "- green\n- black\n  - Assam", "1. one"),
        ("1.1.a", "```\nunclosed", "None.", "```\nunclosed"),
    ],
)
def test_a_block_is_updated_and_keeps_its_id(label: str, content: str, before: str, after: str) -> None:
    editor = Editor(TEXT)
    id = editor.outline[editor.place(label)].id
    assert editor.update(label, content) == TEXT.replace(before, after)
    assert id in [entry.id for entry in editor.outline]


@pytest.mark.parametrize(
    ("label", "section", "removed"),
    [
        ("1.a", False, "Steep it.\n\n"),
        ("1.b", False, "- green\n- black\n  - Assam\n\n"),
        ("1.b.1", False, "- green\n"),
        ("1.b.2.a.1", False, "  - Assam\n"),
        ("1.1", False, "## Milk\n\n"),
        ("1.1", True, "\n## Milk\n\nNone.\n"),
        ("1.1.a", False, "\nNone.\n"),
        ("1", False, "# Tea\n\n"),
    ],
)
def test_a_block_is_removed(label: str, section: bool, removed: str) -> None:
    assert Editor(TEXT).delete(label, section=section) == TEXT.replace(removed, "")


def test_a_whole_section_is_replaced() -> None:
    assert Editor(TEXT).update("1.1", "## Sugar\n\nTwo.", section=True) == TEXT.replace(
        "## Milk\n\nNone.", "## Sugar\n\nTwo."
    )


def test_the_end_of_the_last_line_stays_as_it_is() -> None:
    assert Editor("# A\n\nText.").insert("", "after", "More.") == "# A\n\nText.\n\nMore."
    assert Editor("# A\n\nText.").update("1.a", "Other.\n\n") == "# A\n\nOther."
    assert Editor("# A\n\nText.").delete("1.a") == "# A"


def test_numbered_items_continue_counting() -> None:
    assert Editor("1. one\n2. two\n").insert("a.2", "after", "three") == "1. one\n2. two\n3. three\n"


def test_items_with_blank_lines_between_them_get_one() -> None:
    assert Editor("- a\n\n- b\n").insert("a.2", "after", "c") == "- a\n\n- b\n\n- c\n"


def test_blocks_that_would_flow_together_are_kept_apart() -> None:
    assert Editor("- a\nb\n\nText\n- c\n").delete("b") == "- a\nb\n\n- c\n"
    assert Editor("> q\n- a\n\nText.\n").update("b.1", "No item any more.\n\nMore.") != ""
    assert Editor("one\n- a\ntwo\n# H\n").update("a", "- x") == "- x\n- a\ntwo\n# H\n"


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (lambda editor: editor.insert("1.a", "after", "```\nnever closed"), "content"),
        (lambda editor: editor.update("1.a", " \n\t\n"), "content"),
        (lambda editor: editor.insert("1.a", "inside", "x"), "position"),
        (lambda editor: editor.delete("1", section=True), "block"),
    ],
)
def test_an_edit_that_cannot_be_made_is_refused(edit: object, field: str) -> None:
    assert callable(edit)
    with pytest.raises(BadArgument) as caught:
        edit(Editor(TEXT))
    assert caught.value.path == field


def test_an_edit_that_would_change_its_neighbours_is_set_apart_or_refused() -> None:
    """As many blocks are left around it in both, but not the same ones."""
    editor = Editor("  - z\n2. m\n| a | b |\n")
    assert editor.update("b", "new\n\nnew2") == "  - z\n\nnew\n\nnew2\n\n| a | b |\n"
    with pytest.raises(BadArgument, match="would change other blocks"):
        Editor("2. m\na\n").insert("a.1", "before", "```\nx\n```")


def test_a_row_of_a_csv_file_is_not_a_block() -> None:
    editor = Editor("a,b\n1,2\n", "csv")
    assert editor.update("a", "a,b\n3,4") == "a,b\n3,4\n"
    with pytest.raises(BadArgument):
        editor.insert("a", "after", "5,6")


def untouched(before: list[OutlineEntry], after: list[OutlineEntry], touched: set[str]) -> None:
    """All other blocks have their ids and contents, in their order."""
    kept = [(entry.id, entry.digest) for entry in before if entry.id not in touched and entry.kind != "list"]
    ids = {id for id, _ in kept}
    assert [(entry.id, entry.digest) for entry in after if entry.id in ids] == kept


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6), st.data())
def test_after_random_edits_the_text_has_the_tree_and_other_blocks_their_ids(
    parts: list[str], data: st.DataObject
) -> None:
    text = "\n\n".join(parts) + data.draw(st.sampled_from(["", "\n", "\n\n"]))
    editor = Editor(text)
    for _ in range(4):
        place = data.draw(st.integers(0, len(editor.outline) - 1))
        kind = data.draw(st.sampled_from(["insert", "update", "delete"]))
        content = data.draw(st.sampled_from([*PARTS, "same", "same"]))
        section = data.draw(st.booleans())
        before, label = editor.outline, f"#{place + 1}"
        below = editor.tree.below(place)
        touched: set[str] = set()
        if kind != "insert":
            node = editor.tree.nodes[place]
            below = range(place, place + 1) if node.level and not section else below
            touched = {before[one].id for one in below}
        try:
            if kind == "insert":
                editor.insert(label, data.draw(st.sampled_from(["before", "after", "inside"])), content)
            elif kind == "update":
                editor.update(label, content, section=section)
                assert before[place].id in {entry.id for entry in editor.outline}
            else:
                editor.delete(label, section=section)
        except BadArgument:
            continue
        again = Tree(editor.tree.text, "markdown")
        assert [(node.kind, node.start, node.stop) for node in again.nodes] == [
            (node.kind, node.start, node.stop) for node in editor.tree.nodes
        ]
        assert [entry.digest for entry in without_ids(again)] == [entry.digest for entry in editor.outline]
        assert len({entry.id for entry in editor.outline}) == len(editor.outline)
        assert len(set(labels(again))) == len(again.nodes)
        assert leaves(editor.outline)
        untouched(before, editor.outline, touched)
