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
# The newest lines, as many as the parameter says.
_WITHIN_REACH = "seq > (SELECT max(seq) FROM journal) - ?"
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
    before: Before | None
    undoes: int | None = None


async def record(
    connection: aiosqlite.Connection, lines: Iterable[Line], at: datetime, undo_depth: int
) -> None:
    """Append lines, mark those they take back, drop what undo no longer reaches. Raises UndoConflict."""
    lines = list(lines)
    await _mark_undone(connection, [line.undoes for line in lines if line.undoes is not None], undo_depth)
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
        f"UPDATE journal SET {_NOTHING_BEFORE} WHERE before_text IS NOT NULL AND NOT {_WITHIN_REACH}",
        [undo_depth],
    )


async def _mark_undone(connection: aiosqlite.Connection, seqs: Iterable[int], undo_depth: int) -> None:
    for seq in seqs:
        if not await is_undoable(connection, seq, undo_depth):
            raise UndoConflict(seq)
        await connection.execute("UPDATE journal SET undone = 1 WHERE seq = ?", [seq])


async def is_undoable(connection: aiosqlite.Connection, seq: int, undo_depth: int) -> bool:
    """Whether that is still the line that an undo would take back."""
    last = await last_undoable(connection, undo_depth)
    return last is not None and last[0].seq == seq


async def entries(connection: aiosqlite.Connection, limit: int) -> list[Entry]:
    """The newest lines, newest first."""
    rows = await connection.execute_fetchall(
        f"SELECT {_COLUMNS} FROM journal ORDER BY seq DESC LIMIT ?", [limit]
    )
    return [_entry(row) for row in rows]


async def last_undoable(
    connection: aiosqlite.Connection, undo_depth: int
) -> tuple[Entry, Before | None] | None:
    """The newest write that is neither undone nor an undo, and the document before it, if there was one.

    None also where it lies more than `undo_depth` lines back.
    """
    rows = await connection.execute_fetchall(
        f"SELECT {_COLUMNS}, before_text, before_metadata, before_added_at, before_document FROM journal"
        f" WHERE undone = 0 AND action <> 'restored' AND {_WITHIN_REACH} ORDER BY seq DESC LIMIT 1",
        [undo_depth],
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
