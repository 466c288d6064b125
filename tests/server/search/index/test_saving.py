"""Which segments become files when, and what a start makes of them.

Covers `chunk_index`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from ragconfig.settings import load_settings
from ragmemory.search.index.chunk_index import ChunkIndex
from ragmemory.search.index.folder import IndexFolder
from ragmemory.search.index.saving import SavedIndex, next_merge
from ragmemory.search.sync import FEW, MANY
from ragmemory.settings import RankingSettings
from ragmemory.types.changes import Changes, Checkpoint

RANKING = load_settings(environ={}).table("ranking", RankingSettings)
ALL = 1 << 18


def empty() -> ChunkIndex:
    return ChunkIndex(8, RANKING)


def changes(after: int, upto: int, *removed: int, removal: int = 0) -> Changes:
    ids = list(range(after + 1, upto + 1))
    texts = [f"word{number} common" for number in ids]
    none = [""] * len(ids)
    embeddings = [b"\0" * 16] * len(ids)
    return Changes(Checkpoint(upto, removal), ids, none, none, texts, none, embeddings, list(removed))


def grown(index: ChunkIndex, upto: int, *removed: int, removal: int = 0) -> ChunkIndex:
    index.apply(changes(index.checkpoint.chunk_id, upto, *removed, removal=removal))
    return index


def save(saved: SavedIndex, index: ChunkIndex, most_rows: int = ALL, most_segments: int = MANY) -> None:
    with saved.folder.locked() as is_ours:
        assert is_ours
        while True:
            merge = next_merge(index, 1, most_rows, most_segments)
            if not merge[0]:
                break
            assert index.replace(merge[0], saved.write(merge, lambda: False))
        saved.commit(*saved.describe(index))


def load(saved: SavedIndex) -> ChunkIndex:
    index = empty()
    index.adopt(*saved.read())
    return index


def ids(index: ChunkIndex) -> list[int]:
    rows = np.setdiff1d(np.arange(len(index.rows)), index.rows.excluded)
    return [int(number) for number in index.rows.take(rows, lambda one: one.chunk_ids)]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.index"))


@pytest.fixture
def saved(tmp_path: Path) -> SavedIndex:
    return SavedIndex(IndexFolder(tmp_path / "index"), "store")


def test_a_saved_index_is_read_with_its_removals_and_grows_on(saved: SavedIndex) -> None:
    index = grown(grown(empty(), 5), 7, 2, 99, removal=4)
    save(saved, index)
    assert index.unsaved == 0
    again = load(saved)
    assert (again.checkpoint, ids(again)) == (Checkpoint(7, 4), [1, 3, 4, 5, 6, 7])
    assert ids(grown(again, 9)) == [1, 3, 4, 5, 6, 7, 8, 9]
    save(saved, again)
    assert ids(load(saved)) == [1, 3, 4, 5, 6, 7, 8, 9]


def test_saving_writes_only_what_is_new(saved: SavedIndex) -> None:
    index = grown(empty(), 5)
    save(saved, index)
    before = files(saved.folder.path)
    save(saved, grown(index, 7))
    assert set(before) < set(files(saved.folder.path))


def test_a_few_new_rows_do_not_copy_large_segments(saved: SavedIndex) -> None:
    index = empty()
    for upto in (5_000, 5_200):
        save(saved, grown(index, upto))
    large = set(files(saved.folder.path))
    for upto in range(5_201, 5_211):
        save(saved, grown(index, upto), most_segments=FEW)
    assert large < set(files(saved.folder.path))
    save(saved, grown(index, 5_600), most_segments=FEW)
    assert len(files(saved.folder.path)) <= FEW


def test_an_index_of_another_store_is_not_read(saved: SavedIndex) -> None:
    save(saved, grown(empty(), 5))
    other = SavedIndex(saved.folder, "another store")
    assert (load(other).checkpoint, ids(load(other))) == (Checkpoint(), [])
    save(other, grown(empty(), 2))
    assert ids(load(other)) == [1, 2]
    assert len(files(saved.folder.path)) == 1


def test_many_small_saves_leave_few_files(saved: SavedIndex) -> None:
    index = empty()
    for number in range(1, 60):
        save(saved, grown(index, number))
    assert len(files(saved.folder.path)) <= MANY + 1
    assert ids(load(saved)) == list(range(1, 60))


def test_large_merges_wait_until_there_is_time(saved: SavedIndex) -> None:
    index = empty()
    for number in range(1, 30):
        save(saved, grown(index, 10 * number), most_rows=20)
    assert len(files(saved.folder.path)) > MANY
    save(saved, index)
    assert len(files(saved.folder.path)) <= MANY


def test_in_quiet_times_more_is_merged(saved: SavedIndex) -> None:
    index = empty()
    for number in range(1, 10):
        save(saved, grown(index, number))
    save(saved, index, most_segments=FEW)
    assert len(files(saved.folder.path)) <= FEW
    assert ids(load(saved)) == list(range(1, 10))


def test_removed_chunks_are_dropped_when_they_are_many(saved: SavedIndex) -> None:
    index = grown(empty(), 10)
    save(saved, index)
    grown(index, 10, 1, 2, removal=2)
    save(saved, index)
    assert (len(index.rows), len(index)) == (10, 8)
    grown(index, 10, 3, removal=3)
    save(saved, index)
    assert (len(index.rows), len(index)) == (7, 7)
    again = load(saved)
    assert ids(again) == list(range(4, 11))
    assert list(again.gaps()) == []


def test_a_lost_file_leaves_a_gap_that_is_filled_from_the_store(saved: SavedIndex) -> None:
    index = grown(empty(), 5)
    save(saved, index)
    save(saved, grown(index, 7))
    save(saved, grown(index, 8))
    (saved.folder.path / str(index.segments[1].path)).unlink()
    again = load(saved)
    assert (list(again.gaps()), again.checkpoint) == ([(5, 7)], Checkpoint(8))
    again.fill(5, 6, changes(5, 6))
    assert list(again.gaps()) == [(6, 7)]
    again.fill(6, 7, changes(7, 7))  # what was there has been removed since
    assert (list(again.gaps()), ids(again)) == ([], [1, 2, 3, 4, 5, 6, 8])
    save(saved, again)
    assert list(load(saved).gaps()) == []


def test_a_damaged_file_is_set_aside_when_it_is_opened(
    saved: SavedIndex, caplog: pytest.LogCaptureFixture
) -> None:
    index = grown(empty(), 5)
    save(saved, index)
    path = index.segments[0].path
    assert path is not None
    path.write_bytes(path.read_bytes()[:-1])
    assert list(load(saved).gaps()) == [(0, 5)]
    assert files(saved.folder.path) == ["damaged.index"]
    assert "is damaged" in caplog.text


@pytest.mark.parametrize("kind", ["segment", "removed"])
def test_a_file_of_another_day_under_a_listed_name_is_not_used(
    kind: str, saved: SavedIndex, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = SavedIndex(IndexFolder(tmp_path / "other"), "store")
    for folder, first, removed in (saved, 5, 3), (other, 4, 2):
        index = grown(empty(), first)
        save(folder, index)
        save(folder, grown(index, first, removed, removal=1))
    (ours,) = saved.folder.path.glob(f"{kind}-*")
    (theirs,) = other.folder.path.glob(f"{kind}-*")
    shutil.copy(theirs, ours)
    again = load(saved)
    if kind == "segment":
        assert (list(again.gaps()), again.checkpoint) == ([(0, 5)], Checkpoint(5, 1))
    else:
        assert (ids(again), again.checkpoint) == ([1, 2, 3, 4, 5], Checkpoint(5, 0))
    assert "its checksum is not the listed one" in caplog.text
    assert not ours.exists()


def test_removals_whose_file_is_lost_are_all_read_again(saved: SavedIndex) -> None:
    index = grown(empty(), 9)
    save(saved, index)
    save(saved, grown(index, 9, 2, removal=4))
    assert load(saved).checkpoint == Checkpoint(9, 4)
    [path] = saved.folder.path.glob("removed-*")
    path.write_bytes(b"\xff" * 100)
    assert load(saved).checkpoint == Checkpoint(9, 0)


def test_of_two_processes_the_second_goes_on_from_what_the_first_has_saved(saved: SavedIndex) -> None:
    other = SavedIndex(saved.folder, "store")
    first, second = grown(empty(), 5), grown(grown(empty(), 4), 8, 3, removal=1)
    save(saved, first)
    assert not other.is_current
    second.adopt(*other.read(second.segments))
    assert (ids(second), second.checkpoint) == ([1, 2, 4, 5, 6, 7, 8], Checkpoint(8, 0))
    save(other, second)
    assert ids(load(saved)) == [1, 2, 4, 5, 6, 7, 8]


def test_a_merge_whose_segments_were_replaced_meanwhile_is_thrown_away(saved: SavedIndex) -> None:
    index = grown(empty(), 5)
    merge = next_merge(index, 1, ALL, MANY)
    with saved.folder.locked():
        merged = saved.write(merge, lambda: False)
        assert index.replace(merge[0], merged)
        assert not index.replace(merge[0], merged)


def test_processes_that_are_killed_while_they_write_leave_one_file_at_most(saved: SavedIndex) -> None:
    index = grown(empty(), 5)
    save(saved, index)
    for number in (6, 7, 8):
        grown(index, number)
        with saved.folder.locked():
            killed = SavedIndex(saved.folder, "store")
            left = load(killed)
            left.apply(changes(5, number))
            killed.sweep(left)
            killed.write(next_merge(left, 1, ALL, MANY), lambda: False)  # and no commit
        assert len(files(saved.folder.path)) == 2
    save(saved, index)
    assert len(files(saved.folder.path)) == 2
    assert ids(load(saved)) == list(range(1, 9))
