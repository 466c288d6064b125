"""What undo says, and the groups of writes that it takes back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ragchat.memory.history import new_group, sentences
from ragcommon.contract.history import Action, Entry, Origin, Undone


@pytest.mark.parametrize(
    ("writes", "sentence"),
    [
        ({"updated": 1}, "Undone: note:1 was updated."),
        ({"added": 2000}, "Undone: 2,000 documents were added."),
        ({"removed": 1}, "Undone: note:1 was removed. It is back in memory."),
        (
            {"removed": 1, "added": 12},
            "Undone: 1 document was removed, 12 added. What was removed is back in memory.",
        ),
    ],
)
def test_undo_says_what_was_undone(writes: dict[Action, int], sentence: str) -> None:
    assert list(sentences(undone(writes))) == [sentence]


def test_undo_counts_a_document_with_several_writes_once() -> None:
    several = replace(undone({"updated": 3, "added": 11}), by_document={"added": 11})
    assert list(sentences(several)) == ["Undone: 11 documents were added."]


def test_undo_names_what_others_have_changed_since() -> None:
    kept = [f"note:{number}" for number in range(5)]
    *_, last = sentences(undone({"added": 12}, kept))
    assert last == "Not undone, because changed again since: note:0, note:1, note:2, 2 more."
    *_, last = sentences(undone({"added": 12}, kept[:1]))
    assert last == "Not undone, because changed again since: note:0."


def test_each_command_gets_a_group_of_its_own() -> None:
    assert len({new_group() for _ in range(100)}) == 100


def undone(writes: dict[Action, int], kept: list[str] | None = None) -> Undone:
    entry = Entry(1, "2026-01-31T09:00:00Z", next(iter(writes)), "0" * 16, "note:1", Origin(), undone=True)
    return Undone(entry, {str(action): count for action, count in writes.items()}, kept or [])
