"""A file of arrays that is written once and then mapped, with a checksum for every block.

The file is MAGIC, the arrays one after another, a JSON footer (where each array lies, and facts about the
whole), the CRC-32 of every BLOCK bytes before the footer, and a trailer that locates and checks the footer.
The footer comes last because a merge does not know the length of an array before it has written it.

Every block is checked before its first use. That costs nothing at start-up, and a query only the blocks that
it touches: 5 µs for each 16 KiB, once per process.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from struct import Struct as Layout
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import numpy as np
    from numpy.typing import NDArray

    # Advice to the system about a range of memory: see `man madvise`.
    Use = Literal["WILLNEED", "DONTNEED", "RANDOM"]

# The first bytes of every file: a file without them is not an index file. The digit is the format.
MAGIC = b"RAGINDX1"
# Bytes that a checksum covers. Smaller blocks make reading single rows faster, and take more space.
BLOCK = 1 << 14
# Bytes that are read from the disk where a block is checked.
READ_AHEAD = 1 << 16
# Arrays begin at multiples of this, so that numpy maps them without copying.
ALIGNMENT = 64
# The offset and length of the footer, and the CRC-32 of the footer and the block checksums.
TRAILER = Layout("<QII")


# Bytes after which a file is synced while it is written: the disk may take seconds for a whole large file, in
# which a program that is to end could not stop.
SYNCED = 1 << 25


class DamagedFile(Exception):
    """A file does not hold what was written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path} is damaged: {self.reason}."


class _Place(Struct):
    """Where an array lies in the file."""

    offset: int
    dtype: str
    shape: list[int]

    @property
    def bytes(self) -> int:
        import numpy as np

        return np.dtype(self.dtype).itemsize * math.prod(self.shape)


class _Footer(Struct):
    places: dict[str, _Place]
    facts: dict[str, Any]


