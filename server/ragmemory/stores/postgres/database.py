"""The engine of a memory in PostgreSQL: opening, connections, the order of commits.

A memory is a schema. Every transaction first updates the one row of the table `memory`, whose lock it keeps
until the commit: so commits have an order, ids rise with it, and an index that follows them misses none.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import anyio

from ragcommon.contract.maintenance import Verified
from ragmemory.errors import (
    BackupFailed,
    DatabaseUnavailable,
    MemoryReadOnly,
    MemoryTooNew,
    MemoryUnusable,
    NotAMemory,
    NotStored,
)
from ragmemory.stores.engine import OnCopied, OnProgress, Row
from ragmemory.stores.postgres.connection import (
    PostgresConnection,
    concerns_the_database,
    mapped_errors,
    reason_of,
)
from ragmemory.stores.postgres.dialect import PostgresDialect
from ragmemory.stores.postgres.schema import MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

# Connections of one process: one writes, the others read.
_CONNECTIONS = 4
# A program that was cut off from the network keeps the lock no longer than this.
_IDLE_SECONDS = 60
# The schema of a memory whose URL names none.
SCHEMA = "ragmemory"


class PostgresEngine:
    """See `engine.Engine`. `url` may name a schema: `postgresql://host/database?schema=notes`.

    `path` is where the files that belong to the memory on this machine lie, such as its index.
    """

    dialect = PostgresDialect()
    is_file = False

    def __init__(
        self, url: str, path: Path, busy_seconds: float, *, machine: str = "", read_only: bool = False
    ) -> None:
        self.path = path
        self.machine = machine
        self.place = url
        self.on_opening: Callable[[], object] = lambda: None
        self.on_open: Callable[[], object] = lambda: None
        self._conninfo, self._schema = without_schema(url)
        self._busy_seconds = busy_seconds
        # libpq waits for at least two seconds, and for whole ones.
        self._connect_seconds = max(2, int(busy_seconds))
        self._read_only = read_only
        self._pool: AsyncConnectionPool[Any] | None = None
        self._opening = anyio.Lock()
        self._write_lock = anyio.Lock()
        self.openings = 0
        self._is_closed = False

    @property
    def is_writable(self) -> bool:
        return not self._read_only

    async def ensure_open(self) -> None:
        if self._pool is not None:
            return
        async with self._opening:
            if self._is_closed:
                raise MemoryUnusable(self.place, "it has been closed")
            if self._pool is None:
                self.on_opening()
                # A connection whose opening is cancelled half-way would be left open.
                with anyio.CancelScope(shield=True):
                    self._pool = await self._open()
                self.on_open()

    async def _open(self) -> AsyncConnectionPool[Any]:
        try:
            from psycopg_pool import AsyncConnectionPool
        except ImportError as error:
            reason = "psycopg is not installed; try: pip install 'ragchat[postgres]'"
            raise DatabaseUnavailable(self.place, reason) from error
        # It warns of every read that is cancelled, though the pool replaces the connection.
        logging.getLogger("psycopg").setLevel(logging.ERROR)
        pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True, "connect_timeout": self._connect_seconds},
            min_size=1,
            max_size=_CONNECTIONS,
            open=False,
            timeout=self._busy_seconds,
            configure=self._configure,
            check=AsyncConnectionPool.check_connection,
        )
        await self._check_address()
        async with mapped_errors(self.place, self._busy_seconds):
            await pool.open()
            try:
                async with pool.connection() as connection:
                    await self._prepare(connection)
            except BaseException:
                await pool.close()
                raise
        return pool

    async def _check_address(self) -> None:
        """Connect once: the pool retries until its time-out, and does not say why it fails."""
        import psycopg

        try:
            connection = await psycopg.AsyncConnection.connect(
                self._conninfo, connect_timeout=self._connect_seconds
            )
        except psycopg.Error as error:
            raise DatabaseUnavailable(self.place, reason_of(error)) from error
        await connection.close()

    async def _configure(self, connection: AsyncConnection[Any]) -> None:
        # A new connection may lead to another server, or to this one with an older backup.
        self.openings += 1
        # set_config takes parameters.
        settings = {
            "search_path": quoted(self._schema),
            "idle_in_transaction_session_timeout": f"{_IDLE_SECONDS}s",
            "lock_timeout": f"{self._busy_seconds}s",
        }
        for name, value in settings.items():
            await connection.execute("SELECT set_config(%s, %s, false)", [name, value])

    async def _prepare(self, connection: AsyncConnection[Any]) -> None:
        """Check that the schema is a memory's, and migrate it. Raises NotAMemory, MemoryTooNew."""
        own = PostgresConnection(connection)
        async with connection.transaction():
            # One process at a time, also where the schema is not there yet.
            await own.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", [self._schema])
            tables = {
                row[0]
                for row in await own.execute_fetchall(
                    "SELECT tablename FROM pg_tables WHERE schemaname = ?", [self._schema]
                )
            }
            if tables and "memory" not in tables:
                raise NotAMemory(self.place, f"its schema {self._schema} has the tables of another program")
            done = 0
            if tables:
                [(done,)] = await own.execute_fetchall("SELECT migrations FROM memory")
            if done > len(MIGRATIONS):
                raise MemoryTooNew(self.place, done, len(MIGRATIONS))
            if done == len(MIGRATIONS):
                return
            if self._read_only:
                raise MemoryReadOnly(self.place, "memory.read_only is set, and its tables have to be made")
            await own.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(self._schema)}")
            for migration in MIGRATIONS[done:]:
                for statement in migration:
                    await connection.execute(statement.encode())
            await own.execute("UPDATE memory SET migrations = ?", [len(MIGRATIONS)])

    async def close(self) -> None:
        async with self._opening:
            self._is_closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            with anyio.CancelScope(shield=True):
                await pool.close()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[PostgresConnection]:
        """See `Engine.reading`."""
        async with self._connection() as connection:
            yield PostgresConnection(connection)

    async def read(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """See `Engine.read`."""
        async with self.reading() as connection:
            return await connection.execute_fetchall(sql, parameters)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[PostgresConnection]:
        """See `Engine.transaction`."""
        if self._read_only:
            raise MemoryReadOnly(self.place, "memory.read_only is set")
        async with self._write_lock, self._connection() as connection:
            own = PostgresConnection(connection)
            await own.execute("BEGIN")
            await own.execute("UPDATE memory SET version = ?", [secrets.randbits(63)])
            # Waiting for the lock can be cancelled, which closes the connection. What follows cannot: it
            # would leave open whether it was committed.
            with anyio.CancelScope(shield=True):
                try:
                    yield own
                    await own.execute("COMMIT")
                except BaseException:
                    await connection.rollback()
                    raise

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        await self.ensure_open()
        pool = self._pool
        if pool is None:
            raise MemoryUnusable(self.place, "it has been closed")
        async with mapped_errors(self.place, self._busy_seconds), pool.connection() as connection:
            yield connection

    def concerns_all(self, error: Exception) -> bool:
        """See `Engine.concerns_all`."""
        return concerns_the_database(error)

    def error_of_write(self, error: Exception, uri: str) -> Exception:
        """See `Engine.error_of_write`."""
        import psycopg

        return NotStored(uri, reason_of(error)) if isinstance(error, psycopg.Error) else error

    async def version(self) -> tuple[int, int]:
        """See `Engine.version`."""
        [(version,)] = await self.read("SELECT version FROM memory")
        return self.openings, version

    async def size(self) -> int:
        """See `Engine.size`."""
        [(size,)] = await self.read(
            "SELECT CAST(sum(pg_total_relation_size(CAST(quote_ident(tablename) AS REGCLASS))) AS BIGINT)"
            " FROM pg_tables WHERE schemaname = current_schema()"
        )
        return int(size)

    async def backup(self, target: Path, *, force: bool, on_progress: OnCopied) -> int:  # noqa: ARG002
        """See `Engine.backup`: pg_dump is the program for it."""
        hint = "Use pg_dump, or `ragchat memory export`."
        raise BackupFailed(str(target), "the memory is in PostgreSQL", hint)

    async def verify(self, on_progress: OnProgress) -> Verified:
        """See `Engine.verify`."""
        from ragmemory.stores.postgres.verifying import verify

        async with self.reading() as connection:
            return await verify(connection, on_progress)


def quoted(name: str) -> str:
    """A name in SQL, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


def without_schema(url: str) -> tuple[str, str]:
    """A URL as libpq takes it, and the schema that it names."""
    parts = urlsplit(url)
    parameters = dict(parse_qsl(parts.query))
    schema = parameters.pop("schema", SCHEMA)
    return urlunsplit(parts._replace(query=urlencode(parameters))), schema
