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


class Before(NamedTuple):
    """A document as it was before a write."""

    text: str
    metadata: str  # JSON
    added_at: str  # ISO 8601, UTC


class Line(NamedTuple):
    """A line that is to be recorded."""

    action: str
    document_id: str
    uri: str
    origin: Origin
    before: Before | None
    undoes: int | None = None


async def record(connection: aiosqlite.Connection, lines: Iterable[Line], at: datetime) -> None:
    """Append lines, and mark those that they take back. Raises UndoConflict."""
    lines = list(lines)
    await _mark_undone(connection, [line.undoes for line in lines if line.undoes is not None])
    rows = [
        (iso(at), line.action, line.document_id, line.uri, line.origin.client, line.origin.session)
        + (line.before or (None, None, None))
        for line in lines
    ]
    await connection.executemany(
        "INSERT INTO journal(at, action, document_id, uri, client, session,"
        " before_text, before_metadata, before_added_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )


async def _mark_undone(connection: aiosqlite.Connection, seqs: Iterable[int]) -> None:
    for seq in seqs:
        last = await last_undoable(connection)
        if last is None or last[0].seq != seq:
            raise UndoConflict(seq)
        await connection.execute("UPDATE journal SET undone = 1 WHERE seq = ?", [seq])


async def entries(connection: aiosqlite.Connection, limit: int) -> list[Entry]:
    """The newest lines, newest first."""
    rows = await connection.execute_fetchall(
        f"SELECT {_COLUMNS} FROM journal ORDER BY seq DESC LIMIT ?", [limit]
    )
    return [_entry(row) for row in rows]


async def last_undoable(connection: aiosqlite.Connection) -> tuple[Entry, Before | None] | None:
    """The newest write that is neither undone nor an undo, and the document before it, if there was one."""
    rows = await connection.execute_fetchall(
        f"SELECT {_COLUMNS}, before_text, before_metadata, before_added_at FROM journal"
        " WHERE undone = 0 AND action <> 'restored' ORDER BY seq DESC LIMIT 1"
    )
    found = [(_entry(row), None if row[8] is None else Before(*row[8:])) for row in rows]
    return found[0] if found else None


def _entry(row: sqlite3.Row) -> Entry:
    seq, at, action, document_id, uri, client, session, undone = row[:8]
    return Entry(seq, at, action, document_id, uri, Origin(client, session), bool(undone))


def iso(moment: datetime) -> str:
    """ISO 8601 with milliseconds, as it is stored and shown."""
    return moment.isoformat(timespec="milliseconds")
