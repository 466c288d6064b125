"""Statements through psycopg: parameters as `?`, loading by COPY, and the mapping of its errors."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ragmemory.errors import DatabaseUnavailable, MemoryBusy, MemoryDamaged, MemoryFull
from ragmemory.stores.engine import Row
from ragmemory.stores.postgres.dialect import PostgresDialect

if TYPE_CHECKING:
    import psycopg

_PARAMETER = re.compile(r"\?(\d*)")
# The classes of errors after which no other statement would succeed: connection, resources, operator's
# intervention, system, wrong credentials, read-only or aborted transactions, and tables that are missing.
# https://www.postgresql.org/docs/current/errcodes-appendix.html
_OF_THE_DATABASE = ("08", "25", "28", "3D", "3F", "40", "42", "53", "55", "57", "58", "F0", "XX")


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

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    @property
    def _cursor(self) -> psycopg.AsyncCursor[Any]:
        from psycopg import AsyncRawCursor

        return AsyncRawCursor(self._connection)

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> psycopg.AsyncCursor[Any]:
        return await self._cursor.execute(numbered(sql), parameters or None)

    async def execute_fetchall(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        rows: list[Row] = await (await self.execute(sql, parameters)).fetchall()
        return rows

    async def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        await self._cursor.executemany(numbered(sql), list(rows))

    async def insert_many(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        async with self._cursor.copy(f"COPY {table}({', '.join(columns)}) FROM STDIN") as copy:
            for row in rows:
                await copy.write_row(row)


def concerns_the_database(error: Exception) -> bool:
    """Whether no other statement would succeed."""
    import psycopg

    if not isinstance(error, psycopg.Error):
        return False
    return (error.sqlstate is None and isinstance(error, psycopg.OperationalError)) or (
        (error.sqlstate or "").startswith(_OF_THE_DATABASE)
    )


@asynccontextmanager
async def mapped_errors(place: str, busy_seconds: float) -> AsyncIterator[None]:
    """Map psycopg's errors to RagMemoryErrors."""
    import msgspec
    import psycopg
    from psycopg_pool import PoolTimeout

    try:
        yield
    except PoolTimeout as error:
        raise DatabaseUnavailable(place, f"it gave no connection within {busy_seconds:g} s") from error
    except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
        raise MemoryBusy(place, busy_seconds) from error
    except psycopg.errors.DiskFull as error:
        raise MemoryFull(place) from error
    except psycopg.errors.IntegrityError as error:
        # In an intact memory no statement violates a constraint.
        raise MemoryDamaged(place, reason_of(error)) from error
    except psycopg.Error as error:
        raise DatabaseUnavailable(place, reason_of(error)) from error
    except msgspec.DecodeError as error:
        raise MemoryDamaged(place, "a stored record is not what this program writes") from error


def reason_of(error: Exception) -> str:
    """The first line of PostgreSQL's message, without its full stop."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
