from __future__ import annotations

from pathlib import Path

import pytest

from ragmemory.search.index.checking import Checking
from ragmemory.search.index.columns import BLOCK
from ragmemory.search.index.errors import DamagedFile
from ragmemory.search.index.rows import Rows
from ragmemory.search.index.segments import Segment
from tests.server.search.index.test_segments import segment

# Their segment takes some 30 blocks.
TEXTS = [[f"word{number % 7}", f"rare{number}"] for number in range(400)]


@pytest.fixture(autouse=True)
def of_a_large_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every index counts as large, and a part of the checks is one block at least."""
    monkeypatch.setattr("ragmemory.search.index.checking.ALL_EXACT", 0)
    monkeypatch.setattr("ragmemory.search.index.columns.BLOCKS_AT_ONCE", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Segment.write(tmp_path / "segment", [segment(1, TEXTS)], [None], lambda: False)
    return tmp_path / "segment"


def check_all(checking: Checking, path: Path) -> None:
    """As searches in a row do: each ends the part that was begun after the one before it."""
    for _ in range(path.stat().st_size // BLOCK + 2):
        checking.begin()
        checking.end()


def test_searches_in_a_row_end_each_part_and_all_is_checked_in_the_end(path: Path) -> None:
    whole, in_memory = Segment.open(path), segment(401, TEXTS)
    check_all(Checking(Rows([whole, in_memory])), path)
    assert not whole.chunk_ids.check_more()


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9])
def test_damage_where_no_search_has_read_is_reported_by_the_next_one(path: Path, share: float) -> None:
    data = bytearray(path.read_bytes())
    data[BLOCK + int(share * len(data) * 0.9)] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedFile, match="fail their checksum"):
        check_all(Checking(Rows([Segment.open(path)])), path)


def test_files_that_are_checked_as_a_whole_are_read_as_before(path: Path) -> None:
    checked, unchecked = Segment.open(path), Segment.open(path)
    while checked.chunk_ids.check_more():
        pass
    for name in ("chunk_ids", "vectors", "words"):
        assert getattr(checked, name).all.tolist() == getattr(unchecked, name).all.tolist()
