"""Check a whole memory file for damage. If one check fails, the others still run.

It uses its own connection, because the store may be unable to open the file. It only reads.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import anyio
import msgspec
from anyio import to_thread

from ragcommon.contract.maintenance import Verified
from ragcommon.errors import DECODE_ERRORS, is_memory_short, os_reason
from ragcommon.sqlite import wal
from ragcommon.sqlite.readonly import readable
from ragmemory.errors import MemoryUnusable
from ragmemory.stores.engine import OnProgress
from ragmemory.stores.sqlite import connection as connections
from ragmemory.stores.values import are_sound

if TYPE_CHECKING:
    import aiosqlite

# Problems of one kind that are listed; beyond that, only their number is given.
_NAMED = 20
# Documents whose texts are read in one query.
_PAGE = 100
_PAGE_OF_EMBEDDINGS = 1_000
# Seconds that an error waits until the damage is located: a check reads a few hundred MB in that time.
_LOCATING_SECONDS = 1.0

# What reading a damaged file raises; MemoryError if a page states an impossible length.
_DAMAGE = (sqlite3.Error, UnicodeDecodeError, MemoryError)

_BACKUP = "Put a backup of the file in its place."
_REBUILD = "`ragchat memory verify --repair` builds it again."
_START_AGAIN = (
    "Nothing can be read or repaired in it. Move it away and load the documents again, or put a backup of "
    "the file in its place."
)

# Findings about an index, which is built again from its table.
_OF_AN_INDEX = re.compile(r"row \d+ missing from index|wrong # of entries in index")
# "Tree 5 page 7 cell 1: …" from SQLite 3.42 on, "Page 7: …" and "On tree page 7 cell 1: …" before.
_PAGE_NUMBER = re.compile(r"\bpage (\d+)", re.IGNORECASE)


async def verify(path: Path, busy_seconds: float, on_progress: OnProgress) -> Verified:
    """Check everything in the file; the problems are sentences that end with what to do.

    Raises NotAMemory, MemoryTooNew, MemoryUnusable.
    """
    checks: Sequence[tuple[str, _Check]] = (
        ("The file", _file),
        ("References", _references),
        ("Full text", _fulltext),
        ("Documents", _documents),
        ("Embeddings", _embeddings),
        ("Journal", _journal),
    )
    problems: list[str] = []
    try:
        async with _opened(path, busy_seconds) as connection:
            if await wal.pragma(connection, "schema_version") == 0:
                return Verified(ok=True, problems=[])  # nothing was ever stored
            await connections.check(connection, path)
            for number, (name, check) in enumerate(checks):
                await on_progress(number, len(checks), name)
                try:
                    await check(connection, problems.append)
                except _DAMAGE as error:
                    remedy = _REBUILD if check is _fulltext else _BACKUP
                    problems.append(f"{name} cannot be read: {_message(error)}. {remedy}")
            await on_progress(len(checks), len(checks), None)
    except PermissionError as error:
        raise MemoryUnusable(str(path), "your user may not read it") from error
    except (*_DAMAGE, OSError) as error:
        problems.append(f"{path} cannot be opened: {_message(error)}. {_START_AGAIN}")
    return Verified(ok=not problems, problems=list(dict.fromkeys(problems)))


async def place_of_damage(path: Path) -> str:
    """For example "page 7 of the table chunks"; "" if the damage is not found within a second."""
    with suppress(*_DAMAGE, OSError), anyio.move_on_after(_LOCATING_SECONDS):
        async with _opened(path, _LOCATING_SECONDS) as connection:
            async for table, finding in _damaged_tables(connection, "quick_check"):
                page = _PAGE_NUMBER.search(finding)
                return f"page {page[1]} of the table {table}" if page else f"the table {table}"
    return ""


@asynccontextmanager
async def _opened(path: Path, busy_seconds: float) -> AsyncIterator[aiosqlite.Connection]:
    source = await to_thread.run_sync(readable, path, 0)
    try:
        connection = await wal.connect(source.uri, busy_seconds)
        try:
            # A text that is not UTF-8 is a problem to report, not an error.
            connection.text_factory = bytes
            yield connection
        finally:
            # A cancelled check still runs in the connection's thread, and closing waits for it.
            await connection.interrupt()
            await wal.close(connection)
    finally:
        source.close()


# Each check reports what it finds; an error that it raises is one more problem.

_Report: TypeAlias = Callable[[str], None]
_Check: TypeAlias = "Callable[[aiosqlite.Connection, _Report], Awaitable[None]]"


async def _file(connection: aiosqlite.Connection, report: _Report) -> None:
    findings = await _findings(connection, f"integrity_check({_NAMED})")
    if findings == ["ok"]:
        return
    # Table by table: a finding names a page but no table, and one damaged table can end the whole check.
    named = False
    async for table, finding in _damaged_tables(connection, "integrity_check"):
        named = True
        remedy = _REBUILD if _OF_AN_INDEX.match(finding) else _BACKUP
        report(f"The table {table} is damaged: {finding}. {remedy}")
    if not named:
        for finding in findings:
            report(f"The file is damaged: {finding}. {_BACKUP}")


async def _damaged_tables(connection: aiosqlite.Connection, check: str) -> AsyncIterator[tuple[str, str]]:
    """Each damaged table with the first finding of SQLite's check, about an index only if all are."""
    rows = await connection.execute_fetchall(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 ORDER BY name"
    )
    for [name] in rows:
        quoted = _text(name).replace("'", "''")
        found = await _findings(connection, f"{check}('{quoted}')")
        if found != ["ok"]:
            yield _text(name), min(found, key=lambda finding: _OF_AN_INDEX.match(finding) is not None)


