"""Saved indexes in the database, which one machine publishes so that others need not build them.

There is one for each format of the files: during an upgrade, programs of two releases use the memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec

from ragmemory.stores.engine import StorePart
from ragmemory.stores.leases import renew

# Bytes of a part, and parts that are read at a time.
PART_BYTES = 1 << 20
_PARTS = 8
# The lease of the process that publishes.
LEASE = "published index"


class Published(NamedTuple):
    """A published index."""

    fingerprint: str
    chunk_id: int  # of its checkpoint
    manifest: bytes
    sizes: dict[str, int]  # the bytes of its files, by name


class PublishedStore(StorePart):
    """The published indexes of one memory. `form` is the format of the files."""

    async def find(self, form: int) -> Published | None:
        """The index with this format."""
        rows = await self._engine.read(
            "SELECT fingerprint, chunk_id, manifest, sizes FROM published_indexes WHERE form = ?", [form]
        )
        for fingerprint, chunk_id, manifest, sizes in rows:
            return Published(fingerprint, chunk_id, manifest, msgspec.json.decode(sizes, type=dict[str, int]))
        return None

    async def read(self, form: int, file: str) -> AsyncIterator[bytes]:
        """A file in parts; it ends early if the file is removed meanwhile."""
        after = -1
        while rows := await self._engine.read(
            "SELECT part, data FROM published_files WHERE form = ? AND file = ? AND part > ?"
            " ORDER BY part LIMIT ?",
            [form, file, after, _PARTS],
        ):
            for _, data in rows:
                yield data
            after = rows[-1][0]

    async def add(self, form: int, file: str, part: int, data: bytes, holder: str) -> bool:
        """Add a part of a file, which is not used before `publish`. An earlier one is replaced.

        False if the lease of the holder has ended.
        """
        async with self._engine.transaction(ordered=False) as connection:
            if not await renew(connection, LEASE, holder):
                return False
            await connection.execute(
                "INSERT INTO published_files(form, file, part, data) VALUES(?, ?, ?, ?)"
                " ON CONFLICT(form, file, part) DO UPDATE SET data = excluded.data",
                [form, file, part, data],
            )
            return True

    async def publish(self, form: int, index: Published, holder: str) -> bool:
        """Put an index in the place of that of this format; False if another process publishes by now.

        Other files of this format, and indexes of formats before the previous one, are removed.
        """
        async with self._engine.transaction(ordered=False) as connection:
            if not await renew(connection, LEASE, holder):
                return False
            await connection.execute(
                "DELETE FROM published_indexes WHERE form = ? OR form < ?", [form, form - 1]
            )
            await connection.execute(
                "INSERT INTO published_indexes(form, fingerprint, chunk_id, manifest, sizes)"
                " VALUES(?, ?, ?, ?, ?)",
                [form, *index[:3], msgspec.json.encode(index.sizes).decode()],
            )
            condition, parameters = connection.dialect.among("file", list(index.sizes))
            await connection.execute(
                f"DELETE FROM published_files WHERE form < ? OR form = ? AND NOT {condition}",
                [form - 1, form, *parameters],
            )
            return True
