"""The memory's file: its connection, checking and making it, and the mapping of sqlite3's errors."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ragcommon.errors import is_memory_short, os_reason
from ragcommon.files.writing import private_folder
from ragcommon.sqlite import wal
from ragcommon.sqlite.readonly import create_private, may_read, obstacle_in_words, obstacle_of
from ragcommon.sqlite.wal import pragma
from ragmemory.errors import (
    MemoryBusy,
    MemoryDamaged,
    MemoryFull,
    MemoryReadOnly,
    MemoryTooNew,
    MemoryUnusable,
    NotAMemory,
    RagMemoryError,
)
from ragmemory.stores.sqlite.dialect import SqliteDialect
from ragmemory.stores.sqlite.schema import APPLICATION_ID, MIGRATIONS

if TYPE_CHECKING:
    import aiosqlite


# Result codes of a failing disk: https://www.sqlite.org/rescode.html
_UNREADABLE = frozenset(
    {
        sqlite3.SQLITE_IOERR_READ,
        sqlite3.SQLITE_IOERR_SHORT_READ,
        sqlite3.SQLITE_IOERR_DATA,
        sqlite3.SQLITE_IOERR_CORRUPTFS,
    }
)


# Missing tables or columns mean a damaged file: an intact one has all that our statements name.
_OTHER_SCHEMA = re.compile(
    r"^no such (table|column|tokenizer)|has no column named|cannot join using column|constructor( failed)?\b"
)

# A length in a damaged page makes SQLite fail with SQLITE_NOMEM, which Python raises as MemoryError.
OUT_OF_BOUNDS = "a stored length is larger than the computer's memory"


# Errors about the file or the disk: no other write would succeed. https://www.sqlite.org/rescode.html
_OF_THE_FILE = frozenset(
    (
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
        *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
        *(sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_PROTOCOL),
    )
)


class SqliteConnection:
    """See `engine.Connection`.

    Statements on many rows use `executemany` with a generator: a switch to aiosqlite's thread costs about as
    much as ten rows.
    """

    dialect = SqliteDialect()

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> aiosqlite.Cursor:
        return await self._connection.execute(sql, parameters)

    async def execute_fetchall(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        return list(await self._connection.execute_fetchall(sql, parameters))

    async def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> aiosqlite.Cursor:
        return await self._connection.executemany(sql, rows)

    async def insert_many(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        places = ", ".join("?" * len(columns))
        await self.executemany(f"INSERT INTO {table}({', '.join(columns)}) VALUES({places})", rows)


@contextmanager
def mapped_errors(path: Path, busy_seconds: float) -> Iterator[None]:
    """Map errors of sqlite3 and of the disk to RagMemoryErrors."""
    try:
        yield
    except sqlite3.Error as error:
        raise _from_sqlite_error(error, path, busy_seconds) from error
    except OSError as error:
        raise (_unwritable(error, path) or MemoryUnusable(str(path), os_reason(error))) from error
    except MemoryError as error:
        if is_memory_short():
            raise
        raise MemoryDamaged(str(path), OUT_OF_BOUNDS) from error
    except UnicodeDecodeError as error:  # Even the name of a table in an error message can be damaged.
        raise MemoryDamaged(str(path), "a stored text is not UTF-8") from error
    except msgspec.DecodeError as error:
        raise MemoryDamaged(str(path), "a stored record is not what this program writes") from error


def _from_sqlite_error(error: sqlite3.Error, path: Path, busy_seconds: float) -> RagMemoryError:
    if unwritable := _unwritable(error, path):
        return unwritable
    code = getattr(error, "sqlite_errorcode", 0)
    # The low byte is the primary code.
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return MemoryBusy(str(path), busy_seconds)
        case sqlite3.SQLITE_NOTADB:
            return NotAMemory(str(path), "it is not an SQLite database")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_CONSTRAINT:
            # In an intact file no statement violates a constraint.
            return MemoryDamaged(str(path), str(error))
    if code in _UNREADABLE:
        return MemoryDamaged(str(path), f"the disk did not return what was written ({error})")
    if is_of_the_schema(error):
        return MemoryDamaged(str(path), f"its tables are not those of this program ({error})")
    return undecodable(error, path) or MemoryUnusable(str(path), str(error))


def concerns_the_file(error: Exception) -> bool:
    """Whether the error is about the file or the disk, so that no other write would succeed."""
    # A damaged page states an impossible length, or its text is in an error message of SQLite.
    if isinstance(error, MemoryError | UnicodeDecodeError) or is_of_the_schema(error):
        return True
    # The low byte is the primary code.
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_THE_FILE


def is_of_the_schema(error: Exception) -> bool:
    """Whether a table, column or tokenizer is missing; SQLite has no code of its own for that."""
    return isinstance(error, sqlite3.OperationalError) and _OTHER_SCHEMA.search(str(error)) is not None


def undecodable(error: Exception, path: Path) -> MemoryDamaged | None:
    """The error for a stored text that is not UTF-8; None if this is another one."""
    if isinstance(error, sqlite3.Error) and str(error).startswith("Could not decode"):
        # The rest of the message is the text itself.
        return MemoryDamaged(str(path), "a stored text is not UTF-8")
    return None


def _unwritable(error: sqlite3.Error | OSError, path: Path) -> RagMemoryError | None:
    match obstacle_of(error, path):
        case "full":
            return MemoryFull(str(path))
        case "read-only":
            if not may_read(path):
                return MemoryUnusable(str(path), obstacle_in_words("read-only", path))
            return MemoryReadOnly(str(path), obstacle_in_words("read-only", path))
    return None


def create_file(path: Path) -> None:
    """Create the file and its folders for the owner only; SQLite gives -wal and -shm the same mode.

    Raises MemoryUnusable, OSError.
    """
    if path.is_dir():
        raise MemoryUnusable(str(path), "it is a folder")
    private_folder(path.parent)
    create_private(path)


async def prepare(connection: aiosqlite.Connection, path: Path, busy_seconds: float) -> None:
    """Check that the file is a memory, switch it to WAL and migrate its tables. For a writer.

    Raises NotAMemory, MemoryTooNew, sqlite3.Error.
    """
    await check(connection, path)
    await wal.prepare(connection, MIGRATIONS, busy_seconds)


async def check(connection: aiosqlite.Connection, path: Path) -> int:
    """Check that the tables are a memory's, and return their version. Raises NotAMemory, MemoryTooNew."""
    # In this order: a process that creates the tables sets the application id in the same transaction.
    has_tables = await pragma(connection, "schema_version") > 0
    if has_tables and await pragma(connection, "application_id") != APPLICATION_ID:
        raise NotAMemory(str(path), "it is the database of another program")
    version = await pragma(connection, "user_version")
    if version > len(MIGRATIONS):
        raise MemoryTooNew(str(path), version, len(MIGRATIONS))
    return version