async def _findings(connection: aiosqlite.Connection, check: str) -> list[str]:
    """The findings of SQLite's check; an error that ends it is a finding, too."""
    try:
        rows = await connection.execute_fetchall(f"PRAGMA {check}")
    except _DAMAGE as error:
        return [_message(error)]
    # The first line of a finding may be the schema's name.
    lines = (_text(row[0]).splitlines() for row in rows)
    return [" ".join(line for line in finding if not line.startswith("***")) for finding in lines]


async def _references(connection: aiosqlite.Connection, report: _Report) -> None:
    rows = await connection.execute_fetchall("PRAGMA foreign_key_check")
    for table, count in Counter(_text(row[0]) for row in rows).items():
        report(f"{count:,} rows of the table {table} refer to rows that do not exist. {_BACKUP}")


async def _fulltext(connection: aiosqlite.Connection, report: _Report) -> None:
    # FTS5's own 'integrity-check' is an INSERT, which needs the write lock. Looking at every word reads the
    # whole index as well; the vocabulary table is temporary.
    await connection.execute("CREATE VIRTUAL TABLE temp.words_of USING fts5vocab(main, fulltext, instance)")
    [(count,)] = await connection.execute_fetchall(
        # A chunk of only punctuation has no words in the full text.
        "SELECT (SELECT count(*) FROM chunks JOIN documents ON number = document"
        " WHERE hidden = 0 AND text GLOB '*[A-Za-z0-9]*'"
        " AND chunk_id NOT IN (SELECT doc FROM temp.words_of))"
        " + (SELECT count(DISTINCT doc) FROM temp.words_of WHERE doc NOT IN (SELECT chunk_id FROM chunks))"
    )
    if count:
        report(f"{count:,} passages are missing from the full text, or no longer exist. {_REBUILD}")


async def _documents(connection: aiosqlite.Connection, report: _Report) -> None:
    damaged = 0
    remedy = "Inject it again, or put a backup of the file in its place."
    documents = (
        "SELECT number, uri, digest, chunks, metadata FROM documents"
        " WHERE number > ? AND hidden = 0 ORDER BY number LIMIT ?"
    )
    async for page in _pages(connection, documents, _PAGE):
        texts = await _texts(connection, [row[0] for row in page])
        for uri in await to_thread.run_sync(_differing, page, texts):
            damaged += 1
            if damaged <= _NAMED:
                report(f"The document {uri} is damaged. {remedy}")
    if damaged > _NAMED:
        report(f"{damaged - _NAMED:,} more documents are damaged. {_BACKUP}")


async def _pages(connection: aiosqlite.Connection, sql: str, size: int) -> AsyncIterator[list[sqlite3.Row]]:
    """The rows of a statement in pages; its first column is above its first parameter, and orders them."""
    after = 0
    while page := list(await connection.execute_fetchall(sql, [after, size])):
        if page[-1][0] <= after:  # In a damaged table: the same rows would come again and again.
            raise sqlite3.DatabaseError("their order is damaged")
        after = page[-1][0]
        yield page


