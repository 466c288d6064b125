"""The outlines of documents: the ids of their blocks, as JSON that `blocks.outline` makes and reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ragmemory.stores.engine import Connection, StorePart


class StoredOutline(NamedTuple):
    """An outline, and the text that it is of."""

    document_id: str
    digest: bytes  # SHA-256 of the text
    blocks: str  # JSON


async def save(connection: Connection, outlines: Iterable[StoredOutline]) -> None:
    """Store outlines, except those of texts that are not the current ones."""
    await connection.executemany(
        "INSERT INTO outlines(document_id, digest, blocks) SELECT document_id, digest, ?3 FROM documents"
        " WHERE document_id = ?1 AND digest = ?2 AND hidden = 0"
        " ON CONFLICT(document_id) DO UPDATE SET digest = excluded.digest, blocks = excluded.blocks",
        outlines,
    )


class OutlineStore(StorePart):
    """The outlines of one memory."""

    async def find(self, document_ids: Sequence[str]) -> list[StoredOutline]:
        """The outlines of those of some documents that have one."""
        condition, parameters = self._engine.dialect.among("document_id", document_ids)
        rows = await self._engine.read(
            f"SELECT document_id, digest, blocks FROM outlines WHERE {condition}", parameters
        )
        return [StoredOutline(*row) for row in rows]

    async def save(self, new: Sequence[StoredOutline]) -> None:
        """Store outlines, except those of texts that are not the current ones."""
        async with self._engine.transaction() as connection:
            await save(connection, new)
