"""The journal: one row for every document written, by whom, and what undo needs to put back."""

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
# A write that undo may still take back. An undo is recorded as "restored" and is not itself undone. The
# same condition as in the index journal_undoable, so that SQLite uses it.
_PENDING = "undone = 0 AND action <> 'restored'"
_NOTHING_BEFORE = "before_text = NULL, before_metadata = NULL, before_added_at = NULL, before_document = NULL"


class Before(NamedTuple):
    """A document as it was before a write."""

    text: str
    metadata: str  # JSON
    added_at: str  # ISO 8601, UTC
    document: int | None = None  # the number of the hidden document whose chunks hold the text; it is "" then


class Line(NamedTuple):
    """A line that is to be recorded."""

    action: str
    document_id: str
    uri: str
    origin: Origin
    before: Before | None  # None: the document did not exist, or the line is an undo
    undoes: int | None = None


async def record(
    connection: aiosqlite.Connection, lines: Iterable[Line], at: datetime, undo_depth: int
) -> None:
    """Append lines, mark those they undo, and drop the texts beyond `undo_depth`. Raises UndoConflict.

    The depth counts the writes that are not undone: neither an undo nor an undone write uses it up.
    """
    lines = list(lines)
    for line in lines:
        if line.undoes is not None:
            await mark_undone(connection, line.undoes)
    rows = [
        (iso(at), line.action, line.document_id, line.uri, line.origin.client, line.origin.session)
        + (line.before or (None, None, None, None))
        for line in lines
    ]
    await connection.executemany(
        "INSERT INTO journal(at, action, document_id, uri, client, session,"
        " before_text, before_metadata, before_added_at, before_document)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    await connection.execute(
        f"UPDATE journal SET {_NOTHING_BEFORE} WHERE before_text IS NOT NULL"
        f" AND seq <= (SELECT seq FROM journal WHERE {_PENDING} ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        [undo_depth],
    )


async def mark_undone(connection: aiosqlite.Connection, seq: int) -> None:
    """Mark a line and drop its text, which has no use any more. Raises UndoConflict."""
    if not await is_last_write(connection, seq):
        raise UndoConflict(seq)
    await connection.execute(f"UPDATE journal SET undone = 1, {_NOTHING_BEFORE} WHERE seq = ?", [seq])


async def is_last_write(connection: aiosqlite.Connection, seq: int) -> bool:
    """Whether this is still the line that an undo takes back."""
    last = await last_write(connection)
    return last is not None and last[0].seq == seq


async def entries(connection: aiosqlite.Connection, limit: int) -> list[Entry]:
    """The newest lines, newest first."""
    rows = await connection.execute_fetchall(
        f"SELECT {_COLUMNS} FROM journal ORDER BY seq DESC LIMIT ?", [limit]
    )
    return [_entry(row) for row in rows]


async def last_write(connection: aiosqlite.Connection) -> tuple[Entry, Before | None] | None:
    """The newest write that is neither undone nor an undo, and the document before it.

    The document is None if the action is "added", which alone says that there was none, or if its text is
    no longer kept.
    """
    rows = await connection.execute_fetchall(
        f"SELECT {_COLUMNS}, before_text, before_metadata, before_added_at, before_document FROM journal"
        f" WHERE {_PENDING} ORDER BY seq DESC LIMIT 1",
    )
    found = [(_entry(row), None if row[8] is None else Before(*row[8:])) for row in rows]
    return found[0] if found else None


async def last(connection: aiosqlite.Connection) -> tuple[int, str]:
    """Number and time of the newest line; 0 and "" before the first."""
    rows = await connection.execute_fetchall("SELECT seq, at FROM journal ORDER BY seq DESC LIMIT 1")
    return next(((row[0], row[1]) for row in rows), (0, ""))


async def holds(connection: aiosqlite.Connection, seq: int, at: str) -> bool:
    """Whether there is such a line."""
    return bool(
        await connection.execute_fetchall("SELECT 1 FROM journal WHERE (seq, at) = (?, ?)", [seq, at])
    )


def _entry(row: sqlite3.Row) -> Entry:
    seq, at, action, document_id, uri, client, session, undone = row[:8]
    return Entry(seq, at, action, document_id, uri, Origin(client, session), bool(undone))


def iso(moment: datetime) -> str:
    """ISO 8601 with milliseconds, as it is stored and shown."""
    return moment.isoformat(timespec="milliseconds")
