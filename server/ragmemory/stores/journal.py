"""The journal: one entry for each write to a document, with the client and the data that undo needs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from ragmemory.errors import UndoConflict
from ragmemory.types import Entry, Origin

if TYPE_CHECKING:
    import sqlite3

    import aiosqlite

_COLUMNS = "seq, at, action, document_id, uri, client, session, undone"
# A write that can still be undone. An undo is recorded as "restored" and cannot be undone itself. This is the
# condition of the index journal_undoable, so that SQLite uses it.
_UNDOABLE = "undone = 0 AND action <> 'restored'"
_NO_UNDO_DATA = "before_text = NULL, before_metadata = NULL, before_added_at = NULL, before_document = NULL"


class UndoData(NamedTuple):
    """A document as it was before a write, in its stored form."""

    text: str
    metadata: str  # JSON
    added_at: str  # ISO 8601, UTC
    document: int | None = None  # the hidden document whose chunks hold the text; then `text` is ""


class NewEntry(NamedTuple):
    """An entry to be recorded."""

    action: str
    document_id: str
    uri: str
    origin: Origin
    before: UndoData | None  # None: the document did not exist, or the entry is an undo
    undoes: int | None = None


async def record(
    connection: aiosqlite.Connection, new: Iterable[NewEntry], at: datetime, undo_depth: int
) -> None:
    """Append entries, mark those they undo, and drop the texts beyond `undo_depth`. Raises UndoConflict.

    The depth counts writes that are not undone: neither an undo nor an undone write counts.
    """
    new = list(new)
    for entry in new:
        if entry.undoes is not None:
            await mark_undone(connection, entry.undoes)
    rows = [
        (iso(at), entry.action, entry.document_id, entry.uri, entry.origin.client, entry.origin.session)
        + (entry.before or (None, None, None, None))
        for entry in new
    ]
    await connection.executemany(
        "INSERT INTO journal(at, action, document_id, uri, client, session,"
        " before_text, before_metadata, before_added_at, before_document)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    await connection.execute(
        f"UPDATE journal SET {_NO_UNDO_DATA} WHERE before_text IS NOT NULL"
        f" AND seq <= (SELECT seq FROM journal WHERE {_UNDOABLE} ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        [undo_depth],
    )


async def mark_undone(connection: aiosqlite.Connection, seq: int) -> None:
    """Mark an entry as undone and drop its text. Raises UndoConflict."""
    if not await is_last_write(connection, seq):
        raise UndoConflict(seq)
    await connection.execute(f"UPDATE journal SET undone = 1, {_NO_UNDO_DATA} WHERE seq = ?", [seq])


async def is_last_write(connection: aiosqlite.Connection, seq: int) -> bool:
    """Whether this is still the entry that the next undo would undo."""
    last = await last_write(connection)
    return last is not None and last[0].seq == seq


async def entries(connection: aiosqlite.Connection, limit: int) -> list[Entry]:
    """The newest entries, newest first."""
    rows = await connection.execute_fetchall(
        f"SELECT {_COLUMNS} FROM journal ORDER BY seq DESC LIMIT ?", [limit]
    )
    return [_entry(row) for row in rows]


async def last_write(connection: aiosqlite.Connection) -> tuple[Entry, UndoData | None] | None:
    """The newest write that is neither undone nor an undo, and the document before it.

    The document is None if the action is "added", or if its text is no longer kept.
    """
    rows = await connection.execute_fetchall(
        f"SELECT {_COLUMNS}, before_text, before_metadata, before_added_at, before_document FROM journal"
        f" WHERE {_UNDOABLE} ORDER BY seq DESC LIMIT 1",
    )
    found = [(_entry(row), None if row[8] is None else UndoData(*row[8:])) for row in rows]
    return found[0] if found else None


async def last(connection: aiosqlite.Connection) -> tuple[int, str]:
    """Number and time of the newest entry; 0 and "" before the first."""
    rows = await connection.execute_fetchall("SELECT seq, at FROM journal ORDER BY seq DESC LIMIT 1")
    return next(((row[0], row[1]) for row in rows), (0, ""))


async def holds(connection: aiosqlite.Connection, seq: int, at: str) -> bool:
    """Whether there is such an entry."""
    return bool(
        await connection.execute_fetchall("SELECT 1 FROM journal WHERE (seq, at) = (?, ?)", [seq, at])
    )


def _entry(row: sqlite3.Row) -> Entry:
    seq, at, action, document_id, uri, client, session, undone = row[:8]
    return Entry(seq, at, action, document_id, uri, Origin(client, session), bool(undone))


def iso(moment: datetime) -> str:
    """ISO 8601 with milliseconds, as it is stored and displayed."""
    return moment.isoformat(timespec="milliseconds")
