"""The files and folders that memory is kept in step with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from ragcommon.contract.files import Source, SyncOutcome
from ragmemory.stores.documents import UNDER, range_under
from ragmemory.stores.engine import StorePart
from ragmemory.stores.journal import iso


class SourceStore(StorePart):
    """The sources of one memory."""

    async def listed(self) -> list[Source]:
        """All sources by uri, with the numbers of their documents."""
        sources = []
        async with self._engine.reading() as connection:
            rows = await connection.execute_fetchall(
                "SELECT uri, added_at, synced_at, outcome FROM sources ORDER BY uri"
            )
            for uri, added_at, synced_at, outcome in rows:
                [(documents,)] = await connection.execute_fetchall(
                    f"SELECT count(*) FROM documents WHERE {UNDER}", range_under(uri)
                )
                last = msgspec.json.decode(outcome, type=SyncOutcome | None)
                sources.append(Source(uri, added_at, synced_at, documents, last))
        return sources

    async def change(self, added: str | None, removed: Sequence[str]) -> None:
        """Add a source, unless it is one already, and remove others. Their documents stay."""
        async with self._engine.transaction() as connection:
            if added is not None:
                await connection.execute(
                    "INSERT INTO sources(uri, added_at) VALUES(?, ?) ON CONFLICT(uri) DO NOTHING",
                    [added, iso(datetime.now(UTC))],
                )
            await connection.executemany("DELETE FROM sources WHERE uri = ?", ([uri] for uri in removed))

    async def note_sync(self, outcomes: Mapping[str, SyncOutcome]) -> None:
        """Record the outcomes of a sync, by uri, of those that are sources."""
        at = iso(datetime.now(UTC))
        rows = ((at, msgspec.json.encode(outcome).decode(), uri) for uri, outcome in outcomes.items())
        async with self._engine.transaction() as connection:
            await connection.executemany("UPDATE sources SET synced_at = ?, outcome = ? WHERE uri = ?", rows)
