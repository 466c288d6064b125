"""The outlines of documents: the ids of their blocks, as JSON that `blocks.outline` makes and reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ragmemory.stores.file import StorePart

if TYPE_CHECKING:
    import aiosqlite


class StoredOutline(NamedTuple):
    """An outline, and the text that it is of."""

    document_id: str
    digest: bytes  # SHA-256 of the text
    blocks: str  # JSON


async def save(connection: aiosqlite.Connection, outlines: Iterable[StoredOutline]) -> None:
    """Store outlines, except those of texts that are not the current ones."""
    await connection.executemany(
        "INSERT OR REPLACE INTO outlines SELECT ?1, ?2, ?3 FROM documents"
        " WHERE document_id = ?1 AND digest = ?2 AND hidden = 0",
        outlines,
    )


class OutlineStore(StorePart):
    """The outlines of one memory."""

    async def find(self, document_ids: Sequence[str]) -> list[StoredOutline]:
        """The outlines of those of some documents that have one."""
        rows = await self._file.read(
            "SELECT document_id, digest, blocks FROM outlines"
            " WHERE document_id IN (SELECT value FROM json_each(?))",
            [msgspec.json.encode(document_ids).decode()],
        )
        return [StoredOutline(*row) for row in rows]

    async def save(self, new: Sequence[StoredOutline]) -> None:
        """Store outlines, except those of texts that are not the current ones."""
        async with self._file.transaction() as connection:
            await save(connection, new)
