from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ragmemory.search.index.columns import BLOCK, FEW, READ_AHEAD, Column, ColumnWriter, open_columns
from ragmemory.search.index.errors import DamagedFile

Arrays = dict[str, NDArray[Any]]

# Numbers in an array that is longer than what is checked at a time.
LONG = 3 * READ_AHEAD // 8


def write(path: Path) -> Arrays:
    numbers: Arrays = {
        "long": np.arange(LONG, dtype=np.int64),
        "wide": np.arange(4_000, dtype=np.float32).reshape(-1, 8),
        "none": np.empty(0, np.uint16),
    }
    writer = ColumnWriter(path)
    for name, array in numbers.items():
        writer.add(name, np.array_split(array, 3))
    writer.finish({"fact": 7})
    return numbers


def test_what_was_written_in_parts_is_read_as_a_whole(tmp_path: Path) -> None:
    numbers = write(tmp_path / "file")
    columns, facts, _ = open_columns(tmp_path / "file")
    assert facts == {"fact": 7}
    for name, array in numbers.items():
        assert np.array_equal(columns[name].all, array)
        assert (columns[name].dtype, len(columns[name])) == (array.dtype, len(array))
    assert columns["wide"].slice(3, 5).tolist() == numbers["wide"][3:5].tolist()
    assert columns["long"].take(np.array([5, 0])).tolist() == [5, 0]


def test_a_file_is_never_written_over(tmp_path: Path) -> None:
    write(tmp_path / "file")
    with pytest.raises(FileExistsError):
        ColumnWriter(tmp_path / "file")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("columns") / "whole"
    write(path)
    return path


def read(path: Path) -> Arrays | None:
    """Everything in a file; None where it is damaged."""
    try:
        columns, _, _ = open_columns(path)
        by_row = {name: column.take(np.arange(len(column))) for name, column in columns.items()}
        assert all(np.array_equal(columns[name].all, array) for name, array in by_row.items())
    except DamagedFile:
        return None
    return by_row


@given(at=st.floats(0, 1, exclude_max=True), size=st.integers(1, 64), byte=st.integers(0, 255))
def test_damage_is_never_read(whole: Path, at: float, size: int, byte: int) -> None:
    data = bytearray(whole.read_bytes())
    start = int(at * len(data))
    data[start : start + size] = bytes([byte]) * len(data[start : start + size])
    path = whole.with_name("damaged")
    path.write_bytes(data)
    found, expected = read(path), read(whole)
    assert expected is not None
    if found is None:
        assert data != whole.read_bytes()
    else:
        assert all(np.array_equal(found[name], array) for name, array in expected.items())


@pytest.mark.parametrize("keep", [0, 5, 20, 100, BLOCK, -1])
def test_a_file_that_was_cut_off_is_damaged(whole: Path, keep: int) -> None:
    path = whole.with_name("cut")
    path.write_bytes(whole.read_bytes()[:keep])
    with pytest.raises(DamagedFile):
        open_columns(path)


def test_what_is_beside_the_damage_can_be_read(whole: Path) -> None:
    data = bytearray(whole.read_bytes())
    data[2 * READ_AHEAD] ^= 1
    path = whole.with_name("beside")
    path.write_bytes(data)
    column = open_columns(path)[0]["long"]
    assert column.slice(0, 100).tolist() == list(range(100))
    with pytest.raises(DamagedFile, match=f"from {2 * READ_AHEAD:,} on"):
        column.all  # noqa: B018


@given(
    at=st.integers(0, 10 * BLOCK - 1),
    size=st.integers(1, 3 * BLOCK),
    byte=st.integers(0, 255),
    sought=st.lists(st.integers(-10, 50_000), min_size=1, max_size=5),
)
def test_a_value_is_found_in_its_place_or_the_damage_is_noticed(
    whole: Path, at: int, size: int, byte: int, sought: list[int]
) -> None:
    data = bytearray(whole.read_bytes())
    size = min(size, 10 * BLOCK - at)
    data[at : at + size] = bytes([byte]) * size
    path = whole.with_name("searched")
    path.write_bytes(data)
    numbers = np.arange(len(open_columns(whole)[0]["long"]))
    values = np.array(sought, np.int64)
    with suppress(DamagedFile):
        places, is_there = open_columns(path)[0]["long"].find(values)
        assert is_there.tolist() == np.isin(values, numbers).tolist()
        assert places.tolist() == np.clip(values, 0, len(numbers) - 1).tolist()


@given(
    starts=st.lists(st.integers(0, LONG - 1), min_size=1, max_size=2 * FEW, unique=True),
    harmed=st.integers(0, 2 * FEW),
    offset=st.integers(0, READ_AHEAD // 8),
    is_single=st.booleans(),
)
def test_damage_of_one_range_of_several_is_noticed(
    whole: Path, starts: list[int], harmed: int, offset: int, is_single: bool
) -> None:
    data = bytearray(whole.read_bytes())
    number = min(starts[harmed % len(starts)] + offset, LONG - 1)
    data[BLOCK + 8 * number] ^= 1  # The array begins at the second block.
    path = whole.with_name("ranges")
    path.write_bytes(data)
    column = open_columns(path)[0]["long"]
    if is_single:
        column.expect_single_rows()
    first = np.array(sorted(starts), np.int64)
    with suppress(DamagedFile):
        column.take(first[:1])  # From now on a part is checked.
    with pytest.raises(DamagedFile):
        column.slices(first, np.minimum(first + offset + 1, LONG))


def test_an_array_in_memory_needs_no_checks() -> None:
    column = Column(np.arange(6).reshape(3, 2))
    assert column.take(np.array([2, 0])).tolist() == [[4, 5], [0, 1]]
    assert column.slice(1, 2).tolist() == [[2, 3]]
