"""Copy a memory table by table, also from one engine to the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ragmemory.stores import chunks, meta
from ragmemory.stores.changes import MAX_ID
from ragmemory.stores.engine import Connection, Engine, OnProgress
from ragmemory.stores.repairing import RepairStore

# Rows that are compared at a time.
_PAGE = 1_000
# Passes without the lock of the source: one copies, one of them replaces what PostgreSQL would not store, one
# finds no difference.
_PASSES = 4
# What a copy has of its own.
_OWN = frozenset({"store_id"})


_Row = tuple[Any, ...]


class _Table(NamedTuple):
    name: str
    columns: tuple[str, ...]  # the key first
    ends: tuple[Any, Any] = (-1, MAX_ID)  # below and above every key


# Not copied: full text, which is built again; removals, since no index has followed the copy; jobs, which
# belong to processes that have the source open. A table comes after those that it refers to.
TABLES = (
    _Table(
        "documents",
        (
            *("number", "document_id", "uri", "title", "digest", "metadata", "chunks", "characters"),
            *("created", "added_at", "updated_at", "hidden", "stamp", "machine"),
        ),
    ),
    _Table("chunks", chunks.COLUMNS),
    _Table("embeddings", ("chunk_id", "vector", "input")),
    _Table("other_embeddings", ("chunk_id", "vector", "input")),
    _Table("removed_embeddings", ("number", "input", "vector")),
    _Table("pages", ("first", "last", "document")),
    _Table(
        "journal",
        (
            *("seq", "at", "action", "document_id", "uri", "client", "session", "host", "write_group"),
            *("undone", "before_text", "before_metadata", "before_added_at", "before_document"),
            "before_places",
        ),
    ),
    _Table("outlines", ("document_id", "digest", "blocks"), ("", "\U0010ffff")),
    _Table("sources", ("number", "uri", "added_at", "synced_at", "outcome", "machine")),
)


class Copying:
    """A copy of `source` in `target`, which may have a part of it already: an interrupted copy goes on."""

    def __init__(self, source: Engine, target: Engine, on_progress: OnProgress) -> None:
        self._source = source
        self._target = target
        self._on_progress = on_progress
        # Texts of earlier releases may have U+0000, which is replaced: the new digests of their documents.
        self._unclean: set[int] = set()
        self._digests: dict[int, bytes] = {}

    @property
    def replaced(self) -> int:
        """The number of documents with U+0000, which is U+FFFD in the copy."""
        return len(self._digests)

    async def run(self) -> None:
        """Copy until a whole pass finds both the same and the source unchanged. Raises what engines raise."""
        for _ in range(_PASSES):
            version = await self._source.version()
            if not await self._pass() and await self._source.version() == version:
                break
        else:
            # Others write all the time. Now they wait, or are told that the memory is busy.
            async with self._source.transaction() as connection:
                while await self._pass(connection):
                    pass
        await RepairStore(self._target).fulltext()

    async def _pass(self, lock: Connection | None = None) -> bool:
        """Make every table of the target equal to that of the source; whether there was a difference.

        `lock` has the lock of the source, and is used now and then: a database ends an idle transaction.
        """
        counts = [(await self._source.read(f"SELECT count(*) FROM {table.name}"))[0][0] for table in TABLES]
        done, total = 0, sum(counts)
        is_changed = await self._copy_meta()
        for table in TABLES:
            after, end = table.ends
            is_last = False
            while not is_last:
                rows = await _page(self._source, table, after, end, _PAGE)
                is_last = len(rows) < _PAGE
                if lock is not None:
                    await lock.execute_fetchall("SELECT 1")
                upto = end if is_last else rows[-1][0]
                is_changed |= await self._equalize(table, after, upto, rows)
                after = upto
                done += len(rows)
                await self._on_progress(done, max(done, total), table.name)
        return await self._note_digests() or is_changed

    async def _equalize(self, table: _Table, after: Any, upto: Any, rows: Sequence[_Row]) -> bool:
        """Make the rows between two keys those of the source; whether they were not."""
        wanted = {row[0]: self._clean(table, row) for row in rows}
        there = {row[0]: row for row in await _page(self._target, table, after, upto, MAX_ID)}
        outdated = [key for key, row in there.items() if row != wanted.get(key)]
        missing = [row for key, row in wanted.items() if row != there.get(key)]
        if not outdated and not missing:
            return False
        async with self._target.transaction() as connection:
            if outdated:
                condition, parameters = connection.dialect.among(table.columns[0], outdated)
                await connection.execute(f"DELETE FROM {table.name} WHERE {condition}", parameters)
            await connection.insert_many(table.name, table.columns, missing)
        return True

    def _clean(self, table: _Table, row: _Row) -> _Row:
        """The row as it can be stored in both engines."""
        values = dict(zip(table.columns, row, strict=True))
        if table.name == "documents":
            values["digest"] = self._digests.get(values["number"], values["digest"])
        # A document that was not read from a file has no stamp, and is of no machine.
        if values.get("machine") == self._source.machine and values.get("stamp") != "":
            values["machine"] = self._target.machine
        unclean = [name for name, value in values.items() if isinstance(value, str) and "\0" in value]
        if unclean and table.name == "chunks":
            self._unclean.add(values["document"])
        for name in unclean:
            values[name] = values[name].replace("\0", "\ufffd")
        return tuple(values.values())

    async def _note_digests(self) -> bool:
        """Compute the digests of documents whose text was changed; whether there are new ones."""
        new = self._unclean - self._digests.keys()
        async with self._target.reading() as connection:
            for number in new:
                text, _ = await chunks.text_of(connection, number)
                self._digests[number] = chunks.text_digest(text)
        return bool(new)

    async def _copy_meta(self) -> bool:
        async with self._source.reading() as connection:
            wanted: dict[str, str | None] = {**await meta.values(connection)}
        async with self._target.reading() as connection:
            there = await meta.values(connection)
        new = {key: wanted.get(key) for key in {*wanted, *there} - _OWN if wanted.get(key) != there.get(key)}
        if new:
            async with self._target.transaction() as connection:
                await meta.put(connection, new)
        return bool(new)


async def _page(engine: Engine, table: _Table, after: Any, upto: Any, limit: int) -> list[_Row]:
    """At most `limit` rows after one key, up to another."""
    key = table.columns[0]
    rows = await engine.read(
        f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE {key} > ? AND {key} <= ?"
        f" ORDER BY {key} LIMIT ?",
        [after, upto, limit],
    )
    return [tuple(row) for row in rows]
