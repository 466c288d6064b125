"""The files and folders that memory is kept in step with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ragmemory.stores.ingestions import UNDER, range_under
from ragmemory.types import Source, SyncOutcome

if TYPE_CHECKING:
    import aiosqlite


async def listed(connection: aiosqlite.Connection) -> list[Source]:
    """All sources by uri, with the numbers of their documents."""
    rows = await connection.execute_fetchall(
        "SELECT uri, added_at, synced_at, outcome FROM sources ORDER BY uri"
    )
    sources = []
    for uri, added_at, synced_at, outcome in rows:
        [(documents,)] = await connection.execute_fetchall(
            f"SELECT count(*) FROM documents WHERE {UNDER}", range_under(uri)
        )
        last = msgspec.json.decode(outcome, type=SyncOutcome | None)
        sources.append(Source(uri, added_at, synced_at, documents, last))
    return sources


async def add(connection: aiosqlite.Connection, uri: str, at: str) -> None:
    """Add a source, unless it is one already."""
    await connection.execute("INSERT OR IGNORE INTO sources(uri, added_at) VALUES(?, ?)", [uri, at])


async def remove(connection: aiosqlite.Connection, uris: Sequence[str]) -> None:
    """Remove sources. Their documents stay."""
    await connection.executemany("DELETE FROM sources WHERE uri = ?", ([uri] for uri in uris))


async def note_sync(connection: aiosqlite.Connection, outcomes: Mapping[str, SyncOutcome], at: str) -> None:
    """Record the outcomes of a sync, by uri, of those that are sources."""
    rows = ((at, msgspec.json.encode(outcome).decode(), uri) for uri, outcome in outcomes.items())
    await connection.executemany("UPDATE sources SET synced_at = ?, outcome = ? WHERE uri = ?", rows)