class ColumnWriter:
    """Writes one file; `finish` makes it durable. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self._places: dict[str, _Place] = {}
        self._sums: list[int] = []
        self._sum = 0
        self._size = 0
        self._write(MAGIC)

    def add(self, name: str, parts: Iterable[NDArray[Any]]) -> None:
        """Append one array, given as one or more parts that are joined along their first axis."""
        self._write(bytes(-self._size % ALIGNMENT))
        offset, rows, dtype, shape = self._size, 0, "", []
        for part in parts:
            rows, dtype, shape = rows + len(part), part.dtype.str, list(part.shape[1:])
            self._write(part.reshape(-1).view("u1").data)
        self._places[name] = _Place(offset, dtype, [rows, *shape])

    def finish(self, facts: dict[str, Any]) -> None:
        """Write footer and checksums, and sync the file to the disk."""
        if self._size % BLOCK:
            self._sums.append(self._sum)
        end = self._size
        footer = msgspec.json.encode(_Footer(self._places, facts))
        tail = footer + b"".join(value.to_bytes(4, "little") for value in self._sums)
        self._file.write(tail + TRAILER.pack(end, len(footer), zlib.crc32(tail)))
        self._sync()
        self.close()

    def close(self) -> None:
        """Close the file; without `finish` it is incomplete."""
        self._file.close()

    def _write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        view = memoryview(data)
        while view:
            part = view[: BLOCK - self._size % BLOCK]
            self._sum = zlib.crc32(part, self._sum)
            self._size += len(part)
            view = view[len(part) :]
            if self._size % BLOCK == 0:
                self._sums.append(self._sum)
                self._sum = 0
            if self._size % SYNCED == 0:
                self._sync()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


class _Checks:
    """The blocks of one file, and which of them have been checked."""

    def __init__(self, path: Path, mapping: mmap.mmap, end: int, sums: bytes) -> None:
        import numpy as np

        self._path = path
        self._mapping = mapping
        self._data = memoryview(mapping)[:end]
        self._sums = np.frombuffer(sums, "<u4")
        self._checked = bytearray(len(self._sums))

    def check(self, start: int, end: int) -> None:
        """Check the blocks of one range of bytes. Raises DamagedFile."""
        self._check_blocks([(start // BLOCK, -(-end // BLOCK))])

    def check_each(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        """Check the blocks of several non-empty ranges. Raises DamagedFile."""
        import numpy as np

        checked = np.frombuffer(self._checked, np.uint8)
        first, last = starts // BLOCK, (ends - 1) // BLOCK
        # Most ranges lie in one block or two; only longer ones need a look at every block between.
        unsure = np.flatnonzero((checked[first] & checked[last] == 0) | (last > first + 1))
        self._check_blocks({*zip(first[unsure].tolist(), (last[unsure] + 1).tolist(), strict=True)})

    def advise(self, use: Use, start: int, end: int) -> None:
        """Tell the system how a range of the file will be used, if it wants to know."""
        if sys.platform != "win32":  # It has no such call.
            start -= start % mmap.PAGESIZE
            with suppress(OSError):
                self._mapping.madvise(getattr(mmap, f"MADV_{use}"), start, end - start)

    def _check_blocks(self, ranges: Collection[tuple[int, int]]) -> None:
        unchecked = [
            (first, end) for begin, end in ranges if (first := self._checked.find(0, begin, end)) >= 0
        ]
        for first, end in unchecked:  # Before the first is read: a disk reads many ranges at a time.
            self.advise("WILLNEED", first * BLOCK, max(end * BLOCK, first * BLOCK + READ_AHEAD))
        for block, end in unchecked:
            while block >= 0:
                at = block * BLOCK
                if zlib.crc32(self._data[at : at + BLOCK]) != self._sums[block]:
                    raise DamagedFile(self._path, f"the bytes from {at:,} on are not those written")
                self._checked[block] = 1
                block = self._checked.find(0, block + 1, end)


class Column:
    """An array in memory or in a file. Every access to a file checks what it returns: DamagedFile."""

    def __init__(self, array: NDArray[Any], checks: _Checks | None = None, offset: int = 0) -> None:
        self._array = array
        self._checks = checks
        self._offset = offset
        self._row_bytes = array.itemsize * math.prod(array.shape[1:])

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
            self._checks.check(self._offset + start * self._row_bytes, self._offset + stop * self._row_bytes)
        return self._array[start:stop]

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Copies of some rows, in the order of `rows`."""
        self._check_each(rows, rows + 1)
        return self._array.take(rows, axis=0)

    def take_ranges(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[Any]:
        """Copies of several ranges of rows, one after the other."""
        import numpy as np

        filled = np.flatnonzero(stops > starts)
        self._check_each(starts[filled], stops[filled])
        ranges = zip(starts.tolist(), stops.tolist(), strict=True)
        return np.concatenate([self._array[:0], *(self._array[start:stop] for start, stop in ranges)])

    def find(self, values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(v,) where each value is in this array, or else would follow; (v,) whether it is there.

        The array ascends and is not empty. Only what is beside these places is checked. That suffices: a
        binary search ends between two neighbours that it has compared, whatever has led it there.
        """
        import numpy as np

        at = self._array.searchsorted(values)
        place = np.minimum(at, len(self._array) - 1)
        self._check_each(np.maximum(at - 1, 0), place + 1)
        return place, self._array[place] == values

    def forget(self) -> None:
        """Free the memory that reading all of it has taken; it may still be read."""
        self._advise("DONTNEED")

    def expect_single_rows(self) -> None:
        """Read no more of the file than is used: the system would read up to megabytes around each row."""
        self._advise("RANDOM")

    def _advise(self, use: Use) -> None:
        if self._checks is not None and len(self):
            self._checks.advise(use, self._offset, self._offset + self._array.nbytes)

    def _check_each(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> None:
        if self._checks is not None and len(starts):
            size = self._row_bytes
            self._checks.check_each(self._offset + starts * size, self._offset + stops * size)


def open_columns(path: Path) -> tuple[dict[str, Column], dict[str, Any]]:
    """Map a file: its arrays by name, and its facts. Raises OSError, DamagedFile."""
    import numpy as np

    if path.exists() and not path.is_file():
        raise DamagedFile(path, "it is not a regular file")
    # Not through the mapping: the system would read up to megabytes around what it is asked for.
    with path.open("rb") as file:
        trailer = os.fstat(file.fileno()).st_size - TRAILER.size
        if trailer < len(MAGIC):
            raise DamagedFile(path, "it is incomplete")
        magic = file.read(len(MAGIC))
        file.seek(trailer)
        end, footer_bytes, checksum = TRAILER.unpack(file.read(TRAILER.size))
        blocks = -(-end // BLOCK)
        is_whole = end + footer_bytes + 4 * blocks == trailer  # A checksum has 4 bytes.
        file.seek(end if is_whole else trailer)
        tail = file.read(trailer - file.tell())
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if magic != MAGIC or not is_whole or zlib.crc32(tail) != checksum:
        raise DamagedFile(path, "its footer is not the one written")
    footer = msgspec.json.decode(tail[:footer_bytes], type=_Footer)
    checks = _Checks(path, mapping, end, tail[footer_bytes:])
    data, columns = memoryview(mapping), {}
    for name, place in footer.places.items():
        array = np.frombuffer(data[place.offset : place.offset + place.bytes], place.dtype)
        columns[name] = Column(array.reshape(place.shape), checks, place.offset)
    return columns, footer.facts
