"""The SQL that only PostgreSQL accepts: its full text, JSON, regular expressions, arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ragmemory.stores.engine import Condition, Connection, FulltextRow
from ragmemory.stores.postgres import words

_SET = re.compile(r"\[(\^?)(\]?[^\]]*)\]")


class PostgresDialect:
    """See `engine.Dialect`."""

    # The planner chooses the order.
    ordered_join = "JOIN"
    # Not now(), which is when the transaction began: it may have waited for the lock.
    now = "CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)"
    fulltext_condition = "words @@ CAST(? AS tsquery)"
    holding_some = "SELECT holding_some(CAST(? AS tsquery), ?)"

    def fulltext_query(
        self, phrases: Iterable[str], prefixes: Iterable[str] = (), *, in_headings: bool = False
    ) -> str:
        return words.query(phrases, prefixes, in_headings=in_headings)

    def among(self, column: str, values: Sequence[Any]) -> Condition:
        return f"{column} = ANY(?)", [list(values)]

    def glob(self, column: str, pattern: str) -> Condition:
        return f"{column} ~ ?", [regular_expression(pattern)]

    def has_tag(self, tag: str) -> Condition:
        # An array contains a value, and a text contains itself.
        return "properties -> 'tags' @> CAST(? AS JSONB)", [_json(tag)]

    def has_value(self, key: str, value: Any) -> Condition:
        if value is None:
            return "coalesce(properties -> CAST(? AS TEXT), 'null') = 'null'", [key]
        if isinstance(value, (dict, list)):
            return "properties -> CAST(? AS TEXT) = CAST(? AS JSONB)", [key, _json(value)]
        # For plain values this is equality, for which there is an index.
        return "properties @> CAST(? AS JSONB)", [_json({key: value})]

    async def last_chunk_id(self, connection: Connection) -> int:
        [(last,)] = await connection.execute_fetchall("SELECT last_chunk FROM memory")
        return int(last)

    async def insert_fulltext(self, connection: Connection, rows: Iterable[FulltextRow]) -> None:
        vectors = ((row.chunk_id, words.vector(row.title, row.heading, row.text)) for row in rows)
        await connection.insert_many("fulltext", ("rowid", "words"), vectors)

    async def delete_fulltext(self, connection: Connection, rows: Iterable[FulltextRow]) -> None:
        condition, parameters = self.among("rowid", [row.chunk_id for row in rows])
        await connection.execute(f"DELETE FROM fulltext WHERE {condition}", parameters)

    async def clear_fulltext(self, connection: Connection) -> None:
        await connection.execute("DELETE FROM fulltext")

    async def rebuild_indexes(self, connection: Connection) -> None:
        tables = await connection.execute_fetchall(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        )
        for [table] in tables:
            await connection.execute(f'REINDEX TABLE "{table}"')


def regular_expression(glob: str) -> str:
    """A regular expression that matches what SQLite's GLOB matches; neither `*` nor `?` excludes anything."""
    parts, at = [], 0
    while at < len(glob):
        if glob[at] == "[":
            found = _SET.match(glob, at)
            if found is None:
                return "(?!)"  # A set without an end matches nothing.
            parts.append(_set(found[1], found[2]))
            at = found.end()
            continue
        if glob[at] != "*":
            parts.append("." if glob[at] == "?" else _literal(glob[at]))
        elif parts[-1:] != [".*"]:
            parts.append(".*")
        at += 1
    return f"^{''.join(parts)}$"


def _set(negation: str, members: str) -> str:
    allowed = []
    at = 0
    while at < len(members):
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            if members[at] <= members[at + 2]:
                allowed.append(f"{_literal(members[at])}-{_literal(members[at + 2])}")
            at += 3
        else:
            allowed.append(_literal(members[at]))
            at += 1
    if not allowed:
        return "." if negation else "(?!)"
    return f"[{negation}{''.join(allowed)}]"


def _literal(character: str) -> str:
    return character if character.isalnum() or not character.isascii() else f"\\{character}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
