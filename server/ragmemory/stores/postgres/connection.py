"""Statements through psycopg: parameters as `?`, loading by COPY, and the mapping of its errors."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import anyio

from ragcommon.errors import DECODE_ERRORS
from ragmemory.errors import DatabaseUnavailable, MemoryBusy, MemoryDamaged, MemoryFull, first_line
from ragmemory.stores.engine import Row
from ragmemory.stores.postgres.dialect import PostgresDialect

if TYPE_CHECKING:
    import psycopg

# Seconds that a read may take before the server ends it; seconds for a write: indexes may be built again.
READ_SECONDS = 60
WRITE_SECONDS = 3_600
RIGHTS_HINT = (
    "Grant the user of store.url the rights on the schema and its tables, "
    "and CREATE on the database if the schema has to be made; or name another user."
)
GONE_HINT = "Restore them from a backup; or begin an empty memory: restart what has this one open."
INSTALL_HINT = "Install it: pip install 'ragchat[postgres]'"
_PARAMETER = re.compile(r"\?(\d*)")
# The classes of errors after which no other statement would succeed: connection, resources, operator's
# intervention, system, wrong credentials, read-only or aborted transactions, and tables that are missing.
# https://www.postgresql.org/docs/current/errcodes-appendix.html
_OF_THE_DATABASE = ("08", "25", "28", "3D", "3F", "40", "42", "53", "55", "57", "58", "F0", "XX")
# Those of a lost connection, of a server that only reads, and of one that is stopping or starting.
_LOST = ("08", "25006", "57P")


@lru_cache(1_000)
def numbered(sql: str) -> str:
    """`?` and `?1` as PostgreSQL numbers parameters: `$1`."""
    count = 0

    def number(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"${found[1] or count}"

    return _PARAMETER.sub(number, sql)


class PostgresConnection:
    """See `engine.Connection`."""

    dialect = PostgresDialect()

    def __init__(self, connection: psycopg.AsyncConnection[Any], answer_seconds: float) -> None:
        self.raw = connection
        self.answer_seconds = answer_seconds
        """How long a statement may take before the server counts as dead."""

    @property
    def is_idle(self) -> bool:
        """Whether it is open, outside a transaction and not executing anything."""
        from psycopg.pq import TransactionStatus

        return bool(self.raw.info.transaction_status == TransactionStatus.IDLE)

    @property
    def _cursor(self) -> psycopg.AsyncCursor[Any]:
        from psycopg import AsyncRawCursor

        return AsyncRawCursor(self.raw)

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> psycopg.AsyncCursor[Any]:
        with anyio.fail_after(self.answer_seconds):
            return await self._cursor.execute(numbered(sql), parameters or None)

    async def execute_fetchall(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        rows: list[Row] = await (await self.execute(sql, parameters)).fetchall()
        return rows

    async def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with anyio.fail_after(self.answer_seconds):
            await self._cursor.executemany(numbered(sql), list(rows))

    async def insert_many(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        with anyio.fail_after(self.answer_seconds):
            async with self._cursor.copy(f"COPY {table}({', '.join(columns)}) FROM STDIN") as copy:
                for row in rows:
                    await copy.write_row(row)


def concerns_the_database(error: Exception) -> bool:
    """Whether no other statement would succeed."""
    return isinstance(error, TimeoutError) or _is_one_of(error, _OF_THE_DATABASE)


def is_lost(error: BaseException) -> bool:
    """Whether a connection was lost, or leads to a server that is no longer the one that writes."""
    return _is_one_of(error, _LOST)


def _is_one_of(error: BaseException, classes: tuple[str, ...]) -> bool:
    """Whether the code of an error begins with one of these, or the connection was lost without a code."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError)
    return bool(error.sqlstate.startswith(classes))


@asynccontextmanager
async def mapped_errors(place: str, busy_seconds: float) -> AsyncIterator[None]:
    """Map psycopg's errors to RagMemoryErrors. Raises DatabaseUnavailable without psycopg."""
    try:
        import psycopg
    except ImportError as error:
        raise DatabaseUnavailable(place, "psycopg is not installed", INSTALL_HINT) from error
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise MemoryBusy(place, busy_seconds) from error
    except TimeoutError as error:
        raise DatabaseUnavailable(place, "it accepted a statement and did not answer") from error
    except psycopg.errors.DiskFull as error:
        raise MemoryFull(place) from error
    except psycopg.errors.IntegrityError as error:
        # In an intact memory no statement violates a constraint.
        raise MemoryDamaged(place, first_line(error)) from error
    except psycopg.errors.UndefinedTable as error:
        raise DatabaseUnavailable(place, f"its tables are gone: {first_line(error)}", GONE_HINT) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise DatabaseUnavailable(place, first_line(error), RIGHTS_HINT) from error
    except psycopg.Error as error:
        raise DatabaseUnavailable(place, first_line(error)) from error
    except DECODE_ERRORS as error:
        raise MemoryDamaged(place, "a stored record is not what this program writes") from error
