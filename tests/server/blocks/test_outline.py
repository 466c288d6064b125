from __future__ import annotations

import time

from ragmemory.blocks.outline import OutlineEntry, changed, outline
from ragmemory.blocks.tree import Tree

TEXT = "# Tea\n\nSteep it.\n\n- green\n- black\n\nDrink it.\n\n# Coffee\n\nGrind it.\n"


def entries(text: str, known: list[OutlineEntry] | None = None) -> list[OutlineEntry]:
    return outline(Tree(text, "markdown"), known or [])


def ids(text: str, known: list[OutlineEntry] | None = None) -> dict[str, str]:
    """The id of each block by its own text; of lists by "list"."""
    tree = Tree(text, "markdown")
    return {tree.own(place) or "list": entry.id for place, entry in enumerate(outline(tree, known or []))}


def test_ids_are_derived_from_the_content_and_all_different() -> None:
    assert entries(TEXT) == entries(TEXT)
    same = entries("same\n\n" * 50 + "- same\n" * 50)
    assert len({entry.id for entry in same}) == len(same) == 101


def test_every_other_block_keeps_its_id_when_one_changes() -> None:
    before = ids(TEXT)
    after = ids(TEXT.replace("Steep it.", "Steep it well."), entries(TEXT))
    assert after.pop("Steep it well.") == before.pop("Steep it.")
    assert after == before


def test_blocks_that_come_go_and_move_leave_the_ids_of_the_others() -> None:
    before = ids(TEXT)
    for text in (
        TEXT.replace("# Tea\n", "# Tea\n\nNew.\n"),
        TEXT.replace("Drink it.\n\n", ""),
        "# Coffee\n\nGrind it.\n\n" + TEXT.split("# Coffee")[0],
        TEXT.replace("- green\n", "- white\n- green\n"),
        TEXT.replace("- green\n", ""),
    ):
        after = ids(text, entries(TEXT))
        assert {name: id for name, id in after.items() if name in before}.items() <= before.items(), text
        assert len(set(after.values())) == len(after)


def test_a_list_keeps_its_id_with_any_of_its_items() -> None:
    known = entries(TEXT)
    text = TEXT.replace("- green\n- black\n", "- white\n- black\n- red\n")
    assert ids(text, known)["list"] == ids(TEXT)["list"]


def test_a_changed_block_is_named_with_those_above_it() -> None:
    before = entries(TEXT)
    names = {id: name for name, id in ids(TEXT).items()}
    after = entries(TEXT.replace("- black", "- dark").replace("Grind it.\n", ""), before)
    assert [names[id] for id in changed(before, after)] == [
        "# Tea",
        "list",
        "- black",
        "# Coffee",
        "Grind it.",
    ]
    assert changed(before, before) == []


def test_many_equal_blocks_are_compared_in_linear_time() -> None:
    many = entries("same\n\n" * 20_000)
    began = time.process_time()
    after = entries("other\n\n" + "same\n\n" * 19_000 + "last\n", many)
    assert time.process_time() - began < 10
    assert len({entry.id for entry in after}) == len(after)
