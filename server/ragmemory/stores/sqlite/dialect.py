"""The SQL that only SQLite accepts: FTS5, JSON functions, the sequence of ids."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ragcommon.text.rules import searchable
from ragmemory.stores.engine import Condition, Connection, FulltextRow

_HAS = "EXISTS (SELECT 1 FROM json_each(metadata) AS pair WHERE pair.key = ? AND {})"


class SqliteDialect:
    """See `engine.Dialect`."""

    # SQLite reads the left side of a CROSS JOIN first.
    ordered_join = "CROSS JOIN"
    now = "(julianday('now') - 2440587.5) * 86400.0"
    fulltext_condition = "fulltext MATCH ?"
    holding_some = "SELECT rowid FROM fulltext WHERE fulltext MATCH ? LIMIT ?"

    def fulltext_query(
        self, phrases: Iterable[str], prefixes: Iterable[str] = (), *, in_headings: bool = False
    ) -> str:
        """In the syntax of FTS5. Quoted: nothing in the texts is syntax."""
        sought = [*map(_quoted, phrases), *(f"{_quoted(prefix)} *" for prefix in prefixes)]
        query = " AND ".join(sought)
        return f"heading : ({query})" if in_headings else query

    def among(self, column: str, values: Sequence[Any]) -> Condition:
        return f"{column} IN (SELECT value FROM json_each(?))", [msgspec.json.encode(values).decode()]

    def glob(self, column: str, pattern: str) -> Condition:
        return f"{column} GLOB ?", [pattern]

    def has_tag(self, tag: str) -> Condition:
        return "EXISTS (SELECT 1 FROM json_each(metadata, '$.tags') AS tag WHERE tag.value = ?)", [tag]

    def has_value(self, key: str, value: Any) -> Condition:
        match value:
            case None:
                return "NOT " + _HAS.format("pair.type <> 'null'"), [key]
            case bool():
                return _HAS.format("pair.type = ?"), [key, "true" if value else "false"]
            case int() | float():
                is_number = "pair.type IN ('integer', 'real') AND pair.value = ?"
                return _HAS.format(is_number), [key, _number(value)]
            case str():
                return _HAS.format("pair.type = 'text' AND pair.value = ?"), [key, value]
        text = msgspec.json.encode(value, order="sorted").decode()
        return _HAS.format("pair.type IN ('array', 'object') AND pair.value = json(?)"), [key, text]

    async def last_chunk_id(self, connection: Connection) -> int:
        rows = await connection.execute_fetchall("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'")
        return next((int(row[0]) for row in rows), 0)

    async def insert_fulltext(self, connection: Connection, rows: Iterable[FulltextRow]) -> None:
        await connection.executemany(
            "INSERT INTO fulltext(rowid, title, heading, text) VALUES(?, ?, ?, ?)", map(_indexed, rows)
        )

    async def delete_fulltext(self, connection: Connection, rows: Iterable[FulltextRow]) -> None:
        # A contentless FTS5 table can delete a row only with the values that were inserted.
        await connection.executemany(
            "INSERT INTO fulltext(fulltext, rowid, title, heading, text) VALUES('delete', ?, ?, ?, ?)",
            map(_indexed, rows),
        )

    async def clear_fulltext(self, connection: Connection) -> None:
        await connection.execute("INSERT INTO fulltext(fulltext) VALUES('delete-all')")

    async def rebuild_indexes(self, connection: Connection) -> None:
        await connection.execute("REINDEX")


def _indexed(row: FulltextRow) -> tuple[object, ...]:
    return row.chunk_id, searchable(row.title), searchable(row.heading), searchable(row.text)


def _quoted(text: str) -> str:
    # SQLite reads an expression up to its first NUL.
    return '"' + searchable(text).replace('"', '""').replace("\0", " ") + '"'


def _number(value: int | float) -> int | float:
    """The number as SQLite reads it from JSON: an integer beyond 64 bits becomes a float."""
    if -(2**63) <= value < 2**63:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
