"""The journal: one entry for each write to a document, with the client and the data that undo needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from ragcommon.contract.history import Action, Entry, Origin
from ragmemory.errors import UndoConflict
from ragmemory.stores.engine import Condition, Connection, Dialect, StorePart, one_of
from ragmemory.types.history import Selection

_COLUMNS = "seq, at, action, document_id, uri, client, session, host, write_group, undone"
# Greater than the number of any entry.
AFTER_ALL = 2**62
# A write that can still be undone. An undo is recorded as "restored" and cannot be undone itself. This is the
# condition of the index journal_undoable, so that SQLite uses it.
UNDOABLE = "undone = 0 AND action <> 'restored'"
_NEWEST = f"SELECT seq, write_group FROM journal WHERE {UNDOABLE} ORDER BY seq DESC"
# The newest write, with those of its group. One statement: others may undo it in the meantime.
_IS_NEWEST = (
    f"(seq = (SELECT seq FROM ({_NEWEST} LIMIT 1) AS newest)"
    f" OR write_group <> '' AND write_group = (SELECT write_group FROM ({_NEWEST} LIMIT 1) AS newest))"
)
_FIRST_OF_GROUP = (
    f"SELECT min(seq) FROM journal WHERE {UNDOABLE} AND write_group <> '' AND write_group = {{}}"
)
_NO_UNDO_DATA = (
    "before_text = NULL, before_metadata = NULL, before_added_at = NULL, before_document = NULL,"
    " before_places = NULL"
)


# The client that wrote a document's current version.
WRITTEN_BY = (
    f"(SELECT client FROM journal WHERE journal.uri = documents.uri AND {UNDOABLE} ORDER BY seq DESC LIMIT 1)"
)


class UndoData(NamedTuple):
    """A document as it was before a write, in its stored form."""

    text: str
    metadata: str  # JSON
    added_at: str  # ISO 8601, UTC
    document: int | None = None  # the hidden document whose chunks hold the text; then `text` is ""
    places: str | None = None  # JSON; "" or None: it has none, or the chunks hold them


class NewEntry(NamedTuple):
    """An entry to be recorded."""

    action: str
    document_id: str
    uri: str
    origin: Origin
    before: UndoData | None  # None: the document did not exist
    undoes: int | None = None


async def record(connection: Connection, new: Iterable[NewEntry], at: datetime, undo_depth: int) -> None:
    """Append entries, mark those they undo, and drop the texts beyond `undo_depth`. Raises UndoConflict.

    The depth counts writes that are not undone: neither an undo nor an undone write counts. All texts of a
    group are kept while one of its writes is within the depth, so that it can be undone as a whole.
    """
    new, moment = list(new), iso(at)
    await mark_undone(connection, [entry.undoes for entry in new if entry.undoes is not None])
    rows = [
        (moment, entry.action, entry.document_id, entry.uri)
        + (entry.origin.client, entry.origin.session, entry.origin.host, entry.origin.group)
        + (entry.before or (None, None, None, None, None))
        for entry in new
    ]
    await connection.executemany(
        "INSERT INTO journal(at, action, document_id, uri, client, session, host, write_group,"
        " before_text, before_metadata, before_added_at, before_document, before_places)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    # Not after an undo: its other writes need their texts, whatever the depth is now.
    if any(entry.undoes is None for entry in new):
        await _drop_texts_beyond(connection, undo_depth)


async def _drop_texts_beyond(connection: Connection, undo_depth: int) -> None:
    beyond = await connection.execute_fetchall(
        "SELECT 1 FROM journal WHERE before_text IS NOT NULL"
        f" AND seq <= (SELECT seq FROM journal WHERE {UNDOABLE} ORDER BY seq DESC LIMIT 1 OFFSET ?) LIMIT 1",
        [undo_depth],
    )
    if beyond:
        # Kept are the texts within the depth, and from the first write of a group that reaches into it.
        await connection.execute(
            f"WITH recent AS ({_NEWEST} LIMIT ?),"
            " firsts AS (SELECT min(seq) AS seq FROM recent UNION ALL"
            f" SELECT ({_FIRST_OF_GROUP.format('grouped.write_group')})"
            " FROM (SELECT DISTINCT write_group FROM recent WHERE write_group <> '') AS grouped)"
            f" UPDATE journal SET {_NO_UNDO_DATA} WHERE before_text IS NOT NULL"
            " AND seq < (SELECT coalesce(min(seq), (SELECT max(seq) + 1 FROM journal)) FROM firsts)",
            [undo_depth],
        )


async def mark_undone(connection: Connection, seqs: Sequence[int]) -> None:
    """Mark entries as undone. Raises UndoConflict."""
    if not seqs:
        return
    possible = await undoable(connection, seqs)
    for seq in seqs:
        if seq not in possible:
            raise UndoConflict(seq)
    condition, parameters = connection.dialect.among("seq", seqs)
    await connection.execute(f"UPDATE journal SET undone = 1 WHERE {condition}", parameters)


async def undoable(connection: Connection, seqs: Sequence[int]) -> set[int]:
    """Those of some entries that are the last writes to their documents that are not undone."""
    if not seqs:  # Most batches undo nothing.
        return set()
    condition, parameters = connection.dialect.among("seq", seqs)
    rows = await connection.execute_fetchall(
        f"SELECT seq FROM journal AS entry WHERE {condition} AND {UNDOABLE}"
        f" AND NOT EXISTS (SELECT 1 FROM journal WHERE {UNDOABLE} AND seq > entry.seq AND uri = entry.uri)",
        parameters,
    )
    return {row[0] for row in rows}


async def current_versions(connection: Connection, uris: Sequence[str]) -> dict[str, int]:
    """The last writes to some documents that are not undone, by uri: their current versions."""
    if not uris:
        return {}
    condition, parameters = one_of("uri", uris)
    rows = await connection.execute_fetchall(
        f"SELECT uri, max(seq) FROM journal WHERE {condition} AND {UNDOABLE} GROUP BY uri", parameters
    )
    return {row[0]: row[1] for row in rows}


async def undo_data(connection: Connection, seqs: Sequence[int]) -> dict[int, UndoData]:
    """The documents before some writes, by entry, without those that did not exist or are no longer kept."""
    condition, parameters = connection.dialect.among("seq", seqs)
    rows = await connection.execute_fetchall(
        "SELECT seq, before_text, before_metadata, before_added_at, before_document, before_places"
        f" FROM journal WHERE {condition} AND before_text IS NOT NULL",
        parameters,
    )
    return {row[0]: UndoData(*row[1:]) for row in rows}


async def last(connection: Connection) -> tuple[int, str]:
    """Number and time of the newest entry; 0 and "" before the first."""
    rows = await connection.execute_fetchall("SELECT seq, at FROM journal ORDER BY seq DESC LIMIT 1")
    return next(((row[0], row[1]) for row in rows), (0, ""))


async def holds(connection: Connection, seq: int, at: str) -> bool:
    """Whether there is such an entry."""
    return bool(
        await connection.execute_fetchall("SELECT 1 FROM journal WHERE (seq, at) = (?, ?)", [seq, at])
    )


def _entry(row: Iterable[Any]) -> Entry:
    seq, at, action, document_id, uri, client, session, host, group, undone = row
    return Entry(seq, at, action, document_id, uri, Origin(client, session, group, host), bool(undone))


def iso(moment: datetime) -> str:
    """ISO 8601 with milliseconds, as it is stored and displayed."""
    return moment.isoformat(timespec="milliseconds")


class JournalStore(StorePart):
    """Reads of the journal."""

    async def entries(self, limit: int, before: int | None = None) -> list[Entry]:
        """The newest entries of the journal, newest first; those before an entry, by its number."""
        rows = await self._engine.read(
            f"SELECT {_COLUMNS} FROM journal WHERE seq < ? ORDER BY seq DESC LIMIT ?",
            [AFTER_ALL if before is None else before, limit],
        )
        return [_entry(row) for row in rows]

    async def last_number(self) -> int:
        """The number of the newest entry; 0 before the first."""
        [(last,)] = await self._engine.read("SELECT coalesce(max(seq), 0) FROM journal")
        return int(last)

    async def after(self, seq: int, limit: int) -> Sequence[tuple[int, str, Action]]:
        """Number, document and action of the entries after one, oldest first."""
        return await self._engine.read(
            "SELECT seq, document_id, action FROM journal WHERE seq > ? ORDER BY seq LIMIT ?", [seq, limit]
        )

    async def change(
        self, selection: Selection, since: datetime | None = None
    ) -> tuple[list[Entry], list[str]]:
        """The selected writes that are neither undone nor undos, newest first; `since` is its time.

        Not those that a later write outside the selection has replaced: the second list has their uris.
        """
        condition, parameters = _condition(selection, since, self._engine.dialect)
        rows = await self._engine.read(
            f"WITH selected AS (SELECT seq, uri FROM journal WHERE {UNDOABLE} AND {condition})"
            f" SELECT {_COLUMNS}, seq IN (SELECT seq FROM selected) FROM journal WHERE {UNDOABLE}"
            " AND seq >= (SELECT min(seq) FROM selected) AND uri IN (SELECT uri FROM selected)"
            " ORDER BY seq DESC",
            parameters,
        )
        selected: list[Entry] = []
        replaced: set[str] = set()
        left: dict[str, None] = {}
        for *columns, is_selected in rows:
            entry = _entry(columns)
            if not is_selected:
                replaced.add(entry.uri)
            elif entry.uri in replaced:
                left[entry.uri] = None
            else:
                selected.append(entry)
        return selected, list(left)

    async def not_writes(self, seqs: Sequence[int]) -> list[int]:
        """Those of some numbers that are not writes: undos, or no entries at all."""
        condition, parameters = self._engine.dialect.among("seq", seqs)
        writes = await self._column(
            f"SELECT seq FROM journal WHERE {condition} AND action <> 'restored'", parameters
        )
        return sorted(set(seqs).difference(writes))

    async def is_undone(self, seq: int) -> bool:
        """Whether the write with this number is undone."""
        return bool(await self._engine.read("SELECT 1 FROM journal WHERE seq = ? AND undone <> 0", [seq]))

    async def current_version(self, uri: str) -> int:
        """The number of the last version of a document, also of its removal; 0 if there is none."""
        async with self._engine.reading() as connection:
            return (await current_versions(connection, [uri])).get(uri, 0)


def _condition(selection: Selection, since: datetime | None, dialect: Dialect) -> Condition:
    """The condition for the selected writes, and its parameters."""
    if selection.numbers:
        return dialect.among("seq", selection.numbers)
    if selection.origin and since:
        return "? IN (client, session, host, write_group) AND at >= ?", [selection.origin, iso(since)]
    if selection.origin:
        return "? IN (client, session, host, write_group)", [selection.origin]
    if since:
        return "at >= ?", [iso(since)]
    return _IS_NEWEST, []