async def _texts(connection: aiosqlite.Connection, numbers: Sequence[int]) -> dict[int, list[bytes]]:
    """The texts of the documents' chunks; without those of a document whose chunks cannot be read."""
    texts: dict[int, list[bytes]] = {number: [] for number in numbers}
    try:
        rows = await connection.execute_fetchall(
            "SELECT document, text FROM chunks WHERE document IN (SELECT value FROM json_each(?))"
            " ORDER BY chunk_id",
            [msgspec.json.encode(numbers).decode()],
        )
        for number, text in rows:
            texts.setdefault(number, []).append(text)
    except _DAMAGE:
        if len(numbers) == 1:
            return {}
        return {
            key: value for number in numbers for key, value in (await _texts(connection, [number])).items()
        }
    return texts


def _differing(page: Sequence[sqlite3.Row], texts: dict[int, list[bytes]]) -> list[str]:
    """The uris of the documents that differ from what was stored."""
    return [
        _text(uri)
        for number, uri, digest, chunks, metadata in page
        if not (_is_text(texts.get(number), chunks, digest) and _is_metadata(metadata, _text(uri)))
    ]


def _is_text(parts: list[bytes] | None, count: int, digest: bytes) -> bool:
    """Whether the parts have this digest; a damaged part may not even be a text."""
    if parts is None or len(parts) != count or not all(isinstance(part, bytes) for part in parts):
        return False
    return hashlib.sha256(b"".join(parts)).digest() == digest


def _is_metadata(value: object, uri: str) -> bool:
    """Whether this is the metadata of the document `uri`: a uri made of the text is not in it."""
    try:
        metadata = msgspec.json.decode(value if isinstance(value, bytes) else b"", type=dict[str, object])
    except DECODE_ERRORS:
        return False
    return metadata.get("uri", uri) == uri


def _is_utf8(value: object) -> bool:
    try:
        str(value if isinstance(value, bytes) else b"", "utf-8")
    except UnicodeDecodeError:
        return False
    return True


async def _embeddings(connection: aiosqlite.Connection, report: _Report) -> None:
    rows = await connection.execute_fetchall("SELECT value FROM meta WHERE key = 'dimensions'")
    dimensions = next((_text(row[0]) for row in rows), "0")
    if not dimensions.isdecimal():
        report(f"The number of dimensions is stored as {dimensions!r}. {_BACKUP}")
        return
    count = 0
    vectors = (
        "SELECT chunk_id, vector FROM chunks CROSS JOIN documents ON number = document"
        " LEFT JOIN embeddings USING(chunk_id)"
        " WHERE chunk_id > ? AND hidden = 0 ORDER BY chunk_id LIMIT ?"
    )
    async for page in _pages(connection, vectors, _PAGE_OF_EMBEDDINGS):
        sound = await to_thread.run_sync(are_sound, [row[1] for row in page], int(dimensions))
        count += sound.count(False)
    if count:
        report(
            f"{count:,} embeddings are missing or damaged; their passages are found only by their words. "
            "`ragchat memory verify --repair` makes them again."
        )


async def _journal(connection: aiosqlite.Connection, report: _Report) -> None:
    entries = (
        "SELECT seq, uri, before_metadata, before_text, before_document FROM journal"
        " WHERE seq > ? AND before_text IS NOT NULL ORDER BY seq LIMIT ?"
    )
    async for page in _pages(connection, entries, _PAGE):
        for entry, uri, metadata, text, number in page:
            is_sound = _is_metadata(metadata, _text(uri)) and _is_utf8(text)
            if not is_sound or (number is not None and not await _is_hidden(connection, number)):
                report(f"Entry {entry} of the journal is damaged: {_text(uri)} cannot be restored from it.")
    await connection.execute_fetchall("SELECT count(length(action) + length(client)) FROM journal")


async def _is_hidden(connection: aiosqlite.Connection, number: int) -> bool:
    """Whether there is such a hidden document, with the text that was stored."""
    rows = await connection.execute_fetchall(
        "SELECT digest, chunks FROM documents WHERE number = ? AND hidden <> 0", [number]
    )
    parts = (await _texts(connection, [number])).get(number)
    return any([await to_thread.run_sync(_is_text, parts, count, digest) for digest, count in rows])


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _message(error: sqlite3.Error | OSError | UnicodeDecodeError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        if is_memory_short():
            raise error
        return connections.OUT_OF_BOUNDS
    if isinstance(error, UnicodeDecodeError):  # Texts are read as bytes: it is in a message of SQLite.
        return "the description of its tables is damaged"
    return os_reason(error)
