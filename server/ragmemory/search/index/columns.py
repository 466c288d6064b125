"""A file of arrays that is written once and then mapped, with a checksum for every block.

The file is MAGIC, the arrays one after another, the checksum of every BLOCK bytes so far, a JSON footer
(where each array lies, and facts about the whole), and a trailer that locates and checks both. The footer
comes last because a merge does not know the length of an array before it has written it.

Every block is checked before its first use, once per process. That costs nothing at start-up. The rest of a
large index is checked in the background (see `checking`).
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import sys
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from struct import Struct as Layout
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from ragmemory.search.index.errors import DamagedFile
from ragmemory.search.index.folder import MAGIC
from ragmemory.search.index.sorted_arrays import distinct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    # Advice to the system about a range of memory: see `man madvise`.
    Use = Literal["WILLNEED", "DONTNEED", "RANDOM"]

# Bytes that a checksum covers, and whose multiples arrays begin at. Smaller blocks make reading single rows
# faster, and opening the file slower.
BLOCK = 1 << 10
# Bytes of a checksum.
SUM_BYTES = 4
# Blocks that are checked at a time.
BLOCKS_AT_ONCE = 1 << 10
# Bytes that are written at a time.
WRITTEN_AT_ONCE = 1 << 20
# Bytes that are read from the disk where a block is checked.
READ_AHEAD = 1 << 14
# Up to this many ranges of rows are checked one by one: for so few, numpy is slower.
FEW = 32
# The length of the arrays and that of the footer, and the CRC-32 of the checksums and the footer.
TRAILER = Layout("<QII")
# Bytes after which a file is synced while it is written: syncing a large file at the end may take seconds
# during which the program cannot exit.
SYNCED = 1 << 25


class _ArrayLayout(Struct):
    """Where an array lies in the file."""

    offset: int
    dtype: str
    shape: list[int]


class _Footer(Struct):
    places: dict[str, _ArrayLayout]
    facts: dict[str, Any]


class ColumnWriter:
    """Writes one file; `finish` makes it durable. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self._places: dict[str, _ArrayLayout] = {}
        self._sums = bytearray()
        self._begun = b""  # of the block that is not yet complete
        self._size = 0
        self._write(memoryview(MAGIC))

    def add(self, name: str, parts: Iterable[NDArray[Any]]) -> None:
        """Append one array, given as one or more parts that are joined along their first axis."""
        self._fill()
        offset, rows, dtype, shape = self._size, 0, "", []
        for part in parts:
            rows, dtype, shape = rows + len(part), part.dtype.str, list(part.shape[1:])
            self._write(part.reshape(-1).view("u1").data)
        self._places[name] = _ArrayLayout(offset, dtype, [rows, *shape])

    def finish(self, facts: dict[str, Any]) -> int:
        """Write footer and checksums, and sync the file to the disk; return the checksum of all of it."""
        self._fill()
        end = self._size
        footer = msgspec.json.encode(_Footer(self._places, facts))
        tail = self._sums + footer
        checksum = zlib.crc32(tail)
        self._file.write(tail + TRAILER.pack(end, len(footer), checksum))
        self._sync()
        self.close()
        return checksum

    def close(self) -> None:
        """Close the file; without `finish` it is incomplete."""
        self._file.close()

    def _fill(self) -> None:
        """Complete the last block with zeros."""
        self._write(memoryview(bytes(-self._size % BLOCK)))

    def _write(self, data: memoryview) -> None:
        for start in range(0, len(data), WRITTEN_AT_ONCE):
            part = data[start : start + WRITTEN_AT_ONCE]
            self._file.write(part)
            begun = self._begun + part
            whole = len(begun) - len(begun) % BLOCK
            self._sums += checksums(_words(begun[:whole])).tobytes()
            self._begun = begun[whole:]
            self._size += len(part)
            if self._size // SYNCED > (self._size - len(part)) // SYNCED:
                self._sync()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def checksums(blocks: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """(b,) checksums of (b, w) blocks: multilinear hashing (Lemire and Kaser 2014), as fast as memory.

    CRC-32 takes three times as long, and numpy cannot compute it for many blocks at a time.
    """
    sums: NDArray[np.uint64] = np.vecdot(blocks, _factors())
    return (sums >> np.uint64(32)).astype("<u4")


@cache
def _factors() -> NDArray[np.uint64]:
    """(w,) random odd numbers, the same in every process."""
    return np.frombuffer(hashlib.shake_128(MAGIC).digest(BLOCK), "<u8") | np.uint64(1)


def _words(data: bytes | memoryview) -> NDArray[np.uint64]:
    """(b, w) the words of some whole blocks."""
    return np.frombuffer(data, "<u8").reshape(-1, BLOCK // 8)


class _Checks:
    """The blocks of one file, and which of them have been checked."""

    def __init__(self, path: Path, mapping: mmap.mmap, end: int, sums: bytes) -> None:
        self._path = path
        self._mapping = mapping
        self._blocks = _words(memoryview(mapping)[:end])
        self._sums = np.frombuffer(sums, "<u4")
        self._checked = bytearray(len(self._sums))
        self._complete = 0  # how many of the first blocks `check_more` has checked
        self._was_read = np.zeros(-(-end // READ_AHEAD), np.bool_)

    @property
    def is_complete(self) -> bool:
        """Whether every block has been checked."""
        return self._complete == len(self._sums)

    def check_more(self) -> bool:
        """Check the next BLOCKS_AT_ONCE, from the first on; False if none are left. Raises DamagedFile."""
        if self.is_complete:
            return False
        start, stop = self._complete, min(self._complete + BLOCKS_AT_ONCE, len(self._sums))
        self.advise("WILLNEED", start * BLOCK, stop * BLOCK)
        self._check_at(slice(start, stop))
        self._complete = stop
        return True

    def check(self, start: int, end: int, unit: int) -> None:
        """Check the units that hold a range of bytes; a unit is some BLOCKs. Raises DamagedFile."""
        if not self._is_checked(start, end):
            self.check_each(np.array([start]), np.array([end]), unit)

    def check_each(self, starts: NDArray[np.int64], ends: NDArray[np.int64], unit: int) -> None:
        """The same for several non-empty ranges."""
        if len(starts) <= FEW and all(map(self._is_checked, starts.tolist(), ends.tolist())):
            return
        checked = np.frombuffer(self._checked, np.uint8)
        firsts, lasts = starts // BLOCK, (ends - 1) // BLOCK
        # Most ranges lie in one block or two; only longer ones need a look at every block between.
        unsure = np.flatnonzero((checked[firsts] & checked[lasts] == 0) | (lasts > firsts + 1))
        if len(unsure):
            blocks = unit // BLOCK
            firsts = firsts[unsure] // blocks * blocks
            counts = np.minimum((lasts[unsure] // blocks + 1) * blocks, len(checked)) - firsts
            before = np.cumsum(counts) - counts
            self._check_blocks(np.repeat(firsts - before, counts) + np.arange(counts.sum()))

    def _is_checked(self, start: int, end: int) -> bool:
        return self._checked.find(0, start // BLOCK, -(-end // BLOCK)) < 0

    def advise(self, use: Use, start: int, end: int) -> None:
        """Tell the system how a range of the file will be used, if it wants to know."""
        if sys.platform != "win32":  # It has no such call.
            start -= start % mmap.PAGESIZE
            with suppress(OSError):
                self._mapping.madvise(getattr(mmap, f"MADV_{use}"), start, end - start)

    def _check_blocks(self, blocks: NDArray[np.int64]) -> None:
        checked = np.frombuffer(self._checked, np.uint8)
        unchecked = blocks[checked[blocks] == 0]
        if not len(unchecked):
            return
        unchecked = distinct(unchecked)
        self._read_ahead(unchecked)
        for start in range(0, len(unchecked), BLOCKS_AT_ONCE):
            part = unchecked[start : start + BLOCKS_AT_ONCE]
            is_range = part[-1] - part[0] + 1 == len(part)  # Then nothing is copied.
            self._check_at(slice(part[0], part[-1] + 1) if is_range else part)

    def _check_at(self, blocks: slice | NDArray[np.int64]) -> None:
        is_wrong = checksums(self._blocks[blocks]) != self._sums[blocks]
        if is_wrong.any():
            at = np.arange(len(self._sums))[blocks][is_wrong][0] * BLOCK
            raise DamagedFile(self._path, f"the bytes from {at:,} on fail their checksum")
        np.frombuffer(self._checked, np.uint8)[blocks] = 1

    def _read_ahead(self, blocks: NDArray[np.int64]) -> None:
        """Begin to read what lies around some blocks: a disk reads many ranges at a time."""
        ranges = blocks // (READ_AHEAD // BLOCK)
        fresh = ranges[~self._was_read[ranges]]
        if len(fresh):
            self._was_read[fresh] = True
            for start in (distinct(fresh) * READ_AHEAD).tolist():
                self.advise("WILLNEED", start, min(start + READ_AHEAD, self._blocks.nbytes))


class Column:
    """An array in memory or in a file. Every access to a file checks what it returns: DamagedFile."""

    def __init__(self, array: NDArray[Any], checks: _Checks | None = None, offset: int = 0) -> None:
        self._array = array
        self._checks = checks
        self._offset = offset
        self._row_bytes = array.itemsize * math.prod(array.shape[1:])
        self._unit = READ_AHEAD  # bytes that are checked at least

    def __len__(self) -> int:
        return len(self._array)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._array.dtype

    @property
    def all(self) -> NDArray[Any]:
        """The whole array."""
        return self.slice(0, len(self._array))

    def slice(self, start: int, stop: int) -> NDArray[Any]:
        """A view of the rows from `start` to `stop`."""
        if self._checks is not None and start < stop:
            size = self._row_bytes
            self._checks.check(self._offset + start * size, self._offset + stop * size, self._unit)
        return self._array[start:stop]

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Copies of some rows, in the order of `rows`."""
        self._check_each(rows, rows + 1)
        return self._array.take(rows, axis=0)

    def slices(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Views of several ranges of rows."""
        filled = starts < stops
        self._check_each(starts[filled], stops[filled])
        return [self._array[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]

    def find(self, values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(v,) the insertion index of each value, clipped to the array; (v,) whether the value is there.

        The array ascends and is not empty. Only the neighbours of each index are checked. That suffices: a
        binary search ends between two neighbours that it has compared.
        """
        at = self._array.searchsorted(values)
        place = np.minimum(at, len(self._array) - 1)
        self._check_each(np.maximum(at - 1, 0), place + 1)
        return place, self._array[place] == values

    def forget(self) -> None:
        """Free the memory of the mapped pages; the column stays readable."""
        self._advise("DONTNEED")

    def check_more(self) -> bool:
        """Check a part of the whole file; False if nothing is left to check. Raises DamagedFile."""
        return self._checks is not None and self._checks.check_more()

    def expect_single_rows(self) -> None:
        """Read and check few bytes around a row: by default the system reads up to megabytes."""
        self._unit = BLOCK
        self._advise("RANDOM")

    def _advise(self, use: Use) -> None:
        if self._checks is not None and len(self):
            self._checks.advise(use, self._offset, self._offset + self._array.nbytes)

    def _check_each(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> None:
        if self._checks is not None and not self._checks.is_complete and len(starts):
            size = self._row_bytes
            self._checks.check_each(self._offset + starts * size, self._offset + stops * size, self._unit)


class Opened(NamedTuple):
    columns: dict[str, Column]
    facts: dict[str, Any]
    checksum: int  # of the checksums of all blocks and the footer: of the whole file


def open_columns(path: Path) -> Opened:
    """Map a file. Raises OSError, DamagedFile."""
    if path.exists() and not path.is_file():
        raise DamagedFile(path, "it is not a regular file")
    # Not through the mapping, for which the system would read up to megabytes ahead.
    with path.open("rb") as file:
        trailer = os.fstat(file.fileno()).st_size - TRAILER.size
        if trailer < len(MAGIC):
            raise DamagedFile(path, "it is incomplete")
        magic = file.read(len(MAGIC))
        file.seek(trailer)
        end, footer_bytes, checksum = TRAILER.unpack(file.read(TRAILER.size))
        sums_bytes = end // BLOCK * SUM_BYTES
        is_whole = magic == MAGIC and end + sums_bytes + footer_bytes == trailer
        if is_whole:
            file.seek(end)
            sums, encoded = file.read(sums_bytes), file.read(footer_bytes)
            is_whole = zlib.crc32(encoded, zlib.crc32(sums)) == checksum
        if not is_whole:
            raise DamagedFile(path, "its footer fails its checksum")
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    footer = msgspec.json.decode(encoded, type=_Footer)
    checks = _Checks(path, mapping, end, sums)
    columns = {}
    for name, place in footer.places.items():
        array = np.frombuffer(mapping, place.dtype, math.prod(place.shape), place.offset)
        columns[name] = Column(array.reshape(place.shape), checks, place.offset)
    return Opened(columns, footer.facts, checksum)
